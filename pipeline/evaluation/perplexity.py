"""Perplexity of an exported language model over passages, and its threshold in the Evaluator.

It is a metric for TensorFlow Model Analysis. Any worker can measure any passage.
`pipeline.evaluation.perplexity_of_text` measures the whole stream with carried states.

    perplexity = exp(- sum of log p(w) / number of words)

over the words that are new in each passage: words repeated from the passage before are only read
for context. The sum is exact, so it is the same in whatever order workers add.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from numpy.typing import ArrayLike
from tensorflow_model_analysis.metrics import metric_types
from tensorflow_model_analysis.proto import config_pb2

from pipeline.metrics.base import exact_parts
from pipeline.metrics.perplexity import perplexity_of
from pipeline.recipes.recipe import Recipe

NAME = "passage_perplexity"
SIGNATURE = "score"
CONTEXT_FEATURE = "context"
# A threshold that every finite perplexity meets, because TFX blesses no model without a threshold.
_NO_THRESHOLD = 1e30

#: The exact sum of log-probabilities in two parts, and the number of words.
Sums = tuple[float, float, int]


def statistics(log_probability: ArrayLike, token_count: int, context: int) -> tuple[float, int]:
    """Returns (sum of log-probabilities, number of words) of the new words of one passage.

    Args:
        log_probability: float `[T]`, padded.
        token_count: words of the passage.
        context: how many at its beginning are not new.
    """
    new = np.asarray(log_probability, np.float64)[int(context) : int(token_count)]
    return float(new.sum()), len(new)


class _Combiner(beam.CombineFn):
    """Sums log-probabilities and words over passages, wherever Beam reads them."""

    def __init__(self, key: metric_types.MetricKey, model_name: str = "") -> None:
        self._key = key
        self._model_name = model_name

    def create_accumulator(self) -> Sums:
        return (0.0, 0.0, 0)

    def add_input(self, accumulator: Sums, element: metric_types.StandardMetricInputs) -> Sums:
        # Of several models, each has its own.
        predictions = element.predictions.get(self._model_name, element.predictions)
        log_probability, token_count = (
            np.asarray(predictions[name]).reshape(-1) for name in ("log_probability", "token_count")
        )
        context = np.asarray(_dense(element.features[CONTEXT_FEATURE])).reshape(-1)[0]
        new, words = statistics(log_probability, token_count[0], context)
        return self.merge_accumulators([accumulator, (*exact_parts(new), words)])

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        coarse, fine, words = map(sum, zip(*accumulators))
        return coarse, fine, words

    def extract_output(self, accumulator: Sums) -> dict[metric_types.MetricKey, float]:
        coarse, fine, words = accumulator
        value = perplexity_of(coarse + fine, words)
        return {self._key: math.nan if value is None else value}


def _dense(feature: Any) -> Any:
    """Returns the values of a feature, which may be sparse."""
    return getattr(feature, "values", feature)


class Perplexity(metric_types.Metric):
    """Perplexity of a language model.

    Its signature `score` gives `log_probability` `[N, T]` and `token_count` `[N]`.

    Args:
        name: key under which TFMA reports it.
    """

    def __init__(self, name: str = NAME) -> None:
        def create_computations(
            name: str = name,
            eval_config: config_pb2.EvalConfig | None = None,
            model_names: Sequence[str] | None = None,
            output_names: Sequence[str] | None = None,
            **unused: Any,
        ) -> list[metric_types.MetricComputation]:
            keys = [
                metric_types.MetricKey(name=name, model_name=model_name, output_name=output_name)
                for model_name in model_names or [""]
                for output_name in output_names or [""]
            ]
            preprocessor = metric_types.FeaturePreprocessor(feature_keys=[CONTEXT_FEATURE])
            return [
                metric_types.MetricComputation(
                    keys=[key],
                    preprocessors=[preprocessor],
                    combiner=_Combiner(key, key.model_name),
                )
                for key in keys
            ]

        super().__init__(create_computations, name=name)


metric_types.register_metric(Perplexity)


def build_eval_config(recipe: Recipe) -> config_pb2.EvalConfig:
    """Returns the `tfma.EvalConfig` of a recipe of the task `language_model`."""
    metric = config_pb2.MetricConfig(
        class_name=Perplexity.__name__, module=__name__, config=json.dumps({})
    )
    metric.threshold.value_threshold.upper_bound.value = (
        recipe.language_model.max_perplexity or _NO_THRESHOLD
    )
    if recipe.language_model.max_perplexity_change is not None:
        change = metric.threshold.change_threshold
        change.direction = config_pb2.MetricDirection.LOWER_IS_BETTER
        change.absolute.value = recipe.language_model.max_perplexity_change
    return config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(signature_name=SIGNATURE, model_type=tfma.TF_GENERIC)],
        slicing_specs=[config_pb2.SlicingSpec()],
        metrics_specs=[config_pb2.MetricsSpec(metrics=[metric])],
    )
