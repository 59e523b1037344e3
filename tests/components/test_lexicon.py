"""The lexicon component: learned, listed and joined lexicons, in any number of shards."""

import collections
import dataclasses
import itertools
import json
import pathlib

import pytest

from pipeline.lexicons import translation_lexicon, word_alignment
from pipeline.lexicons.links import make_links
from pipeline.recipes import sections
from pipeline.text import units
from tests.components.test_vocabulary import write_examples

WORDS = {
    "red": "rouge",
    "house": "maison",
    "water": "eau",
    "bread": "pain",
    "stone": "pierre",
    "tree": "arbre",
}


def pairs():
    return [
        (f"see {a} and {b}", f"voir {WORDS[a]} et {WORDS[b]}")
        for a, b in itertools.permutations(WORDS, 2)
    ]


def run(
    tmp_path, dictionary=(), rows=None, shard_pairs=None, cut_into="", source_units="", **config
):
    """Runs the executor; returns the lexicon and its facts.

    `cut_into` is the recipe's units, where they are not words.
    """
    from tfx.types import standard_artifacts
    from tfx.types.experimental import simple_artifacts

    from components.lexicon import executor, passes
    from pipeline.features.vocabulary_files import counts_file

    rows = pairs() if rows is None else rows
    examples, vocabulary, lexicon = (
        standard_artifacts.Examples(),
        simple_artifacts.File(),
        simple_artifacts.File(),
    )
    examples.uri, vocabulary.uri, lexicon.uri = (
        str(tmp_path / name) for name in ("examples", "vocabulary", "lexicon")
    )
    examples.split_names = '["train", "eval", "test"]'
    write_examples(tmp_path / "examples", rows)
    (tmp_path / "vocabulary").mkdir()
    for place, side in enumerate(("source", "target")):
        words = [word for row in rows for word in row[place].split()]
        lines = [f"{json.dumps(word)}\t{words.count(word)}\n" for word in sorted(set(words))]
        (tmp_path / "vocabulary" / counts_file(side)).write_text("".join(lines), "utf-8")
    inputs = {"examples": [examples], "vocabulary": [vocabulary]}
    if cut_into:
        inputs["subwords"] = [_cut(tmp_path, rows, cut_into, vocabulary.uri)]
    lines = [line if isinstance(line, bytes) else "\t".join(line).encode() for line in dictionary]
    (tmp_path / "dictionary.tsv").write_bytes(b"".join(line + b"\n" for line in lines))
    settings = {"tokenizer": {"kind": "whitespace"}, "dictionary": str(tmp_path / "dictionary.tsv")}
    settings.update(units=cut_into, source_units=source_units)
    context = executor.Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")
    config = dataclasses.asdict(sections.LexiconConfig(**config))
    with pytest.MonkeyPatch.context() as patch:
        if shard_pairs:
            patch.setattr(passes, "SHARD_PAIRS", shard_pairs)
        executor.Executor(context).Do(
            inputs,
            {"lexicon": [lexicon]},
            {"lexicon_config": json.dumps(config), "text_settings": json.dumps(settings)},
        )
    facts = json.loads((tmp_path / "lexicon" / "facts.json").read_text("utf-8"))
    return translation_lexicon.read(str(tmp_path / "lexicon")), facts


def _cut(tmp_path, rows, kind, vocabulary_uri):
    """Makes the Subwords artifact of pairs, and counts the units that it cuts them into as
    Vocabulary does; returns the artifact.
    """
    import tensorflow as tf
    from tfx.types.experimental import simple_artifacts

    from components.subwords.executor import train
    from pipeline.features.vocabulary_files import counts_file, units_of

    (tmp_path / "subwords").mkdir()
    settings = {"tokenizer": {"kind": "whitespace"}, "units": kind}
    for place, side in enumerate(("source", "target")):
        texts = [row[place] for row in rows]
        words = collections.Counter(" ".join(texts).split())
        (tmp_path / "subwords" / units.MODEL_FILES[side]).write_bytes(train(words, kind, 300))
        cut = units.tokenizer_of(settings, str(tmp_path / "subwords"), side).tokenize(
            tf.constant(texts)
        )
        counts = collections.Counter(unit.decode() for row in cut.to_list() for unit in row)
        lines = [f"{json.dumps(unit)}\t{count}\n" for unit, count in sorted(counts.items())]
        (pathlib.Path(vocabulary_uri) / counts_file(units_of(side))).write_text(
            "".join(lines), "utf-8"
        )
    subwords = simple_artifacts.File()
    subwords.uri = str(tmp_path / "subwords")
    return subwords


