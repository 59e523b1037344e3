"""A recipe as a value: defaults, checks of single keys, and JSON."""

import dataclasses
import json

import pytest

from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from tests.pipeline.recipes.refusals import nested, refusal


def test_defaults_make_a_recipe():
    recipe = recipe_from_dict({"name": "plain"})
    assert recipe == Recipe(name="plain")
    assert recipe.model.head == "pointer_generator" and recipe.data.format == "auto"
    # Every default is itself a possible value.
    assert recipe_from_dict(recipe.to_dict()) == recipe


def test_recipes_are_frozen_and_hashable():
    recipe = Recipe(name="plain")
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.model.head = "softmax"
    assert hash(recipe) == hash(Recipe(name="plain"))


@pytest.mark.parametrize(
    "key, value",
    [
        ("data.format", "xml"),
        ("data.max_characters", 0),
        ("data.max_rejected_share", 1.01),
        ("data.max_rejected_share", -0.01),
        ("data.eval_share", 0.0),
        ("data.test_share", 0),
        ("data.eval_share", 0.51),
        ("data.test_share", float("nan")),
        ("data.source_language", 3),
        ("data.drop_identical", 1),
        ("data.drop_identical", "true"),
        ("vocabulary.source_size", 15),
        ("vocabulary.target_size", 100.0),
        ("vocabulary.min_count", 0),
        ("vocabulary.protected_min_count", -1),
        ("model.body", "transformer?"),
        ("model.cell", "rnn"),
        ("model.attention", ""),
        ("model.hidden_size", 0),
        ("model.hidden_size", 127),
        ("model.hidden_size", True),
        ("model.encoder_layers", 25),
        ("model.dropout", 0.96),
        ("model.dropout", "0.1"),
        ("model.coverage", None),
        ("training.epochs", 0),
        ("training.epochs", 1.5),
        ("training.batch_tokens", 7),
        ("training.learning_rate", 0.0),
        ("training.learning_rate", -1),
        ("training.learning_rate", float("inf")),
        ("training.learning_rate", float("nan")),
        ("training.learning_rate", 10**400),
        ("training.final_learning_rate_share", 1.1),
        ("training.max_seconds", -1.0),
        ("training.max_seconds", float("inf")),
        ("training.bucket_lengths", []),
        ("training.bucket_lengths", 10),
        ("training.bucket_lengths", "10"),
        ("training.bucket_lengths", [0, 1]),
        ("training.bucket_lengths", [3, 3]),
        ("training.bucket_lengths", [5, 3]),
        ("training.bucket_lengths", [1, 2.5]),
        ("training.bucket_lengths", [True]),
        ("training.bucket_lengths", [1, "2"]),
        ("decoding.beam_size", 65),
        ("decoding.n_best", 5),
        ("decoding.max_length_factor", -0.1),
        ("decoding.max_length_offset", 0),
        ("decoding.batch_buckets", None),
        ("evaluation.thresholds.bleu", 101),
        ("evaluation.thresholds.placeholder_fidelity", 2),
        ("evaluation.bootstrap_samples", 9),
        ("baseline.head", "copynet"),
        ("name", ""),
        ("name", "../elsewhere"),
        ("name", "a/b"),
        ("name", "two words"),
        ("name", "a.b"),
        ("name", "-x"),
        ("name", "é"),
        ("name", "x\n"),
        ("name", "x" * 101),
        ("name", 3),
        ("model", "softmax"),
        ("model", [1]),
    ],
)
def test_impossible_values_are_named(key, value):
    assert f"'{key}'" in refusal(recipe_from_dict, nested(key, value)) or (key, value) == (
        "name",
        "",
    )


def test_a_recipe_needs_a_name():
    assert "'name'" in refusal(recipe_from_dict, {})


@pytest.mark.parametrize(
    "key, suggestion",
    [
        ("modle", "model"),
        ("training.epoch", "epochs"),
        ("decoding.beamsize", "beam_size"),
        ("data.source_languge", "source_language"),
    ],
)
def test_unknown_keys_get_a_suggestion(key, suggestion):
    assert f"unknown key '{key}'; did you mean '{suggestion}'?" in refusal(
        recipe_from_dict, nested(key, 1)
    )


def test_an_unknown_key_like_no_other_is_only_named():
    sentence = refusal(recipe_from_dict, nested("model.zzz", 1))
    assert "'model.zzz'" in sentence and "did you mean" not in sentence


def test_json_round_trip():
    recipe = load_recipe(
        "localization_en_fr", ["training.bucket_lengths=[7,130]", "data.split_salt='é \"'"]
    )
    text = recipe.to_json()
    assert Recipe.from_json(text) == recipe
    assert Recipe.from_json(text).to_json() == text
    # Strict JSON, the same for the same recipe: components are cached by it.
    json.loads(text, parse_constant=pytest.fail)
    assert text == Recipe.from_json(json.dumps(dict(reversed(json.loads(text).items())))).to_json()
