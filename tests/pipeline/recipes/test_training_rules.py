"""Rules of the training."""

import pytest

from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.recipes.refusals import refusal, tree_of


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"training.label_smoothing": 1.0}, "'training.label_smoothing' must be between"),
        (
            {
                "training.label_smoothing": 0.1,
                "model.head": "span_copy",
                "model.copying_context": "start",
            },
            "must be 0 for head span_copy with 'model.copying_context' = \"start\"",
        ),
        (
            {
                "training.label_smoothing": 0.1,
                "training.large_vocabulary_size": 1000,
                "training.large_vocabulary_drawn": 0,
            },
            "needs a 'training.large_vocabulary_drawn' above 0",
        ),
        (
            {"training.subword_sampling": "source"},
            "'training.subword_sampling' needs 'data.units' = \"subwords\"",
        ),
        (
            {
                "training.subword_sampling": "both",
                "data.units": "subwords",
                "data.source_units": "words",
            },
            'must be "target" or "none" with \'data.source_units\'',
        ),
        ({"training.subword_nbest": 1}, "'training.subword_nbest' must be between 2 and 512"),
        ({"training.consistency_weight": -1.0}, "'training.consistency_weight' must be at least"),
        (
            {"training.consistency_weight": 1.0, "training.scheduled_sampling": "linear"},
            "'training.consistency_weight' must be 0 with this 'training.scheduled_sampling'",
        ),
        (
            {"training.consistency_weight": 1.0, "training.large_vocabulary_size": 1000},
            "must be 0 with this 'training.large_vocabulary_size'",
        ),
        (
            {"training.consistency_weight": 1.0, "model.dropout": 0.0},
            "'training.consistency_weight' needs a 'model.dropout' above 0",
        ),
        (
            {"training.keep": "last", "training.patience": 3},
            "'training.keep' = \"last\" does not go with 'training.patience' = 3",
        ),
        (
            {"training.keep": "last", "training.average": "best"},
            "does not go with 'training.average' = 'best'",
        ),
        ({"training.corpus_weights": [1, 2]}, "'training.corpus_weights' needs 'data.corpora'"),
        ({"training.corpus_temperature": 5}, "'training.corpus_temperature' needs 'data.corpora'"),
        ({"data.corpora": ["a*"]}, "needs 'training.corpus_weights' or a"),
        (
            {"data.corpora": ["a*", "*"], "training.corpus_weights": [1.0]},
            "has 1 numbers for the 2 entries of 'data.corpora'",
        ),
        (
            {"data.corpora": ["a*", "*"], "training.corpus_weights": [0, 0.0]},
            "no number above 0, so the mixture is empty",
        ),
        (
            {"data.corpora": ["a*"], "training.corpus_weights": [-1.0]},
            "'training.corpus_weights' must be a list of numbers, 0 or above",
        ),
        ({"data.corpora": ["a*"], "training.corpus_temperature": 0.5}, "must be at least 1.0"),
    ],
)
def test_keys_that_do_not_fit_together(settings, words):
    assert words in refusal(recipe_from_dict, tree_of(settings))


@pytest.mark.parametrize(
    "override, words",
    [
        ("training.workers=2", "'training.workers' must be 1 for a language model."),
        ("training.accumulated_batches=2", "must be 1 for a language model."),
        ('data.corpora=["*"]', "'data.corpora' must be [] for a language model"),
        ("training.corpus_weights=[1]", "must be () for a language model: it is one text"),
        ("training.label_smoothing=0.1", "must be 0.0 for a language model: its perplexity"),
        ("training.beta_2=0.99", "'training.beta_2' must be 0.999 for a language model."),
        ("training.average=moving", "'training.average' must be 'none' for a language model."),
        ("training.batch_tokens=64", "model: use 'language_model.batch_size'."),
    ],
)
def test_what_a_language_model_does_not_have(override, words):
    assert words in refusal(load_recipe, "penn_treebank", [override])