@pytest.mark.slow
def test_units_of_words_have_translations(tmp_path):
    """A cipher of letters: each stands for one other, at a word's beginning and behind it."""
    cipher = str.maketrans("abcdef", "uvwxyz")
    words = ["".join(letters) for letters in itertools.permutations("abcdef", 3)]
    rows = [(f"{a} {b}", f"{a} {b}".translate(cipher)) for a, b in zip(words, words[7:])]
    lexicon, facts = run(tmp_path, rows=rows, cut_into="characters", kind="learned")
    assert set(lexicon) == {before + letter for before in ("", "￭") for letter in "abcdef"}
    for unit, targets in lexicon.items():
        assert max(targets, key=targets.get) == unit.translate(cipher)
    assert facts["coverage_of_text"] == 1 and facts["words"] == 12


@pytest.mark.slow
def test_whole_words_of_the_source_have_units_for_translations(tmp_path):
    cipher = str.maketrans("abcdef", "uvwxyz")
    rows = [(letters, letters.translate(cipher)) for letters in "abcdef"] * 5
    lexicon, _ = run(
        tmp_path, rows=rows, cut_into="characters", source_units="words", kind="learned"
    )
    assert {word: list(targets) for word, targets in lexicon.items()} == {
        letter: [letter.translate(cipher)] for letter in "abcdef"
    }


@pytest.mark.slow
@pytest.mark.parametrize("symmetrization", ["agreement", "none"])
def test_what_is_learned_does_not_depend_on_the_shards(tmp_path, symmetrization):
    found = []
    for shard_pairs in (1000, 7):
        folder = tmp_path / str(shard_pairs)
        folder.mkdir()
        found.append(
            run(folder, kind="learned", symmetrization=symmetrization, shard_pairs=shard_pairs)
        )
        assert not (folder / "1" / "lexicon").exists()  # what the passes exchanged
    (whole, facts), (cut, _) = found
    assert {source: list(targets) for source, targets in whole.items()} == {
        s: list(t) for s, t in cut.items()
    }
    for source, targets in whole.items():
        assert cut[source] == pytest.approx(targets, rel=1e-4)
        assert sum(targets.values()) == pytest.approx(1, abs=1e-4)
    for source, target in {**WORDS, "see": "voir", "and": "et"}.items():
        assert max(whole[source], key=whole[source].get) == target
    assert facts["coverage_of_text"] == 1 and facts["learned_words"] == 8


@pytest.mark.parametrize("diagonal_iterations", [0, 1])
def test_what_is_learned_is_what_the_same_passes_give_in_memory(tmp_path, diagonal_iterations):
    """Two passes of Model 1; then the diagonal model begins with the default prior."""
    from components.lexicon.executor import to_words

    rows = [("a b c", "A B C"), ("a c", "A C"), ("b c a", "B C A"), ("c b", "C C B")]
    learned, _ = run(
        tmp_path,
        rows=rows,
        kind="learned",
        symmetrization="none",
        model1_iterations=2,
        diagonal_iterations=diagonal_iterations,
        min_probability=0.0001,
    )
    ids = {word: number for side in ("abc", "ABC") for number, word in enumerate(side, 1)}
    links = make_links(
        *([[ids[word] for word in row[side].split()] for row in rows] for side in (0, 1))
    )
    table, prior = None, None
    for step in range(2 + diagonal_iterations):
        counts = word_alignment.expected_counts(links, table, prior)
        table = word_alignment.normalize(counts)
        if prior is not None:
            prior = word_alignment.update_prior(prior, counts)
        elif diagonal_iterations and step == 1:
            prior = word_alignment.Prior()
    counts = word_alignment.expected_counts(links, table, prior)
    expected = to_words(counts, "abc", "ABC", 10, 0.0001)
    assert {word: set(targets) for word, targets in learned.items()} == {
        word: set(targets) for word, targets in expected.items()
    }
    for word, targets in expected.items():
        assert learned[word] == pytest.approx(targets, abs=1e-4)


