"""The metric of a network in training: that of its greedy outputs, and the epoch it chooses."""

import pytest

from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring import score
from tests.pipeline.training import tiny_training


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model that has learned to copy, chosen by its exact match; and its facts."""
    folder = tmp_path_factory.mktemp("eval_decoding")
    train = tiny_training.write_pairs(folder / "train.gz", 72)
    evaluation = tiny_training.write_pairs(folder / "eval.gz", 12)
    recipe = tiny_training.recipe(
        epochs=12, select_by="exact_match", select_pairs=0, learning_rate=0.03, patience=3
    )
    return recipe, evaluation, *tiny_training.train(recipe, train, evaluation)


def test_the_epoch_with_the_best_outputs_is_kept(trained):
    from pipeline.training.eval_decoding import EvalDecoding

    recipe, files, model, facts = trained
    found = [point["selected"] for point in facts["curve"]]
    pairs = EvalDecoding.of(recipe, files, tiny_training.WORDS)
    assert pairs.measure(model) == max(found)
    # It learned, and stopped three epochs after it knew all.
    assert found[0] < max(found) == 1.0 and len(found) < 12
    assert len(found) == found.index(1.0) + 4


def test_references_are_the_targets_words(trained):
    from pipeline.training.eval_decoding import EvalDecoding

    recipe, files, *_ = trained
    pairs = EvalDecoding.of(recipe, files, tiny_training.WORDS)
    assert len(pairs.references) == 12
    assert set(pairs.references) == {
        " ".join(
            f"token{place}" if place % 2 else f"word{10 + (first + place) % 5}"
            for place in range(5)
        )
        for first in range(5)
    }


def test_the_measure_is_the_metrics_own(trained, monkeypatch):
    import dataclasses

    from pipeline.training import eval_decoding

    recipe, files, model, _ = trained
    monkeypatch.setattr(eval_decoding, "_BATCH", 12)
    pairs = eval_decoding.EvalDecoding.of(recipe, files, tiny_training.WORDS)
    outputs = [reference.replace("token1", "word10") for reference in pairs.references]
    monkeypatch.setattr(eval_decoding, "_texts", lambda *_: outputs)
    for metric in ("bleu", "chrf", "exact_match"):
        measured = dataclasses.replace(pairs, metric=metric).measure(model)
        expected = score(metric, ScoredTexts(outputs, pairs.references))[metric]
        assert measured == pytest.approx(expected.value)


def test_only_the_first_pairs_are_decoded(trained):
    from pipeline.training.eval_decoding import EvalDecoding

    recipe, files, *_ = trained
    made = tiny_training.recipe(select_by="bleu", select_pairs=5)
    assert len(EvalDecoding.of(made, files, tiny_training.WORDS).references) == 5


@pytest.mark.parametrize(("buckets", "expected"), [((16, 64), 1.0), ((5, 64), 0.0)])
def test_outputs_are_as_long_as_those_of_the_served_model(trained, buckets, expected):
    """A source of 5 tokens is padded to 16, which allows 9 tokens; or not at all: 3 tokens."""
    import dataclasses

    from pipeline.training.eval_decoding import EvalDecoding

    recipe, files, model, _ = trained
    decoding = dataclasses.replace(
        recipe.decoding, max_length_factor=0.5, max_length_offset=1, length_buckets=buckets
    )
    recipe = dataclasses.replace(recipe, decoding=decoding)
    assert EvalDecoding.of(recipe, files, tiny_training.WORDS).measure(model) == expected
