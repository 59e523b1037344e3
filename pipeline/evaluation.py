"""What the Evaluator measures, what it demands before a model is pushed, and what it said.

TFX's own Evaluator does the work; the metrics are those of `pipeline.tfma_metrics`.
"""

import json
import math

import tensorflow_model_analysis as tfma

from pipeline import scoring

SIGNATURE = "serving_default"
LABEL_FEATURE = "target"
PREDICTION_OUTPUT = "text"
METRICS_MODULE = "pipeline.tfma_metrics"


def build_eval_config(recipe):
    """Returns the `tfma.EvalConfig` of a recipe.

    BLEU always has a threshold, if only 0: TFX blesses nothing where no threshold is set. Placeholder fidelity has one
    where the recipe demands more than 0, because on a test split without placeholders it is undefined and would block.

    Args:
        recipe: a `pipeline.configs.Recipe`; reads `evaluation` and `data.target_language`.
    """
    options = {"language": recipe.data.target_language, "tokenization": recipe.data.tokenization}
    metrics = [
        _metric_config("CorpusBleu", options, recipe.evaluation.min_bleu),
        _metric_config("CorpusChrf"),
        _metric_config("ExactMatch"),
        _metric_config("PlaceholderFidelity", options, recipe.evaluation.min_placeholder_fidelity or None),
    ]
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


def _metric_config(class_name, options=None, lower_bound=None):
    config = tfma.MetricConfig(class_name=class_name, module=METRICS_MODULE, config=json.dumps(options or {}))
    if lower_bound is not None:
        config.threshold.value_threshold.lower_bound.value = lower_bound
    return config


def _failure_sentence(failure):
    name = failure.metric_key.name
    label = scoring.LABELS.get(name, name)
    value = failure.metric_value.double_value.value
    bound = failure.metric_threshold.value_threshold.lower_bound.value
    if math.isnan(value):
        return f"{label} is undefined (nothing in the test split to measure it on), and at least {bound:g} is demanded"
    return f"{label} is {value:.4g}, below the {bound:g} demanded"
