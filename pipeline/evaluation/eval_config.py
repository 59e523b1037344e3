"""The Evaluator's metrics, and its conditions for a push.

TFX's own Evaluator does the work; the metrics are those of `pipeline.evaluation.tfma_metrics`.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2

from pipeline.evaluation import tfma_metrics
from pipeline.metrics import registry
from pipeline.metrics.scoring_options import DEFAULT_OPTIONS, ScoringOptions
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import EvaluationConfig, ThresholdsConfig
from pipeline.recipes.sections.metric_bounds import bounds

SIGNATURE = "serving_default"
LABEL_FEATURE = "target"
PREDICTION_OUTPUT = "text"
METRICS_MODULE = tfma_metrics.__name__
#: The end of the names of metrics that exist only for thresholds on slices.
SLICE_GATE = "_in_slices"
_ALWAYS_DEFINED = "exact_match"


def build_eval_config(recipe: Recipe) -> config_pb2.EvalConfig:
    """Returns the `tfma.EvalConfig` of a recipe.

    The metrics are the recipe's. TFX blesses no model without a threshold, and ignores change
    thresholds if no model was blessed before. So, without an absolute threshold, the first metric
    that always has a value must reach 0. A bound of 0 is no condition, so a metric without any
    cases in the test split, and without a value, does not block a push. Thresholds on slices apply
    to metrics of their own, named with `SLICE_GATE`: see `tfma_metrics`' `min_slice_size`.

    Args:
        recipe: reads `evaluation`, `data.target_language`, `data.tokenization` and
            the placeholders of `data`.
    """
    settings, options = recipe.evaluation, _metric_options(recipe)
    names = list(settings.metrics)
    demands = Demands(_demanding(settings.thresholds), bounds(settings.change_thresholds))
    if not demands.bounds:
        always = [name for name in names if _can_gate(name)]
        names += [] if always else [_ALWAYS_DEFINED]
        demands = Demands({(always or [_ALWAYS_DEFINED])[0]: 0.0}, demands.changes)
    metrics = []
    for name in names:
        metric = _metric_config(name, options)
        threshold = demands.threshold(name)
        if threshold and settings.slices:
            # TFMA applies a plain `threshold` to every slice.
            whole = [config_pb2.SlicingSpec()]
            metric.per_slice_thresholds.add(slicing_specs=whole, threshold=threshold)
        elif threshold:
            metric.threshold.CopyFrom(threshold)
        metrics.append(metric)
    slices = [config_pb2.SlicingSpec(feature_keys=[name]) for name in settings.slices]
    metrics += _slice_metrics(settings, names, options, slices)
    needs_scores = any(registry.metric_class(name).needs_scores for name in names)
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                signature_name=SIGNATURE,
                model_type=tfma.TF_GENERIC,
                label_key=LABEL_FEATURE,
                prediction_key=PREDICTION_OUTPUT,
                # TFMA calls it beside the signature above, with the features that are named like
                # its inputs.
                preprocessing_function_names=[tfma_metrics.SCORE_SIGNATURE] if needs_scores else [],
            )
        ],
        slicing_specs=[config_pb2.SlicingSpec(), *slices],
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
    )


@dataclasses.dataclass(frozen=True)
class Demands:
    """The conditions for a push, by metric.

    Attributes:
        bounds: absolute.
        changes: on the change from the last blessed model.
    """

    bounds: Mapping[str, float]
    changes: Mapping[str, float]

    def threshold(self, name: str) -> config_pb2.MetricThreshold | None:
        """Returns TFMA's threshold of a metric; None if it has no bound."""
        bound, change = self.bounds.get(name), self.changes.get(name)
        if bound is None and change is None:
            return None
        threshold = config_pb2.MetricThreshold()
        lower_is_better = registry.metric_class(name).lower_is_better
        if bound is not None:
            side = "upper_bound" if lower_is_better else "lower_bound"
            getattr(threshold.value_threshold, side).value = bound
        if change is not None:
            threshold.change_threshold.direction = (
                config_pb2.MetricDirection.LOWER_IS_BETTER
                if lower_is_better
                else config_pb2.MetricDirection.HIGHER_IS_BETTER
            )
            threshold.change_threshold.absolute.value = change
        return threshold


def _slice_metrics(
    settings: EvaluationConfig,
    names: Sequence[str],
    options: Mapping[str, Any],
    slices: Sequence[config_pb2.SlicingSpec],
) -> list[config_pb2.MetricConfig]:
    """Returns the metrics for the slices: those with thresholds, and a count."""
    demands = Demands(
        _demanding(settings.slice_thresholds), bounds(settings.slice_change_thresholds)
    )
    metrics = []
    for name in names:
        if threshold := demands.threshold(name):
            own = {"name": name + SLICE_GATE, "min_slice_size": settings.min_slice_size}
            metric = _metric_config(name, {**options, **own})
            metric.per_slice_thresholds.add(slicing_specs=slices, threshold=threshold)
            metrics.append(metric)
    if slices:
        metrics.append(config_pb2.MetricConfig(class_name="ExampleCount"))
    return metrics


def _metric_options(recipe: Recipe) -> dict[str, Any]:
    options = ScoringOptions.of(recipe)
    names = ["language", "tokenization", "database"]
    # Defaults need not be repeated at every metric.
    if options.glossary:
        names.append("glossary")
    if options.placeholders != DEFAULT_OPTIONS.placeholders or options.placeholder_patterns:
        names += ["placeholders", "placeholder_patterns"]
    if options.rare_words != DEFAULT_OPTIONS.rare_words:
        names.append("rare_words")
    return {name: getattr(options, name) for name in names}


def _demanding(thresholds: ThresholdsConfig) -> dict[str, float]:
    """Returns the bounds of a section that can fail: a share of at least 0 cannot."""
    return {
        name: bound
        for name, bound in bounds(thresholds).items()
        if bound or registry.metric_class(name).lower_is_better
    }


def _can_gate(name: str) -> bool:
    """Whether a metric always has a value of at least 0 that is better the higher it is."""
    metric = registry.metric_class(name)
    return metric.always_defined and not metric.lower_is_better


def _metric_config(name: str, options: Mapping[str, Any]) -> config_pb2.MetricConfig:
    class_name = tfma_metrics.CLASSES[name].__name__
    return config_pb2.MetricConfig(
        class_name=class_name, module=METRICS_MODULE, config=json.dumps(options)
    )
