"""Rules of the section `data`, and of what is read."""

import json

import pytest

from pipeline.recipes import sections, views
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import recipe_from_dict, section_from_json
from tests.pipeline.recipes.refusals import refusal


@pytest.mark.parametrize(
    "data, words",
    [
        ({"train_files": "a.tsv"}, "'data.train_files' must be a list of texts"),
        ({"train_files": [""]}, "'data.train_files' must be a list of texts"),
        ({"columns": [1]}, "'data.columns' must be a list of texts"),
        ({"columns": ["source", "source", "target"]}, "'data.columns' names something twice"),
        ({"columns": ["source", "table"]}, "'data.columns' lacks 'target'"),
        (
            {
                "columns": ["source", "target"],
                "source_features": ["pos"],
                "tokenization": "whitespace",
            },
            "lacks 'pos'",
        ),
        ({"test_files": ["a.tsv"]}, "need 'data.train_files'"),
        ({"placeholders": ["pyhton"]}, "cannot name 'pyhton'; did you mean 'python'?"),
        ({"placeholder_patterns": ["(?=x)y"]}, "cannot have '(?=x)y': RE2 does not support it"),
        ({"placeholder_patterns": ["x*"]}, "cannot have 'x*': it matches the empty text"),
        (
            {"train_files": ["a"], "test_files": ["b"], "eval_share": 0.0},
            "'data.eval_share' must be above 0",
        ),
        ({"source_features": ["pos"]}, "needs 'data.tokenization'"),
        ({"source_features": ["line"], "tokenization": "whitespace"}, "cannot name 'line'"),
        ({"tokenization": "characters"}, "'data.tokenization' must be one of"),
    ],
)
def test_what_the_data_section_refuses(data, words):
    assert words in refusal(recipe_from_dict, {"name": "test", "data": data})


def test_shares_do_not_matter_where_files_are_given():
    data = {
        "train_files": ["a"],
        "eval_files": ["b"],
        "test_files": ["c"],
        "eval_share": 0.0,
        "test_share": 0.0,
    }
    recipe = recipe_from_dict({"name": "test", "data": data})
    assert recipe.data.train_files == ("a",)
    assert (
        section_from_json(sections.DataConfig, json.dumps(recipe.to_dict()["data"])) == recipe.data
    )
    assert hash(recipe)


def test_what_goes_by_words_needs_words():
    for tree in (
        {"data": {"dictionary": "a.tsv"}, "lexicon": {"kind": "hybrid"}},
        {"data": {"dictionary": "a.tsv"}},
        {"data": {"copy_lexicon": "a.txt"}},
        {"data": {"surface_features": ["case"]}},
        {"evaluation": {"slices": ["unknown_words"]}},
    ):
        assert recipe_from_dict({"name": "x", **tree})
        data = {"data": {**tree.get("data", {}), "units": "subwords"}}
        assert "works on words" in refusal(recipe_from_dict, {"name": "x", **tree, **data})
    # What is learned is of whatever units there are.
    assert recipe_from_dict(
        {"name": "x", "lexicon": {"kind": "learned"}, "data": {"units": "subwords"}}
    )
    assert "'data.source_units' needs" in refusal(
        recipe_from_dict, {"name": "x", "data": {"source_units": "words"}}
    )
    whole = {"name": "x", "data": {"source_units": "words", "units": "subwords"}}
    assert "'vocabulary.joint' must be false" in refusal(
        recipe_from_dict, {**whole, "vocabulary": {"joint": True}}
    )
    assert views.text_settings(recipe_from_dict(whole))["source_units"] == "words"
    settings = views.text_settings(recipe_from_dict({"name": "x", "data": {"units": "characters"}}))
    assert settings["tokenizer"] == {"kind": "text", "lowercase": False}
    assert settings["units"] == "characters"
    tree = {
        "name": "x",
        "task": "language_model",
        "data": {"units": "subwords", "tokenization": "whitespace"},
    }
    assert "'data.units'" in refusal(recipe_from_dict, tree)


@pytest.mark.parametrize(
    "sections",
    [
        {"data": {"tokenization": "whitespace"}},
        {"data": {"units": "preset"}, "model": {"body": "keras_hub", "preset": "t5"}},
    ],
)
@pytest.mark.parametrize("value", ["whole", "parts", "letters"])
def test_where_words_end_can_be_chosen_only_where_texts_are_cut_at_punctuation(sections, value):
    tree = {"name": "x", **sections, "data": {**sections["data"], "rare_words": value}}
    assert f"'data.rare_words' = \"{value}\" needs 'data.tokenization'" in refusal(
        recipe_from_dict, tree
    )


def test_words_end_at_underscores_only_where_words_are_units():
    tree = {"name": "x", "data": {"rare_words": "letters", "units": "subwords"}}
    assert "needs 'data.units' = \"words\"" in refusal(recipe_from_dict, tree)
    recipe_from_dict({"name": "x", "data": {"rare_words": "parts", "units": "subwords"}})


def test_something_must_be_left_to_train_on():
    tree = {"name": "test", "data": {"eval_share": 0.5, "test_share": 0.5}}
    assert "'data.eval_share' and 'data.test_share'" in refusal(recipe_from_dict, tree)
    tree["data"]["test_share"] = 0.49
    assert recipe_from_dict(tree).data.test_share == 0.49


@pytest.mark.parametrize(
    "key, longest", [("training.bucket_lengths", 119), ("decoding.length_buckets", 120)]
)
def test_what_is_read_must_fit_the_buckets(key, longest):
    with pytest.raises(
        RecipeError,
        match=rf"'data.max_tokens' \(121\) must be at most {longest} to fit the last of '{key}'",
    ):
        load_recipe("localization_en_fr", ["data.max_tokens=121", f"{key}=[8, 120]"])


def test_new_pairs_need_a_lexicon_of_entities():
    given = {"copy_lexicon": "a.txt", "tokenization": "whitespace", "recombinations": 2}
    assert recipe_from_dict({"name": "x", "data": given}).data.recombinations == 2
    for other, said in (
        ({"copy_lexicon": ""}, "needs 'data.copy_lexicon'"),
        ({"tokenization": "text"}, "needs 'data.copy_lexicon' and 'data.tokenization'"),
        ({"source_features": ["case"]}, "exclude each other"),
        ({"recombinations": -1}, "data.recombinations"),
    ):
        assert said in refusal(recipe_from_dict, {"name": "x", "data": {**given, **other}})


@pytest.mark.parametrize("value", [{"copy_lexicon": "a.txt"}, {"recombinations": 2}])
def test_a_language_model_has_no_source_whose_entities_are_named(value):
    tree = {
        "name": "x",
        "task": "language_model",
        "data": {"tokenization": "whitespace", **value},
    }
    (key,) = value
    assert f"'data.{key}' must not be set for a language model" in refusal(recipe_from_dict, tree)
