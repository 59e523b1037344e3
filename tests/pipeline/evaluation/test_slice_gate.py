"""What stops a push: thresholds on slices, and what a recipe may say of them."""

import json

import pytest

from pipeline.evaluation import gate, slicing
from pipeline.recipes import sections
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.evaluation.evaluated_models import GOOD, evaluate, save_model


def test_a_regression_on_one_slice_alone_blocks(models, tmp_path):
    settings = {
        "metrics": ["exact_match", "placeholder_fidelity"],
        "thresholds": {"exact_match": 0.6, "placeholder_fidelity": 0.9},
        "change_thresholds": {"exact_match": -0.5},  # the whole split loses but a third
        "slices": ["domain", "source_length", "unknown_words"],
        "slice_thresholds": {"placeholder_fidelity": 0.9},
        "slice_change_thresholds": {"exact_match": -0.1},
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    assert reason == (
        "Not pushed: "
        + "; ".join(
            f"on the slice {name}, Exact match is 1 below that of the last blessed model, and a "
            "change of at least -0.1 is demanded"
            for name in ("domain = law", "source_length = 10-19", "unknown_words = no")
        )
        + "."
    )
    slices = {one["slice"]: one for one in gate.read_slices(output)}
    assert list(slices) == [
        *("domain = law", "domain = menu", "source_length = 0-9", "source_length = 10-19"),
        *("unknown_words = no", "unknown_words = yes"),
    ]
    # The domain of law has no placeholder: nothing can be lost there, and that blocks nothing.
    assert slices["domain = law"] == {
        "slice": "domain = law",
        "n": 6,
        "metrics": {"exact_match": 0.0, "placeholder_fidelity": None},
        "last_blessed": {"exact_match": 1.0, "placeholder_fidelity": None},
    }
    assert slices["unknown_words = yes"]["n"] == 12
    assert gate.read_metrics(output)["exact_match"] == pytest.approx(2 / 3)


def test_a_slice_of_few_pairs_and_a_lax_threshold_block_nothing(models, tmp_path):
    settings = {
        "metrics": ["exact_match"],
        "slices": ["domain"],
        "slice_thresholds": {"exact_match": 0.5},
        "min_slice_size": 7,
    }
    _, output = evaluate(tmp_path, settings, models["damaged"])
    assert gate.read_blessing(output)[0]
    # What it found is told all the same.
    law = gate.read_slices(output)[0]
    assert (law["metrics"], law["last_blessed"]) == ({"exact_match": 0.0}, {})


def test_an_absolute_threshold_on_slices_blocks(models, tmp_path):
    settings = {
        "metrics": ["exact_match"],
        "slices": ["domain"],
        "slice_thresholds": {"exact_match": 0.5},
    }
    _, output = evaluate(tmp_path, settings, models["damaged"])
    blessed, reason = gate.read_blessing(output)
    assert not blessed
    assert (
        reason == "Not pushed: on the slice domain = law, Exact match is 0, below the 0.5 demanded."
    )


def test_a_source_is_sliced_by_its_length_and_words(tmp_path):
    slicer = slicing.SourceSlicer.of_model(save_model(tmp_path / "model", GOOD))
    assert slicer.features("The court, of appeal") == {
        "source_length": "0-9",
        "unknown_words": "no",
    }
    assert slicer.features("Open %(x)s") == {"source_length": "0-9", "unknown_words": "yes"}
    assert slicer.features("The " * 23)["source_length"] == "20-29"
    recipe = recipe_from_dict(
        {"name": "x", "data": {"tokenization": "whitespace", "lowercase": True}}
    )
    extra = tmp_path / "model" / "assets.extra"
    (extra / "verbatim.json").write_text(json.dumps({"recipe": recipe.to_dict()}), encoding="utf-8")
    slicer = slicing.SourceSlicer.of_model(str(tmp_path / "model"))
    assert (
        slicer.features("OF the")["unknown_words"] == "yes"
    )  # `the` is not in the vocabulary, `The` is
    assert slicer.features("OF appeal")["unknown_words"] == "no"


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"slices": ["domian"]}, "unknown slice 'domian'; did you mean 'domain'"),
        (
            {"slice_thresholds": {"bleu": 3}},
            "'evaluation.slice_thresholds.bleu' needs 'evaluation.slices'",
        ),
        ({"change_thresholds": {"ter": 3}}, "'evaluation.change_thresholds.ter' needs 'ter' among"),
        ({"change_thresholds": {"tre": 3}}, "unknown key 'evaluation.change_thresholds.tre'"),
        (
            {"change_thresholds": {"bleu": "x"}},
            "'evaluation.change_thresholds.bleu' must be a number",
        ),
        ({"min_slice_size": 0}, "'evaluation.min_slice_size' must be at least 1"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(RecipeError, match=words):
        recipe_from_dict(
            {"name": "x", "data": {"slice_features": ["domain"]}, "evaluation": settings}
        )


def test_a_column_to_slice_by_has_a_name_of_its_own():
    for name in ("source_length", "target", "a b"):
        with pytest.raises(RecipeError, match="slice_features' cannot name"):
            recipe_from_dict({"name": "x", "data": {"slice_features": [name]}})


def test_every_threshold_has_its_change():
    names = [
        set(vars(section()))
        for section in (sections.ThresholdsConfig, sections.ChangeThresholdsConfig)
    ]
    assert names[0] == names[1]
