"""Mixtures: how often an epoch reads each corpus, and which of its pairs."""

import collections

import numpy as np
import pytest

from pipeline.common import progress
from tests.pipeline.training.test_training_data import make_examples, names, write_examples

BUCKETS = (4, 8, 16)


def write_corpora(path, sizes, lengths=(3, 7, 12)):
    """Pairs of several corpora, of some lengths in turn; returns the corpus of each by its name."""
    counted = [corpus for corpus, size in enumerate(sizes) for _ in range(size)]
    made = make_examples([(lengths[n % len(lengths)],) * 2 for n in range(len(counted))])
    write_examples(path, [{**pair, "corpus": [own]} for pair, own in zip(made, counted)])
    return {100 + number: corpus for number, corpus in enumerate(counted)}


def batches(path, weights, temperature=1.0, seed=5):
    from pipeline.training.mixture import Mixture
    from pipeline.training.stored_pairs import StoredPairs
    from pipeline.training.training_data import TrainingBatches

    mixture = Mixture([f"{n}*" for n in range(len(weights))], weights, temperature)
    pairs = StoredPairs.read([str(path)], with_corpora=True)
    return TrainingBatches(pairs, BUCKETS, 64, seed, mixture)


def drawn(made, epoch=0, first=0):
    return [names(inputs) for inputs, _ in made.epoch(epoch, first)]


def test_each_corpus_is_read_as_often_as_its_weight_says(tmp_path):
    corpus_of = write_corpora(tmp_path / "data.gz", (30, 24, 12))
    made = batches(tmp_path / "data.gz", (1.0, 0.5, 3.0))
    seen = collections.Counter()
    for epoch in range(4):
        drawn_now = drawn(made, epoch)
        assert len(drawn_now) == made.steps
        counts = collections.Counter(name for batch in drawn_now for name in batch)
        by_corpus = collections.Counter()
        for name, count in counts.items():
            by_corpus[corpus_of[name]] += count
            assert count == (1, 1, 3)[corpus_of[name]]
        assert by_corpus == {0: 30, 1: 12, 2: 36}
        seen += counts
    # One half is the other half in the next epoch.
    assert {seen[name] for name, corpus in corpus_of.items() if corpus == 1} == {2}


def test_the_seed_and_the_epoch_alone_fix_the_draws(tmp_path):
    write_corpora(tmp_path / "data.gz", (30, 24, 12))
    first, second = (batches(tmp_path / "data.gz", (1.0, 0.3, 2.5)) for _ in range(2))
    orders = [drawn(first, epoch) for epoch in range(3)]
    assert drawn(second, 2) == orders[2] != orders[1]
    assert drawn(second, 2, first=4) == orders[2][4:]
    assert drawn(batches(tmp_path / "data.gz", (1.0, 0.3, 2.5), seed=6), 2) != orders[2]


def test_a_corpus_of_weight_0_is_not_read_and_a_small_weight_reads_something(tmp_path):
    corpus_of = write_corpora(tmp_path / "data.gz", (30, 24, 3))
    made = batches(tmp_path / "data.gz", (0.0, 1.0, 0.01))
    seen = {name for epoch in range(3) for batch in drawn(made, epoch) for name in batch}
    assert {corpus_of[name] for name in seen} == {1, 2}


def test_weights_of_1_read_all_pairs_as_without_a_mixture(tmp_path):
    corpus_of = write_corpora(tmp_path / "data.gz", (30, 24, 12))
    made = batches(tmp_path / "data.gz", (1.0, 1.0, 1.0))
    assert sorted(name for batch in drawn(made) for name in batch) == sorted(corpus_of)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_temperature_flattens_the_shares(temperature):
    from pipeline.training.mixture import Mixture

    counts, weights = np.array([9000, 900, 100]), (1.0, 2.0, 1.0)
    reads = Mixture(["a", "b", "c"], weights, temperature).reads(counts)
    shares = [(n * w) ** (1 / temperature) for n, w in zip(counts, weights)]
    expected = [10900 * share / sum(shares) for share in shares]
    assert counts * reads == pytest.approx(expected)
    if temperature == 1:
        assert reads == pytest.approx(weights)


def test_a_corpus_without_pairs_is_one_sentence(tmp_path, caplog):
    from pipeline.training.transformed_files import TrainingDataError

    caplog.set_level("INFO", logger="verbatim.progress")
    write_corpora(tmp_path / "data.gz", (6, 0, 3))
    with pytest.raises(TrainingDataError, match=r"The corpus '1\*' of data.corpora has no train"):
        batches(tmp_path / "data.gz", (1.0, 1.0, 1.0))
    made = batches(tmp_path / "data.gz", (0.5, 0.0, 2.0))
    assert made.corpora == {
        "0*": {"pairs": 6, "reads": 0.5},
        "1*": {"pairs": 0, "reads": 0.0},
        "2*": {"pairs": 3, "reads": 2.0},
    }
    (said,) = [r.getMessage() for r in caplog.records if r.levelno > progress.STEP]
    assert "'0*' 0.5 times its 6 pairs" in said and "'2*' 2 times its 3 pairs" in said


def test_examples_without_corpora_are_one_sentence(tmp_path):
    from pipeline.training.transformed_files import TrainingDataError

    write_examples(tmp_path / "data.gz", make_examples([(3, 3)] * 4))
    with pytest.raises(TrainingDataError, match="have no corpora: run the Transform again"):
        batches(tmp_path / "data.gz", (1.0, 2.0))
    write_corpora(tmp_path / "data.gz", (2,))
    other = make_examples([(3, 3)])
    write_examples(tmp_path / "data.gz", [{**other[0], "corpus": [-1]}])
    with pytest.raises(TrainingDataError, match="match no pattern of data.corpora"):
        batches(tmp_path / "data.gz", (1.0, 2.0))


def test_only_the_training_split_is_mixed(tmp_path):
    from pipeline.recipes.recipe import recipe_from_dict
    from pipeline.training.loaded_split import LoadedSplit

    corpus_of = write_corpora(tmp_path / "data.gz", (6, 3))
    recipe = recipe_from_dict(
        {
            "name": "mixed",
            "data": {"corpora": ["a*", "*"], "max_tokens": 15},
            "training": {"corpus_weights": [1, 3], "bucket_lengths": list(BUCKETS)},
        }
    )

    def read(seed):
        split = LoadedSplit.read([str(tmp_path / "data.gz")], "some", recipe, seed)
        counts = collections.Counter(n for batch in drawn(split.batches) for n in batch)
        return {name: counts[name] for name in corpus_of}

    assert read(None) == dict.fromkeys(corpus_of, 1)
    assert read(1) == {name: (1, 3)[corpus] for name, corpus in corpus_of.items()}
