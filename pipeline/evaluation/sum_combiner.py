"""The sums of a TFMA metric, computed by Beam."""

import dataclasses
import functools
import json
import math
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis.metrics import metric_types, metric_util
from tensorflow_model_analysis.proto import config_pb2

from pipeline.metrics import registry
from pipeline.metrics.base import AnyMetric
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions

SOURCE_FEATURE = "source"
#: The outputs of the signature `score`; if a metric needs them, the EvalConfig names it among
#: `preprocessing_function_names`.
SCORE_OUTPUTS = ("log_probability", "token_count")
#: How often training saw the words of an example's texts, which `pipeline.evaluation.extractors`
#: adds: a JSON object.
TRAINING_COUNTS_FEATURE = "training_counts"

#: Sums of a metric's statistics: one float64 vector, or one Counter for NIST.
Sums = Any


@dataclasses.dataclass(frozen=True)
class CombinedMetric:
    """A metric of one model's output.

    Attributes:
        name: its name in `pipeline.metrics`.
        options: fields of `ScoringOptions`.
        keys: TFMA's key of the metric, then those of its buckets.
        eval_config: TFMA's.
        model_name, output_name: TFMA's.
    """

    name: str
    options: dict[str, Any]
    keys: list[metric_types.MetricKey]
    eval_config: config_pb2.EvalConfig | None = None
    model_name: str = ""
    output_name: str = ""


class SumCombiner(beam.CombineFn):
    """Sums a metric's segment statistics.

    Args:
        combined: the metric.
    """

    def __init__(self, combined: CombinedMetric) -> None:
        self._combined = combined
        # Of the words of one example at a time.
        self._training_counts: dict[str, int] = {}
        self._metric: AnyMetric | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Each worker makes its own metric: sacrebleu's tokenizers have caches that cannot be
        # pickled.
        return {**self.__dict__, "_metric": None}

    def _scoring_metric(self) -> AnyMetric:
        if self._metric is None:
            options = ScoringOptions(**self._combined.options)
            self._metric = registry.create_metric(
                self._combined.name, options, self._training_counts
            )
        return self._metric

    def create_accumulator(self) -> Sums:
        return self._scoring_metric().zero()

    def add_input(self, accumulator: Sums, element: metric_types.StandardMetricInputs) -> Sums:
        metric = self._scoring_metric()
        labels, predictions, _ = next(
            metric_util.to_label_prediction_example_weight(
                element,
                eval_config=self._combined.eval_config,
                model_name=self._combined.model_name,
                output_name=self._combined.output_name,
                example_weighted=False,
                flatten=False,
                squeeze=False,
            )
        )
        source = ""
        if metric.needs_sources:
            source = one_text(element.features.get(SOURCE_FEATURE), f"feature '{SOURCE_FEATURE}'")
        if metric.needs_training_words:
            counts = element.features.get(TRAINING_COUNTS_FEATURE)
            text = one_text(counts, f"feature '{TRAINING_COUNTS_FEATURE}'")
            self._training_counts.clear()
            self._training_counts.update(json.loads(text))
        references = (one_text(labels, "label"),)
        if metric.needs_scores:
            segment = Segment("", references, source, self._score(element))
        else:
            segment = Segment(one_text(predictions, "prediction"), references, source)
        return metric.add(accumulator, metric.statistics(segment))

    def _score(self, element: metric_types.StandardMetricInputs) -> list[float]:
        """Returns the result of the model's signature `score` for the reference."""
        outputs = element.get_transformed_features(self._combined.model_name) or {}
        return [float(np.asarray(outputs[name]).reshape(-1)[0]) for name in SCORE_OUTPUTS]

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        return functools.reduce(self._scoring_metric().add, accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Sums) -> dict[metric_types.MetricKey, float]:
        metric = self._scoring_metric()
        values = [metric.value(accumulator), *metric.by_bucket(accumulator).values()]
        return {
            key: math.nan if value is None else value
            for key, value in zip(self._combined.keys, values, strict=True)
        }


class SliceGateCombiner(SumCombiner):
    """As `SumCombiner`, with the best possible value for a slice that proves nothing.

    That is a slice of too few examples, or one without anything to measure. It is for a threshold
    on slices. The accumulator is (sums, number of examples).

    Args:
        min_slice_size: the fewest examples that count.
        combined: the metric.
    """

    def __init__(self, min_slice_size: int, combined: CombinedMetric) -> None:
        super().__init__(combined)
        self._min_slice_size = min_slice_size

    def create_accumulator(self) -> tuple[Sums, int]:
        return super().create_accumulator(), 0

    def add_input(
        self, accumulator: tuple[Sums, int], element: metric_types.StandardMetricInputs
    ) -> tuple[Sums, int]:
        sums, examples = accumulator
        return super().add_input(sums, element), examples + 1

    def merge_accumulators(self, accumulators: Iterable[tuple[Sums, int]]) -> tuple[Sums, int]:
        sums, examples = zip(*accumulators)
        zero = super().create_accumulator()
        return functools.reduce(self._scoring_metric().add, sums, zero), sum(examples)

    def extract_output(self, accumulator: tuple[Sums, int]) -> dict[metric_types.MetricKey, float]:
        sums, examples = accumulator
        metric = self._scoring_metric()
        value = metric.value(sums) if examples >= self._min_slice_size else None
        if value is None:
            best = {"share": 1.0}.get(metric.unit, 100.0)
            value = 0.0 if metric.lower_is_better else best
        return {self._combined.keys[0]: value}


def one_text(value: Any, what: str) -> str:
    """Returns the one text in an array of one string, however many axes of size 1 it has.

    Args:
        value: the array, or a sparse or variable-length feature.
        what: its name in the message.

    Raises:
        ValueError: it is not one string.
    """
    value = getattr(value, "values", value)
    array = np.asarray(value).reshape(-1)
    if value is None or array.size != 1:
        raise ValueError(f"The {what} must be one string for each example; got {value!r}.")
    item = array[0]
    return item.decode("utf-8") if isinstance(item, bytes) else str(item)
