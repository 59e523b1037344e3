"""Metrics for TensorFlow Model Analysis that are floats, so that they can gate a push.

TFMA's own Bleu and Rouge return objects, which no threshold can be compared with. These sum the
statistics of `pipeline.metrics` over examples, wherever Beam runs them, and make one float of the
sum: the value is the one that `pipeline.metrics.scoring.score` gives for the same texts, to the
last bits of a float64.

A metric by training frequency or by length is several floats: the whole under its own name, and
each range under `word_f1_by_frequency/5-9`, so that a threshold of an EvalConfig can be set on
either.

Name them in an EvalConfig with `MetricConfig(class_name="CorpusBleu",
module="pipeline.evaluation.tfma_metrics")`. A value that is undefined (the fidelity of a test set
without placeholders) is NaN, which meets no threshold.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorflow_model_analysis.metrics import metric_types
from tensorflow_model_analysis.proto import config_pb2

from pipeline.evaluation.sum_combiner import (
    SCORE_OUTPUTS,
    SOURCE_FEATURE,
    TRAINING_COUNTS_FEATURE,
    CombinedMetric,
    SliceGateCombiner,
    SumCombiner,
)
from pipeline.metrics import registry
from pipeline.metrics.base import AnyMetric
from pipeline.metrics.scoring_options import ScoringOptions

#: The signature of a model whose outputs are `SCORE_OUTPUTS`.
SCORE_SIGNATURE = "score"
#: Between a metric's name and that of one of its buckets.
BUCKET = "/"


class _TextMetric(metric_types.Metric):
    """A metric of `pipeline.metrics` in TFMA's form."""

    scoring_name: ClassVar[str] = ""

    def __init__(self, name: str = "", min_slice_size: int | None = None, **options: Any) -> None:
        """Initializes the metric.

        Args:
            name: key under which TFMA reports it; the name in `pipeline.metrics` by default.
            min_slice_size: for thresholds on slices: a slice of fewer examples, or without anything
                to measure, has the best possible value. None gives every slice its own value, or
                NaN.
            **options: those of `ScoringOptions`.
        """
        scoring_name = self.scoring_name
        make_combiner: Callable[[CombinedMetric], SumCombiner] = SumCombiner
        if min_slice_size is not None:
            make_combiner = functools.partial(SliceGateCombiner, min_slice_size)
        metric = registry.create_metric(scoring_name, ScoringOptions(**options))
        # The threshold of a slice is one number.
        buckets = metric.buckets if min_slice_size is None else ()
        metric_options = options

        def create_computations(
            name: str,
            eval_config: config_pb2.EvalConfig | None = None,
            model_names: Sequence[str] | None = None,
            output_names: Sequence[str] | None = None,
            **unused: Any,
        ) -> list[metric_types.MetricComputation]:
            computations = []
            for model_name in model_names or [""]:
                for output_name in output_names or [""]:
                    keys = [
                        metric_types.MetricKey(
                            name=key_name, model_name=model_name, output_name=output_name
                        )
                        for key_name in (name, *(f"{name}{BUCKET}{bucket}" for bucket in buckets))
                    ]
                    combined = CombinedMetric(
                        scoring_name, metric_options, keys, eval_config, model_name, output_name
                    )
                    computations.append(
                        metric_types.MetricComputation(
                            keys=keys,
                            preprocessors=_preprocessors(metric, model_names or []),
                            combiner=make_combiner(combined),
                        )
                    )
            return computations

        if min_slice_size is not None:
            options = {**options, "min_slice_size": min_slice_size}
        super().__init__(create_computations, name=name or scoring_name, **options)


def _preprocessors(
    metric: AnyMetric, model_names: Sequence[str]
) -> list[metric_types.Preprocessor]:
    """Returns computations that make TFMA keep the features of a metric."""
    if metric.needs_scores:
        several = [model_name for model_name in model_names if model_name]
        return [
            metric_types.TransformedFeaturePreprocessor(SCORE_OUTPUTS, model_names=several or None)
        ]
    features = [SOURCE_FEATURE] if metric.needs_sources else []
    features += [TRAINING_COUNTS_FEATURE] if metric.needs_training_words else []
    return [metric_types.FeaturePreprocessor(feature_keys=features)] if features else []


# Names that EvalConfigs have for classes; the others are the metrics' own in camel case. None is
# the name of a class of TFMA's: a Beam worker that has not imported this module would take that.
_CLASS_NAMES = {
    "exact_match": "CorpusExactMatch",
    "bleu": "CorpusBleu",
    "chrf": "CorpusChrf",
    "nist": "CorpusNist",
    "ter": "CorpusTer",
    "perplexity": "TokenPerplexity",
}


def _class_name(name: str) -> str:
    """Returns the name of a metric's class, such as `Rouge1Recall` of `rouge1_recall`."""
    return _CLASS_NAMES.get(name) or "".join(
        part[:1].upper() + part[1:] for part in name.split("_")
    )


def _make_class(name: str) -> type[_TextMetric]:
    """Makes the class of a metric, which TFMA finds by its name in this module."""
    members = {
        "__doc__": f"The metric `{name}` of `pipeline.metrics`, reported under this name.",
        "__module__": __name__,
        "scoring_name": name,
    }
    made = type(_class_name(name), (_TextMetric,), members)
    metric_types.register_metric(made)
    globals()[made.__name__] = made
    return made


#: The class of each metric, by its name in `pipeline.metrics`.
CLASSES = {name: _make_class(name) for name in registry.metric_names()}
#: The names of the classes that read `TRAINING_COUNTS_FEATURE`.
CLASSES_OF_TRAINING_COUNTS = frozenset(
    made.__name__
    for name, made in CLASSES.items()
    if registry.metric_class(name).needs_training_words
)
