"""What the Evaluator measures, what it demands before a model is pushed, and what it said.

TFX's own Evaluator does the work; the metrics are those of `pipeline.tfma_metrics`.
"""

import json
import math

import tensorflow_model_analysis as tfma

from pipeline import scoring, tfma_metrics

SIGNATURE = "serving_default"
LABEL_FEATURE = "target"
PREDICTION_OUTPUT = "text"
METRICS_MODULE = tfma_metrics.__name__
_ALWAYS_DEFINED = "exact_match"


def build_eval_config(recipe):
    """Returns the `tfma.EvalConfig` of a recipe.

    The metrics are the recipe's, but for those that need the training text. TFX blesses nothing where no threshold is set:
    then the first metric that always has a value must reach 0. A bound of 0 demands nothing, so a metric that has none of
    its cases in the test split, and hence no value, does not block by it.

    Args:
        recipe: a `pipeline.configs.Recipe`; reads `evaluation`, `data.target_language` and `data.tokenization`.
    """
    options = scoring.options_of(recipe)
    names = [name for name in recipe.evaluation.metrics if not scoring.metric_class(name).needs_training_words]
    bounds = {name: getattr(recipe.evaluation.thresholds, name) for name in names}
    bounds = {name: bound for name, bound in bounds.items() if bound or scoring.metric_class(name).lower_is_better}
    bounds = {name: bound for name, bound in bounds.items() if bound is not None}
    if not bounds:
        always = [name for name in names if _can_gate(name)]
        names += [] if always else [_ALWAYS_DEFINED]
        bounds = {(always or [_ALWAYS_DEFINED])[0]: 0.0}
    metrics = [_metric_config(name, options, bounds.get(name)) for name in names]
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name=SIGNATURE,
                model_type=tfma.TF_GENERIC,
                label_key=LABEL_FEATURE,
                prediction_key=PREDICTION_OUTPUT,
            )
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[tfma.MetricsSpec(metrics=metrics)],
    )


def read_metrics(evaluation_directory):
    """Returns the overall metrics that an evaluation wrote, a dict from name to float; undefined ones are None.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
    """
    result = tfma.load_eval_result(str(evaluation_directory))
    metrics = result.get_metrics_for_slice(())
    values = {name: value.get("doubleValue") for name, value in metrics.items()}
    return {name: None if value is None or math.isnan(float(value)) else float(value) for name, value in values.items()}


def read_blessing(evaluation_directory):
    """Returns (blessed, reason): what the thresholds said about a model, the reason one sentence.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
    """
    result = tfma.load_validation_result(str(evaluation_directory))
    if result.validation_ok:
        return True, "Every threshold of the recipe is met on the test split."
    failures = [
        _failure_sentence(failure)
        for for_slice in result.metric_validations_per_slice
        for failure in for_slice.failures
    ]
    if result.missing_slices or not failures:
        failures.append("a metric with a threshold was not computed")
    return False, f"Not pushed: {'; '.join(failures)}."


def _can_gate(name):
    """Whether a metric always has a value, and one of at least 0 that is better the higher it is."""
    return scoring.metric_class(name).always_defined and not scoring.metric_class(name).lower_is_better


def _metric_config(name, options, bound):
    class_name = tfma_metrics.CLASSES[name].__name__
    config = tfma.MetricConfig(class_name=class_name, module=METRICS_MODULE, config=json.dumps(options))
    if bound is not None:
        side = "upper_bound" if scoring.metric_class(name).lower_is_better else "lower_bound"
        getattr(config.threshold.value_threshold, side).value = bound
    return config


def _failure_sentence(failure):
    name = failure.metric_key.name
    label = scoring.LABELS.get(name, name)
    value = failure.metric_value.double_value.value
    threshold = failure.metric_threshold.value_threshold
    at_most = threshold.HasField("upper_bound")
    bound = (threshold.upper_bound if at_most else threshold.lower_bound).value
    if math.isnan(value):
        return (
            f"{label} is undefined (nothing in the test split to measure it on), and at {'most' if at_most else 'least'} "
            f"{bound:g} is demanded"
        )
    return f"{label} is {value:.4g}, {'above' if at_most else 'below'} the {bound:g} demanded"
