"""New training pairs, made in the pipeline that reads the corpus."""

import dataclasses
import itertools

import pytest

from components.parallel_text_example_gen.component import ParallelTextExampleGen
from pipeline.readers import DataError
from pipeline.recipes.sections import DataConfig
from tests.components.test_beam_engines import ON_OTHER_RUNNERS
from tests.components.test_parallel_text_example_gen import run

CITIES = ["denver", "boston", "new york", "salt lake city", "tacoma", "dallas"]
CONFIG = DataConfig(
    train_files=("train.tsv",),
    test_files=("test.tsv",),
    eval_share=0.2,
    tokenization="whitespace",
    recombinations=3,
    columns=("source", "target"),
)


def entity(city):
    return f"{city.replace(' ', '_')}:_ci"


def line(origin, goal):
    return f"flights from {origin} to {goal}\t( _from {entity(origin)} ) ( _to {entity(goal)} )"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a corpus of half of all flights, and the config that reads it."""
    folder = tmp_path_factory.mktemp("corpus")
    flights = [line(*pair) for pair in itertools.permutations(CITIES, 2)]
    (folder / "train.tsv").write_text("\n".join([*flights[::2], "hello\t( _hello )"]) + "\n")
    (folder / "test.tsv").write_text("\n".join(flights[1:8:2]) + "\n")
    (folder / "cities.txt").write_text(
        "".join(f"{city} :- NP : {entity(city).replace(':_', ':')}\n" for city in CITIES)
    )
    return folder, dataclasses.replace(CONFIG, copy_lexicon=str(folder / "cities.txt"))


@pytest.fixture(scope="module")
def recombined(corpus, tmp_path_factory):
    """What ingestion returns for the corpus: splits, rejects and counts."""
    return run(corpus[0], tmp_path_factory.mktemp("recombined"), corpus[1])


def test_training_gets_new_pairs_and_the_other_splits_none(corpus, recombined, tmp_path):
    folder, config = corpus
    plain, _, before = run(folder, tmp_path, dataclasses.replace(config, recombinations=0))
    splits, _, counts = recombined
    assert splits["eval"] == plain["eval"] and splits["test"] == plain["test"]
    new = list(splits["train"])
    for row in plain["train"]:
        new.remove(row)
    assert counts["recombined"] == len(new) > 5
    assert {**counts, "recombined": 0} == before and before["recombined"] == 0
    # Each is a flight between two cities, named on both sides; no other split has its source.
    held = {row[2] for split in ("eval", "test") for row in splits[split]}
    flights = {line(*pair) for pair in itertools.permutations(CITIES, 2)}
    places = {row[:2] for row in plain["train"]}
    for file, number, source, target in new:
        assert f"{source}\t{target}" in flights and source not in held
        assert (file, number) in places
    assert {f"{source}\t{target}" for *_, source, target in new} - {
        f"{source}\t{target}" for *_, source, target in plain["train"]
    }


@pytest.mark.slow
@ON_OTHER_RUNNERS
def test_engines_make_the_same(corpus, recombined, tmp_path, beam_args):
    assert run(corpus[0], tmp_path, corpus[1], beam_args) == recombined


def test_new_pairs_respect_the_limits(corpus, tmp_path):
    folder, config = corpus
    longest = len("( _from tacoma:_ci ) ( _to new_york:_ci )")
    config = dataclasses.replace(config, max_characters=longest, max_rejected_share=1.0)
    splits, _, counts = run(folder, tmp_path, config)
    # "salt lake city" fits beside no city, not even in a new pair.
    targets = [row[3] for row in splits["train"]]
    assert counts["recombined"] and max(map(len, targets)) <= longest
    assert any("new_york" in target for target in targets)


def test_a_lexicon_that_changed_is_read_again(corpus, tmp_path):
    folder, config = corpus
    lexicon = tmp_path / "cities.txt"
    lexicon.write_text("denver\tdenver:_ci\n")
    config = dataclasses.replace(config, copy_lexicon=str(lexicon))

    def properties(config):
        return ParallelTextExampleGen(str(folder), config).exec_properties

    before = properties(config)
    assert properties(config) == before and before["copy_lexicon_digest"]
    lexicon.write_text("boston\tboston:_ci\n")
    assert properties(config) != before
    # Without new pairs, the examples do not depend on it.
    assert not properties(dataclasses.replace(config, recombinations=0)).get("copy_lexicon_digest")
    with pytest.raises(DataError, match=r"missing\.txt, cannot be read"):
        run(folder, tmp_path, dataclasses.replace(config, copy_lexicon="missing.txt"))