def test_a_listed_lexicon_is_uniform_and_says_what_it_covers(tmp_path, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    dictionary = [
        ("red", "rouge"),
        ("red", "rousse"),
        ("red", "rouge"),
        ("moon", "lune"),
        ("ice cream", "glace"),
    ]
    lexicon, facts = run(tmp_path, dictionary, kind="manual")
    assert lexicon == {"red": {"rouge": 0.5, "rousse": 0.5}, "moon": {"lune": 1.0}}
    assert (facts["skipped_entries"], facts["listed_words"]) == (1, 2)
    assert facts["coverage_of_words"] == pytest.approx(1 / 8)
    said = caplog.text
    assert (
        "8.3 % of the training text's source words" in said and "below lexicon.min_coverage" in said
    )


def test_faulty_lines_and_other_encodings_are_counted_and_the_others_used(tmp_path):
    dictionary = [("red", "rouge"), b"no tab", b"\xe9t\xe9\tsummer", ("water", "")]
    lexicon, facts = run(tmp_path, dictionary, kind="manual")
    assert lexicon == {"red": {"rouge": 1.0}} and facts["malformed_lines"] == 3


@pytest.mark.parametrize("dictionary", [[("zebra", "zèbre")], [("ice cream", "glace")], []])
def test_a_lexicon_that_covers_nothing_is_warned_of_with_the_number(tmp_path, caplog, dictionary):
    caplog.set_level("INFO", logger="verbatim.progress")
    import tensorflow as tf

    from pipeline.features import lookup_tables

    lexicon, facts = run(tmp_path, dictionary, kind="manual")
    assert facts["coverage_of_text"] == 0.0 and len(lexicon) == (
        dictionary[:1] == [("zebra", "zèbre")]
    )
    said = caplog.text
    assert (
        "0.0 % of the training text's source words" in said
        and "below lexicon.min_coverage (20.0 %)" in said
    )
    # A graph and a model read it all the same: each word is unknown.
    for table, nothing in ((lookup_tables.key_table, -1), (lookup_tables.text_table, b"")):
        name = "rows.tsv" if nothing == -1 else "best.tsv"
        found = table(str(tmp_path / "lexicon" / name)).lookup(tf.constant(["red", ""])).numpy()
        assert found.tolist() == [nothing, nothing]
    ids, probabilities = translation_lexicon.read_rows(
        str(tmp_path / "lexicon" / "rows.tsv"), {}, 1
    )
    assert (ids == 1).all() and (probabilities.sum(axis=1) == 1).all()


@pytest.mark.slow
def test_a_hybrid_lexicon_prefers_what_is_learned(tmp_path):
    lexicon, _ = run(tmp_path, [("red", "rousse"), ("moon", "lune")], kind="hybrid")
    assert max(lexicon["red"], key=lexicon["red"].get) == "rouge" and lexicon["moon"] == {
        "lune": 1.0
    }


def test_what_is_pruned():
    lexicon = {
        "a": {"x": 0.5, "y": 0.3, "z": 0.15, "w": 0.05},
        "b": {"x": 0.004, "y": 0.001},
        "c": {},
    }
    pruned = translation_lexicon.prune(lexicon, 3, 0.2)
    assert pruned["a"] == pytest.approx({"x": 0.625, "y": 0.375})
    assert pruned["b"] == {"x": 1.0} and "c" not in pruned
    assert list(translation_lexicon.prune({"a": {"z": 0.5, "y": 0.5}}, 1, 0)["a"]) == ["y"]
    assert translation_lexicon.coverage({}, {}) == (0.0, 0.0)


def test_words_of_any_characters_come_back(tmp_path):
    lexicon = {'"': {"\t": 1.0}, "<a\nb>": {"\u2028": 0.25, "é": 0.75}}
    translation_lexicon.write(str(tmp_path), lexicon, {})
    assert translation_lexicon.read(str(tmp_path)) == lexicon


def test_the_rows_that_a_model_reads(tmp_path):
    lexicon = {
        "b": {"y": 0.75, "x": 0.25},
        "a\tb": {"x": 1.0},
        "c": {"w": 0.5, "v": 0.25, "x": 0.25},
        "d": {"\n": 1.0},
    }
    translation_lexicon.write(str(tmp_path), lexicon, {})
    ids, probabilities = translation_lexicon.read_rows(
        str(tmp_path / "rows.tsv"), {"x": 7, "y": 8, "\n": 9}, 1
    )
    # Padding's row and that of uncovered words; then b, c, d: a word with a tab is no key of the
    # graph's table.
    assert ids[:, 0].tolist() == [1, 1, 8, 1, 9] and ids[2:4, 1].tolist() == [7, 7]
    # What the target vocabulary lacks is [UNK], once.
    assert probabilities.tolist() == [[1, 0], [1, 0], [0.75, 0.25], [0.75, 0.25], [1, 0]]
    assert (tmp_path / "best.tsv").read_text("utf-8") == "b\ty\nc\tw\n"
    assert (
        translation_lexicon.read_rows(str(tmp_path / "rows.tsv"), {}, 1)[1].sum(axis=1).tolist()
        == [1] * 5
    )
