"""Rules about glossaries."""

import pytest

from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.recipes.refusals import refusal

TERMS = {"decoding": {"glossary": "terms.csv"}}
TAGS = {"tokenization": "whitespace", "source_features": ["pos"]}
LANGUAGE_MODEL = {"task": "language_model", "data": {"tokenization": "whitespace"}}


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (
            {"evaluation": {"metrics": ["term_fidelity"]}},
            "'decoding.glossary' must name a glossary",
        ),
        (
            {"decoding": {"glossary": "terms.csv", "keep_protected": False}},
            "'decoding.glossary' needs 'decoding.keep_protected'",
        ),
        ({**TERMS, "data": TAGS}, "'decoding.glossary' must not be set where"),
        (
            {"data": {**TAGS, "term_share": 0.1}, "lexicon": {"kind": "learned"}},
            "'data.term_share' must not be set where",
        ),
        ({"data": {"term_share": 0.1}}, "'data.term_share' needs a lexicon"),
        ({"data": {"term_share": 1.1}}, "data.term_share"),
    ],
)
def test_keys_that_do_not_fit_together(tree, sentence):
    assert sentence in refusal(recipe_from_dict, {"name": "x", **tree})


def test_a_glossary_is_found_beside_the_data():
    from pipeline.recipes.loading import with_database_path

    recipe = with_database_path(recipe_from_dict({"name": "x", **TERMS}), "/data/a.tsv")
    assert recipe.decoding.glossary == "/data/terms.csv"


def test_neither_a_glossary_nor_its_metric_trains_again():
    from pipeline.recipes import views

    plain, own = recipe_from_dict({"name": "x"}), recipe_from_dict({"name": "x", **TERMS})
    assert views.training_recipe(plain) == views.training_recipe(own)
    assert views.transform_settings(plain) == views.transform_settings(own)
    assert views.export_recipe(own).decoding.glossary == "terms.csv"


def test_only_term_share_changes_how_texts_are_cut():
    from pipeline.recipes import views

    tree = {"name": "x", "data": {"term_share": 0.1}, "lexicon": {"kind": "learned"}}
    settings = views.transform_settings(recipe_from_dict(tree))
    assert settings["term_share"] == 0.1 and settings["tokenizer"]["terms"] is True
    assert views.reads_lexicon(recipe_from_dict(tree))
    settings = views.transform_settings(recipe_from_dict({"name": "x"}))
    assert "term_share" not in settings and "terms" not in settings["tokenizer"]
