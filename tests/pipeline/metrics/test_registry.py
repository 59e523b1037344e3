"""The metrics' names: the same in recipes, labels and factories."""

from pipeline import configs
from pipeline.metrics import registry
from pipeline.recipe_choices import METRICS


def test_recipes_know_the_metrics_by_the_same_names():
    assert set(METRICS) == set(registry._FACTORIES) <= set(registry.LABELS)
    # Measured elsewhere: see `pipeline.perplexity_of_text` and `pipeline.results`.
    elsewhere = {"attention_entropy", "perplexity_with_copies", "passage_perplexity", "validation_perplexity"}
    assert set(registry.LABELS) - set(registry._FACTORIES) == elsewhere
    assert set(METRICS) == set(vars(configs.ThresholdsConfig()))
