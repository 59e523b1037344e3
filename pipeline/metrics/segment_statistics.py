"""The statistics of each segment, for scores, intervals and paired tests."""

import collections.abc
import functools
import math
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from pipeline.metrics import registry
from pipeline.metrics.base import AnyMetric, FloatArray, ScoringError, Table, count_of
from pipeline.metrics.scored_texts import Score, ScoredTexts, Segment, as_tuple
from pipeline.metrics.scoring_options import ScoringOptions

#: No p-value needs more samples; their values are held at once.
MAX_SAMPLES = 1_000_000
# Resampled segment indices held at once: 32 MB of int64.
_BOOTSTRAP_CHUNK_ELEMENTS = 4_000_000


class SegmentStatistics:
    """The statistics of each segment of one system or more, for some metrics.

    Resampling sums them again with other weights, so no text is read twice. The texts are checked
    here.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`, or one string with commas.
        systems: the texts of each system; all have the same references, sources and training words.
        options: how outputs are scored.

    Attributes:
        metrics: dict from name to `Metric`, in the order asked for.
        reference_count: how many references a segment has; None where segments have different
            numbers.

    Raises:
        ScoringError: as in `pipeline.metrics.scoring.score`.
    """

    def __init__(
        self,
        metric_names: str | Sequence[str],
        systems: Sequence[ScoredTexts],
        options: ScoringOptions,
    ) -> None:
        shared = systems[0]
        self._references = [as_tuple(texts) for texts in shared.references]
        if not self._references:
            raise ScoringError("The list of references is empty: give at least one segment.")
        if not all(self._references):
            raise ScoringError(
                f"Segment {self._references.index(())} has no reference; each needs at least one."
            )
        counts = set(map(len, self._references))
        self.reference_count = counts.pop() if len(counts) == 1 else None
        self._check_length("sources", shared.sources)
        self.metrics: dict[str, AnyMetric] = {
            name: registry.create_metric(name, options, shared.training_words)
            for name in registry.expand_metric_names(metric_names)
        }
        for name, metric in self.metrics.items():
            _check_texts(name, metric, systems)

        for texts in systems:
            self._check_length("hypotheses", texts.hypotheses)
        if any(metric.needs_scores for metric in self.metrics.values()):
            for texts in systems:
                self._check_length("scores", texts.scores)
                _check_numbers(texts.scores or ())
        segments = [self._segments(texts) for texts in systems]
        self._statistics: dict[str, list[list[Any]]] = {
            name: [list(map(metric.statistics, of_system)) for of_system in segments]
            for name, metric in self.metrics.items()
        }

    def _segments(self, texts: ScoredTexts) -> list[Segment]:
        count = len(self._references)
        columns = zip(
            texts.hypotheses,
            self._references,
            texts.sources or [""] * count,
            texts.scores or [(0.0, 0)] * count,
        )
        return [Segment(*column) for column in columns]

    @functools.cached_property
    def _tables(self) -> dict[str, tuple[list[Table], Callable[[FloatArray], float | None]]]:
        return {
            name: metric.tabulate(self._statistics[name]) for name, metric in self.metrics.items()
        }

    def _check_length(self, kind: str, texts: Sized | None) -> None:
        if texts is not None and len(texts) != len(self._references):
            raise ScoringError(
                f"There are {len(texts)} {kind} for "
                f"{count_of(len(self._references), 'reference')}; each segment needs one of each."
            )

    def sums(self, name: str, system: int) -> Any:
        """Returns a metric's statistics of one system, by its number, summed over all segments."""
        metric = self.metrics[name]
        return functools.reduce(metric.add, self._statistics[name][system], metric.zero())

    def resample(self, samples: int, seed: int) -> list[dict[str, FloatArray]]:
        """Returns the values of the metrics on resampled test sets.

        For each system it is a dict from metric name to values, `[samples]`. All systems and
        metrics see the same test sets. Undefined values are NaN.
        """
        _check_samples(samples, "resampled test sets")
        count = len(self._references)
        generator = np.random.default_rng(seed)
        systems = range(len(next(iter(self._statistics.values()))))
        values = [{name: np.empty(samples) for name in self.metrics} for _ in systems]
        chunk = max(1, _BOOTSTRAP_CHUNK_ELEMENTS // count)
        for begin in range(0, samples, chunk):
            size = min(chunk, samples - begin)
            # Drawn in chunks, the indices are those of one large draw: the generator continues.
            indices = generator.choice(count, size=(size, count), replace=True)
            weights = np.stack([np.bincount(row, minlength=count) for row in indices]).astype(
                np.float64
            )
            for name in self.metrics:
                for system in systems:
                    values[system][name][begin : begin + size] = self._values(
                        name, {system: weights}
                    )
        return values

    def swap(self, trials: int, seed: int) -> dict[str, FloatArray]:
        """Returns the differences of two systems whose segments are swapped at random.

        It is a dict from metric name to differences, `[trials]`. Undefined differences are NaN.
        """
        _check_samples(trials, "trials")
        count = len(self._references)
        generator = np.random.default_rng(seed)
        differences = {name: np.empty(trials) for name in self.metrics}
        # The generator draws 32 booleans at once: chunks of a multiple of 32 rows continue one
        # draw, so that trials are sacrebleu's.
        chunk = max(32, _BOOTSTRAP_CHUNK_ELEMENTS // count // 32 * 32)
        for begin in range(0, trials, chunk):
            size = min(chunk, trials - begin)
            swapped = generator.integers(2, size=(size, count), dtype=bool).astype(np.float64)
            unswapped = 1.0 - swapped
            for name in self.metrics:
                first, second = (
                    np.array(self._values(name, dict(enumerate(mix))))
                    for mix in ((unswapped, swapped), (swapped, unswapped))
                )
                differences[name][begin : begin + size] = first - second
        return differences

    def _values(self, name: str, weights: dict[int, FloatArray]) -> list[float]:
        """Returns a metric's values on mixtures of systems.

        Args:
            name: the metric's.
            weights: from a system's number to its segments' weights, `[samples, segments]`.
        """
        tables, evaluate = self._tables[name]
        rows = zip(*(tables[system].sums(of_system) for system, of_system in weights.items()))
        values = (evaluate(functools.reduce(np.add, parts)) for parts in rows)
        return [math.nan if value is None else value for value in values]


def _check_texts(name: str, metric: AnyMetric, systems: Sequence[ScoredTexts]) -> None:
    """Raises `ScoringError` if a metric needs more than the texts have."""
    shared = systems[0]
    if metric.needs_sources and shared.sources is None:
        raise ScoringError(
            f"The metric '{name}' compares outputs with sources; give the sources too."
        )
    if metric.needs_training_words and shared.training_words is None:
        raise ScoringError(
            f"The metric '{name}' needs the words seen in training; give the training text too."
        )
    if metric.needs_training_counts and not isinstance(
        shared.training_words, collections.abc.Mapping
    ):
        raise ScoringError(
            f"The metric '{name}' needs how often each word was seen in training; give a Counter."
        )
    if metric.needs_scores and any(texts.scores is None for texts in systems):
        raise ScoringError(
            f"The metric '{name}' needs a model's probabilities, not only texts: measure the model "
            "with 'verbatim evaluate'."
        )


def _check_numbers(scores: Sequence[Score]) -> None:
    for segment, score in enumerate(scores):
        if any(math.isnan(number) for number in score):
            raise ScoringError(
                f"The score of segment {segment} is not a number: the model is damaged, or its "
                "training diverged."
            )


def _check_samples(number: int, kind: str) -> None:
    if number > MAX_SAMPLES:
        raise ScoringError(f"{number} {kind} are too many: use at most {MAX_SAMPLES}.")
