"""What the Evaluator measures, what it demands before a model is pushed, and what it said.

TFX's own Evaluator does the work; the metrics are those of `pipeline.evaluation.tfma_metrics`.
"""

import json
import math
import re

import tensorflow_model_analysis as tfma

from pipeline.evaluation import tfma_metrics
from pipeline.metrics import registry
from pipeline.recipes.task_rules import compares_with_last_blessed

SIGNATURE = "serving_default"
LABEL_FEATURE = "target"
PREDICTION_OUTPUT = "text"
METRICS_MODULE = tfma_metrics.__name__
#: The end of the names of metrics that are there for the thresholds on slices alone.
SLICE_GATE = "_in_slices"
_ALWAYS_DEFINED = "exact_match"
_EXAMPLE_COUNT = "example_count"
_MOST_FAILURES = 8  # that a reason names


def build_eval_config(recipe):
    """Returns the `tfma.EvalConfig` of a recipe.

    The metrics are the recipe's. TFX blesses nothing where no threshold is set, and sets aside what
    is demanded of a change where no model was blessed before: so, where no absolute threshold is
    set, the first metric that always has a value must reach 0. A bound of 0 demands nothing, so a
    metric that has none of its cases in the test split, and hence no value, does not block by it.

    What is demanded of each slice is demanded of metrics of their own, named with `SLICE_GATE`: see
    `tfma_metrics`' `min_slice_size`.

    Args:
        recipe: a `pipeline.recipes.recipe.Recipe`; reads `evaluation`, `data.target_language` and
            `data.tokenization`.
    """
    settings, options = recipe.evaluation, registry.options_of(recipe)
    names = list(settings.metrics)
    bounds = _demanding(settings.thresholds)
    changes = _given(settings.change_thresholds)
    if not bounds:
        always = [name for name in names if _can_gate(name)]
        names += [] if always else [_ALWAYS_DEFINED]
        bounds = {(always or [_ALWAYS_DEFINED])[0]: 0.0}
    metrics = []
    for name in names:
        metric = _metric_config(name, options)
        if name in bounds or name in changes:
            threshold = _threshold(name, bounds.get(name), changes.get(name))
            if settings.slices:
                # TFMA demands a plain `threshold` of every slice.
                metric.per_slice_thresholds.add(
                    slicing_specs=[tfma.SlicingSpec()], threshold=threshold
                )
            else:
                metric.threshold.CopyFrom(threshold)
        metrics.append(metric)
    slices = [tfma.SlicingSpec(feature_keys=[name]) for name in settings.slices]
    bounds, changes = (
        _demanding(settings.slice_thresholds),
        _given(settings.slice_change_thresholds),
    )
    for name in names:
        if name in bounds or name in changes:
            metric = _metric_config(
                name,
                {**options, "name": name + SLICE_GATE, "min_slice_size": settings.min_slice_size},
            )
            threshold = _threshold(name, bounds.get(name), changes.get(name))
            metric.per_slice_thresholds.add(slicing_specs=slices, threshold=threshold)
            metrics.append(metric)
    if slices:
        metrics.append(tfma.MetricConfig(class_name="ExampleCount"))
    needs_scores = any(registry.metric_class(name).needs_scores for name in names)
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name=SIGNATURE,
                model_type=tfma.TF_GENERIC,
                label_key=LABEL_FEATURE,
                prediction_key=PREDICTION_OUTPUT,
                # TFMA calls it beside the signature above, with the features that are named like
                # its inputs.
                preprocessing_function_names=[tfma_metrics.SCORE_SIGNATURE] if needs_scores else [],
            )
        ],
        slicing_specs=[tfma.SlicingSpec(), *slices],
        metrics_specs=[tfma.MetricsSpec(metrics=metrics)],
    )


def read_metrics(evaluation_directory):
    """Returns the overall metrics that an evaluation wrote, a dict from name to float;
    undefined ones are None.

    Those of a bucket are among them, as `word_f1_by_length/10-19`.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
    """
    directory = str(evaluation_directory)
    name = tfma.CANDIDATE_KEY if _compared(directory) else None
    result = tfma.load_eval_result(directory, model_name=name)
    return _values(result.get_metrics_for_slice(()))


def read_slices(evaluation_directory):
    """Returns what an evaluation found on each slice: [] where the recipe asks for none.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.

    Returns:
        A list of {"slice": `domain = law`, "n": number of pairs, "metrics": {name: float or None},
        "last_blessed": the same of the last blessed model, {} where there was none to compare
        with}, in the order of the slices' names.
    """
    directory = str(evaluation_directory)
    keys = (tfma.CANDIDATE_KEY, tfma.BASELINE_KEY) if _compared(directory) else (None,)
    results = [
        {_slice_name(key): metrics for key, metrics in _metrics_of_slices(directory, name) if key}
        for name in keys
    ]
    slices = []
    for name in sorted(results[0], key=_natural_order):
        values, *others = (result[name] for result in results)
        values = {key: value for key, value in values.items() if tfma_metrics.BUCKET not in key}
        slices.append(
            {
                "slice": name,
                "n": int(values.pop(_EXAMPLE_COUNT, 0)),
                "metrics": values,
                "last_blessed": {key: other[key] for other in others for key in values},
            }
        )
    return slices


