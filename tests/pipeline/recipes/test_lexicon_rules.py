"""Rules about lexicons and what is copied."""

import pytest

from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.recipes.refusals import refusal


def test_what_reads_a_lexicon_needs_one():
    assert "'lexicon.kind' to learned" in refusal(
        recipe_from_dict, {"name": "x", "model": {"head": "lexicon_copy"}}
    )
    assert "'baseline.head' = \"lexicon_bias\"" in refusal(
        recipe_from_dict, {"name": "x", "baseline": {"head": "lexicon_bias"}}
    )
    tree = {"name": "x", "model": {"head": "softmax"}, "decoding": {"replace_unknown": "lexicon"}}
    assert "'lexicon.kind' to learned" in refusal(recipe_from_dict, tree)
    tree = {**tree, "lexicon": {"kind": "learned"}, "model": {"head": "lexicon_copy"}}
    assert "translate every copy" in refusal(recipe_from_dict, tree)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["model.pointers=dictionary"],
            "'model.pointers' = \"dictionary\" needs a file of translations",
        ),
        (
            ["decoding.replace_unknown=dictionary"],
            "'decoding.replace_unknown' = \"dictionary\" needs a file",
        ),
        (["lexicon.kind=hybrid"], "'lexicon.kind' = \"hybrid\" needs a file of translations"),
        (["decoding.shortlist_size=500"], "'decoding.shortlist_size' needs a lexicon"),
        (["decoding.shortlist_confidence=0.5"], "needs a 'decoding.shortlist_size' above 0"),
        (
            ["decoding.shortlist_size=500", "lexicon.kind=learned", "model.head=pointer_network"],
            "must be 0 where 'model.head' is \"pointer_network\"",
        ),
        (
            ["model.pointers=entities"],
            "'model.entity_feature' must name one of 'data.source_features'",
        ),
        (
            ["decoding.replace_unknown=dictionary", "data.dictionary=d"],
            "'model.head' is 'pointer_generator'",
        ),
        (
            [
                "decoding.replace_unknown=dictionary",
                "data.dictionary=d",
                "model.head=softmax",
                "baseline.head=joint_copy",
            ],
            "'baseline.head' is 'joint_copy'",
        ),
        (
            ["decoding.replace_unknown=copy", "model.attention=none", "model.head=softmax"],
            "'decoding.replace_unknown' = \"copy\" uses the decoder's attention",
        ),
        (['data.surface_features=["colour"]'], "can only name 'case'; got 'colour'"),
        (['data.surface_features=["case"]', "data.lowercase=true"], "removes the case"),
        (["data.tokenization=whitespace", 'data.source_features=["ids"]'], "cannot name 'ids'"),
        (["data.tokenization=whitespace", 'data.source_features=["a b"]'], "cannot name 'a b'"),
        (
            [
                "data.tokenization=whitespace",
                'data.source_features=["case"]',
                'data.surface_features=["case"]',
            ],
            "both name 'case'",
        ),
    ],
)
def test_copying_that_does_not_fit_together(overrides, words):
    assert words in refusal(load_recipe, "translation", overrides)
