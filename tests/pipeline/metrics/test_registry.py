"""The metrics' names: the same in recipes, labels and factories."""

import functools
import random

import pytest

from pipeline.metrics import registry
from pipeline.metrics.scored_texts import Segment
from pipeline.recipes import sections
from pipeline.recipes.choices import METRICS
from tests.pipeline.corpora import corpus


def test_recipes_know_the_metrics_by_the_same_names():
    assert set(METRICS) == set(registry.metric_names()) <= set(registry.LABELS)
    # Measured elsewhere: see `pipeline.evaluation.perplexity_of_text`,
    # `pipeline.metrics.all_references`, `segmentation_scores` and `pipeline.reporting.results`.
    elsewhere = {
        "attention_entropy",
        "bleu_all_references",
        "boundary_f1",
        "word_f1",
        "perplexity_with_copies",
        "passage_perplexity",
        "validation_perplexity",
    }
    assert set(registry.LABELS) - set(registry.metric_names()) == elsewhere
    assert set(METRICS) == set(vars(sections.ThresholdsConfig()))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in registry.expand_metric_names(registry.METRICS)
        if name not in ("execution_accuracy", "term_fidelity")
    ],
)
def test_the_value_is_identical_however_segments_are_divided(name):
    """Not nearly: no order in which workers add leaves another last digit."""
    references, outputs, _ = corpus(60)
    counts = {word: len(word) for text in references for word in text.split()}
    metric = registry.create_metric(name, training_words=counts)
    segments = [
        metric.statistics(
            Segment(output, (reference,), reference[5:], score=(-len(reference) / 3, 7))
        )
        for output, reference in zip(outputs, references)
    ]
    found = set()
    for seed, workers in enumerate((1, 2, 7, 60)):
        order = random.Random(seed).sample(segments, len(segments)) if seed else segments
        shards = [
            functools.reduce(metric.add, order[shard::workers], metric.zero())
            for shard in range(workers)
        ]
        found.add(metric.value(functools.reduce(metric.add, shards, metric.zero())))
    assert len(found) == 1