def read_blessing(evaluation_directory, recipe=None):
    """Returns (blessed, reason): what the thresholds said about a model, the reason one sentence.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
        recipe: the run's recipe, for a sentence that says what it was compared with; None says
            nothing of it.
    """
    result = tfma.load_validation_result(str(evaluation_directory))
    if result.validation_ok:
        reason = "Every threshold of the recipe is met on the test split"
        if recipe is not None and compares_with_last_blessed(recipe):
            if _compared(str(evaluation_directory)):
                reason += ", and so is every change from the last blessed model that it demands"
            else:
                reason += "; no model was blessed before that this one could be compared with"
        return True, f"{reason}."
    failures = []
    # The whole split first, then slice by slice.
    for for_slice in sorted(
        result.metric_validations_per_slice, key=lambda one: _natural_order(_slice_of(one))
    ):
        failures += [
            _failure_sentence(failure, _slice_of(for_slice)) for failure in for_slice.failures
        ]
    if result.missing_slices or not failures:
        failures.append("a metric with a threshold was not computed")
    if len(failures) > _MOST_FAILURES:
        failures[_MOST_FAILURES:] = [f"and {len(failures) - _MOST_FAILURES} more"]
    return False, f"Not pushed: {'; '.join(failures)}."


def _compared(directory):
    """Whether an evaluation had a last blessed model to compare with."""
    # The config as the Evaluator was given it has one model; what it wrote has the baseline too.
    config = tfma.load_eval_result(directory, model_name=tfma.CANDIDATE_KEY).config
    return any(spec.is_baseline for spec in config.model_specs)


def _metrics_of_slices(directory, model_name):
    result = tfma.load_eval_result(directory, model_name=model_name)
    for key in result.get_slice_names():
        yield key, _values(result.get_metrics_for_slice(key))


def _values(metrics):
    # With a baseline, TFMA puts beside each metric its difference.
    names = [name for name in metrics if not name.removesuffix("_diff").endswith(SLICE_GATE)]
    values = {
        name: metrics[name].get("doubleValue") for name in names if not name.endswith("_diff")
    }
    return {
        name: None if value is None or math.isnan(float(value)) else float(value)
        for name, value in values.items()
    }


def _slice_name(key):
    return ", ".join(f"{name} = {value}" for name, value in key)


def _slice_of(validation):
    """Returns the name of the slice that a `MetricsValidationForSlice` is about;
    empty for the whole split.
    """
    parts = []
    for key in validation.slice_key.single_slice_keys:
        value = getattr(key, key.WhichOneof("kind"))
        parts.append((key.column, value.decode("utf-8") if isinstance(value, bytes) else value))
    return _slice_name(parts)


def _natural_order(name):
    """Sorts `source_length = 9` before `source_length = 10-19`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _given(section):
    return {name: bound for name, bound in vars(section).items() if bound is not None}


def _demanding(thresholds):
    """Returns the bounds of a section that demand something: a share of at least 0 does not."""
    bounds = _given(thresholds)
    return {
        name: bound
        for name, bound in bounds.items()
        if bound or registry.metric_class(name).lower_is_better
    }


def _can_gate(name):
    """Whether a metric always has a value, and one of at least 0 that is better the higher it is."""
    return (
        registry.metric_class(name).always_defined
        and not registry.metric_class(name).lower_is_better
    )


def _metric_config(name, options):
    class_name = tfma_metrics.CLASSES[name].__name__
    return tfma.MetricConfig(
        class_name=class_name, module=METRICS_MODULE, config=json.dumps(options)
    )


def _threshold(name, bound, change):
    """Returns the `MetricThreshold` of an absolute bound and of one on the change from the last
    blessed model; None for none.
    """
    threshold = tfma.MetricThreshold()
    lower_is_better = registry.metric_class(name).lower_is_better
    if bound is not None:
        getattr(
            threshold.value_threshold, "upper_bound" if lower_is_better else "lower_bound"
        ).value = bound
    if change is not None:
        direction = (
            tfma.MetricDirection.LOWER_IS_BETTER
            if lower_is_better
            else tfma.MetricDirection.HIGHER_IS_BETTER
        )
        threshold.change_threshold.direction = direction
        threshold.change_threshold.absolute.value = change
    return threshold


def _failure_sentence(failure, slice_name):
    name = failure.metric_key.name.removesuffix(SLICE_GATE)
    label = registry.LABELS.get(name, name)
    where = f"on the slice {slice_name}, " if slice_name else ""
    value = failure.metric_value.double_value.value
    if failure.metric_threshold.HasField("change_threshold"):
        change = failure.metric_threshold.change_threshold
        side = "most" if change.direction == tfma.MetricDirection.LOWER_IS_BETTER else "least"
        if math.isnan(value):
            return f"{where}the change of {label} from the last blessed model is undefined"
        return (
            f"{where}{label} is {abs(value):.4g} {'above' if value > 0 else 'below'} that of the "
            "last blessed model, and a change of at "
            f"{side} {change.absolute.value:+g} is demanded"
        )
    threshold = failure.metric_threshold.value_threshold
    at_most = threshold.HasField("upper_bound")
    bound = (threshold.upper_bound if at_most else threshold.lower_bound).value
    if math.isnan(value):
        return (
            f"{where}{label} is undefined (nothing in the test split to measure it on), and at "
            f"{'most' if at_most else 'least'} "
            f"{bound:g} is demanded"
        )
    return (
        f"{where}{label} is {value:.4g}, {'above' if at_most else 'below'} the {bound:g} demanded"
    )
