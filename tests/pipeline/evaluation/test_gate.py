"""What stops a push: thresholds on the whole split, also against the last blessed model."""

import math

import pytest

from pipeline.evaluation import gate
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from tests.pipeline.evaluation.evaluated_models import COUNTS, DAMAGED, PAIRS, evaluate


def test_a_first_model_is_judged_by_absolute_thresholds_alone(models, tmp_path):
    recipe, output = evaluate(tmp_path, {"change_thresholds": {"bleu": 5.0}}, models["damaged"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert blessed
    assert "no model was blessed before" in reason
    assert gate.read_slices(output) == []


def test_a_change_from_the_last_blessed_model_is_demanded(models, tmp_path):
    settings = {"metrics": ["bleu", "ter"], "change_thresholds": {"bleu": -0.5, "ter": 0.5}}
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    outputs, targets = [DAMAGED[source] for source, *_ in PAIRS], [target for _, target, _ in PAIRS]
    expected = scoring.score(
        ["bleu", "ter"], ScoredTexts(outputs, targets), ScoringOptions(bootstrap_samples=0)
    )
    assert gate.read_metrics(output) == {
        name: pytest.approx(expected[name].value) for name in ("bleu", "ter")
    }
    assert (
        f"BLEU is {100 - expected['bleu'].value:.4g} below that of the last blessed model" in reason
    )
    assert "a change of at least -0.5 is demanded" in reason
    assert f"TER is {expected['ter'].value:.4g} above that of the last" in reason
    assert "a change of at most +0.5" in reason


def test_perplexity_is_compared_with_the_last_blessed_model(models, tmp_path):
    """Each by its own probabilities: a third of the texts costs the damaged one a nat more."""
    settings = {
        "metrics": ["perplexity"],
        "change_thresholds": {"perplexity": 0.5},
        "slices": ["domain"],
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    assert gate.read_metrics(output)["perplexity"] == pytest.approx(math.exp(4 / 3))
    assert (
        f"Perplexity is {math.exp(4 / 3) - math.e:.4g} above that of the last blessed model"
        in reason
    )
    law = gate.read_slices(output)[0]
    assert law["metrics"]["perplexity"] == pytest.approx(math.e**2)
    assert law["last_blessed"]["perplexity"] == pytest.approx(math.e)


def test_metrics_of_rare_and_unseen_words_read_the_training_counts(models, tmp_path):
    """As `scoring` with the same counts, on the whole split and on a slice;
    the gate takes them too.
    """
    names = ["unseen_copies", "rare_word_recall", "word_f1_by_frequency"]
    settings = {
        "metrics": names,
        "slices": ["domain"],
        "slice_thresholds": {"rare_word_recall": 0.9},
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    columns = list(zip(*((DAMAGED[source], target, source) for source, target, _ in PAIRS)))
    for part, found in (
        (slice(None), gate.read_metrics(output)),
        (slice(6), gate.read_slices(output)[0]["metrics"]),
    ):
        outputs, targets, sources = (list(column[part]) for column in columns)
        expected = scoring.score(
            names,
            ScoredTexts(outputs, targets, sources, COUNTS),
            ScoringOptions(bootstrap_samples=0),
        )
        assert {name: found[name] for name in names} == {
            name: pytest.approx(expected[name].value) for name in names
        }
        assert all(
            0 < result.value < 1 for name, result in expected.items() if name != "unseen_copies"
        )
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed and "on the slice domain = law, Rare-word recall is" in reason


def test_an_equal_and_a_better_model_pass(models, tmp_path):
    settings = {
        "change_thresholds": {"bleu": 0.0},
        "slices": ["domain"],
        "slice_change_thresholds": {"bleu": 0.0},
    }
    (tmp_path / "better").mkdir()
    for folder, last in ((tmp_path, "good"), (tmp_path / "better", "damaged")):
        recipe, output = evaluate(folder, settings, models["good"], last_blessed=models[last])
        blessed, reason = gate.read_blessing(output, recipe)
        assert blessed, reason
        assert "every change from the last blessed model" in reason


def test_the_last_other_blessed_model_is_compared_with():
    from tfx.types import standard_artifacts

    from components.last_blessed_model.strategy import LastOtherBlessedModelStrategy

    models = [standard_artifacts.Model() for _ in range(4)]
    blessings = [standard_artifacts.ModelBlessing() for _ in range(5)]
    for number, artifact in enumerate([*models, *blessings]):
        artifact.id = number
    # The model 1 was refused, and 0 was blessed again after 2: one went back to it.
    for blessing, (judged, blessed) in zip(blessings, ((0, 1), (1, 0), (2, 1), (0, 1), (3, 0))):
        blessing.set_int_custom_property("current_model_id", judged)
        blessing.set_int_custom_property("blessed", blessed)

    def resolved(candidate, blessings):
        inputs = {"candidate": [models[candidate]], "model": models, "model_blessing": blessings}
        found = LastOtherBlessedModelStrategy().resolve_artifacts(None, inputs)
        assert found["candidate"] == [models[candidate]]
        return [[artifact.id for artifact in found[key]] for key in ("model", "model_blessing")]

    assert resolved(3, blessings) == [[0], [7]]
    assert resolved(0, blessings) == [[2], [6]]
    assert resolved(2, blessings) == [[0], [7]]
    # Repeated before any other was blessed, and the very first run.
    assert resolved(0, blessings[:2]) == [[], []] == resolved(0, [])
