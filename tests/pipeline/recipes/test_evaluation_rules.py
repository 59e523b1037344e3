"""Rules of the section `evaluation`."""

import pytest

from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.recipes.refusals import refusal


@pytest.mark.parametrize(
    "evaluation, words",
    [
        ({"metrics": []}, "'evaluation.metrics' must name at least one metric"),
        ({"metrics": ["blue"]}, "unknown metric 'blue'; did you mean 'bleu'?"),
        ({"metrics": ["bleu", "bleu"]}, "'evaluation.metrics' names something twice"),
        (
            {"metrics": ["bleu"], "thresholds": {"chrf": 1}},
            "'evaluation.thresholds.chrf' needs 'chrf'",
        ),
        (
            {"thresholds": {"blue": 1}},
            "unknown key 'evaluation.thresholds.blue'; did you mean 'bleu'",
        ),
        ({"thresholds": {"bleu": "high"}}, "'evaluation.thresholds.bleu' must be a number"),
        (
            {"thresholds": {"rare_word_recall": 1}},
            "'evaluation.thresholds.rare_word_recall' needs 'rare_word_recall' among",
        ),
        ({"metrics": ["execution_accuracy"]}, "'evaluation.database' must name an SQLite file"),
    ],
)
def test_what_the_evaluation_section_refuses(evaluation, words):
    assert words in refusal(recipe_from_dict, {"name": "test", "evaluation": evaluation})
