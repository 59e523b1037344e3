"""Reads the Evaluator's results, and its decision by the thresholds."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2, validation_result_pb2

from pipeline.evaluation import tfma_metrics
from pipeline.evaluation.eval_config import SLICE_GATE
from pipeline.metrics import registry
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.task_rules import compares_with_last_blessed

_EXAMPLE_COUNT = "example_count"
# The most failures that a reason names.
_MOST_FAILURES = 8

#: Names of features and their values; empty for the whole split.
SliceKey = Sequence[tuple[str, Any]]
#: Values by the names of metrics; undefined ones are None.
Values = dict[str, float | None]


class SliceResult(TypedDict):
    """The results of an evaluation on a slice.

    Attributes:
        slice: its name, such as `domain = law`.
        n: number of pairs.
        metrics: the candidate's.
        last_blessed: those of the last blessed model; empty if there was none to compare with.
    """

    slice: str
    n: int
    metrics: Values
    last_blessed: Values


def read_metrics(evaluation_directory: str | os.PathLike[str]) -> Values:
    """Returns the overall metrics that an evaluation wrote.

    Those of a bucket are among them, as `word_f1_by_length/10-19`.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
    """
    directory = str(evaluation_directory)
    name = tfma.CANDIDATE_KEY if _compared(directory) else None
    result = tfma.load_eval_result(directory, model_name=name)
    return _values(result.get_metrics_for_slice(()))


def read_slices(evaluation_directory: str | os.PathLike[str]) -> list[SliceResult]:
    """Returns the results of an evaluation on each slice; [] if the recipe has no slices.

    They are in the order of the slices' names.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
    """
    directory = str(evaluation_directory)
    keys = (tfma.CANDIDATE_KEY, tfma.BASELINE_KEY) if _compared(directory) else (None,)
    results = [
        {_slice_name(key): metrics for key, metrics in _metrics_of_slices(directory, name) if key}
        for name in keys
    ]
    slices: list[SliceResult] = []
    for name in sorted(results[0], key=_natural_order):
        values, *others = (result[name] for result in results)
        values = {key: value for key, value in values.items() if tfma_metrics.BUCKET not in key}
        slices.append(
            {
                "slice": name,
                "n": int(values.pop(_EXAMPLE_COUNT, 0) or 0),
                "metrics": values,
                "last_blessed": {key: other[key] for other in others for key in values},
            }
        )
    return slices


def read_blessing(
    evaluation_directory: str | os.PathLike[str], recipe: Recipe | None = None
) -> tuple[bool, str]:
    """Returns (blessed, reason): the decision of the thresholds, with a reason of one sentence.

    Args:
        evaluation_directory: the Evaluator's `evaluation` artifact.
        recipe: the run's recipe, to name the compared model in the reason; None leaves it out.
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


def _compared(directory: str) -> bool:
    """Whether an evaluation had a last blessed model to compare with."""
    # The Evaluator's input config has one model; its output has the baseline too.
    config = tfma.load_eval_result(directory, model_name=tfma.CANDIDATE_KEY).config
    return any(spec.is_baseline for spec in config.model_specs)


def _metrics_of_slices(directory: str, model_name: str | None) -> Iterator[tuple[SliceKey, Values]]:
    result = tfma.load_eval_result(directory, model_name=model_name)
    for key in result.get_slice_names():
        yield key, _values(result.get_metrics_for_slice(key))


def _values(metrics: Mapping[str, Mapping[str, Any]]) -> Values:
    # With a baseline, TFMA puts beside each metric its difference.
    names = [name for name in metrics if not name.removesuffix("_diff").endswith(SLICE_GATE)]
    values = {
        name: metrics[name].get("doubleValue") for name in names if not name.endswith("_diff")
    }
    return {
        name: None if value is None or math.isnan(float(value)) else float(value)
        for name, value in values.items()
    }


def _slice_name(key: SliceKey) -> str:
    return ", ".join(f"{name} = {value}" for name, value in key)


def _slice_of(validation: validation_result_pb2.MetricsValidationForSlice) -> str:
    """Returns the name of the slice that a validation is about; empty for the whole split."""
    parts = []
    for key in validation.slice_key.single_slice_keys:
        value = getattr(key, key.WhichOneof("kind"))
        parts.append((key.column, value.decode("utf-8") if isinstance(value, bytes) else value))
    return _slice_name(parts)


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Returns a key that sorts `source_length = 9` before `source_length = 10-19`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _failure_sentence(failure: validation_result_pb2.ValidationFailure, slice_name: str) -> str:
    name = failure.metric_key.name.removesuffix(SLICE_GATE)
    label = registry.LABELS.get(name, name)
    where = f"on the slice {slice_name}, " if slice_name else ""
    value = failure.metric_value.double_value.value
    if failure.metric_threshold.HasField("change_threshold"):
        change = failure.metric_threshold.change_threshold
        side = "most" if change.direction == config_pb2.MetricDirection.LOWER_IS_BETTER else "least"
        if math.isnan(value):
            return f"{where}the change of {label} from the last blessed model is undefined"
        return (
            f"{where}{label} is {abs(value):.4g} {'above' if value > 0 else 'below'} that of the "
            f"last blessed model, and a change of at {side} {change.absolute.value:+g} is demanded"
        )
    threshold = failure.metric_threshold.value_threshold
    at_most = threshold.HasField("upper_bound")
    bound = (threshold.upper_bound if at_most else threshold.lower_bound).value
    if math.isnan(value):
        return (
            f"{where}{label} is undefined (the test split has no case of it), and at "
            f"{'most' if at_most else 'least'} {bound:g} is demanded"
        )
    return (
        f"{where}{label} is {value:.4g}, {'above' if at_most else 'below'} the {bound:g} demanded"
    )
