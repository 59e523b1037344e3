"""Intervals and p-values:
the bootstrap over resampled test sets, and segments swapped between two systems.

Both sum a segment's statistics again with other weights, so no text is read twice.
"""

import collections.abc
import dataclasses
import functools
import math

import numpy as np

from pipeline.metrics import registry
from pipeline.metrics.base import ScoringError, count_of

SIGNIFICANT = 0.05  # a difference with a smaller p-value is called better or worse
MAX_SAMPLES = 1_000_000  # no p-value needs more; their values are held at once
_BOOTSTRAP_CHUNK_ELEMENTS = 4_000_000  # resampled segment indices held at once: 32 MB of int64


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A paired test of a system against a baseline on one metric.

    Attributes:
        name: the metric's name.
        difference: system minus baseline; None where either is undefined.
        low: 2.5th percentile of the difference over resampled test sets.
        high: 97.5th percentile.
        p_value: how often chance alone would give a difference this large; two-sided.
        signature: test, number of resamples or trials, and seed.
    """

    name: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    signature: str

    def to_dict(self):
        """Returns the comparison as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


class SegmentStatistics:
    """The metrics asked for, with the statistics of each segment that they are computed from;
    what is given is checked once.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`, or one string with commas.
        systems: for each system the list of its outputs.
        references, sources, training_words: as in `pipeline.metrics.scoring.score`.
        options: dict of `create_metric`'s options.
        scores: for each system what `pipeline.metrics.scoring.score` takes as `scores`, or None.

    Attributes:
        names: the single metrics' names, in the order asked for.
        metrics: dict from name to `Metric`.
        reference_count: how many references a segment has; None where segments have different
            numbers.

    Raises:
        ScoringError: as in `pipeline.metrics.scoring.score`.
    """

    def __init__(
        self, metric_names, systems, references, sources, training_words, options, scores=None
    ):
        self.names = registry.expand_metric_names(metric_names)
        self._references = [as_tuple(texts) for texts in references]
        self._sources = None if sources is None else list(sources)
        if not self._references:
            raise ScoringError("There is nothing to score: the list of references is empty.")
        if not all(self._references):
            raise ScoringError(
                f"Segment {self._references.index(())} has no reference; each needs one at least."
            )
        counts = set(map(len, self._references))
        self.reference_count = counts.pop() if len(counts) == 1 else None
        self._check_length("sources", self._sources)
        self.metrics = {
            name: registry.create_metric(name, training_words=training_words, **options)
            for name in self.names
        }
        for name, metric in self.metrics.items():
            if metric.needs_sources and sources is None:
                raise ScoringError(
                    f"The metric '{name}' compares outputs with sources; give the sources too."
                )
            if metric.needs_training_words and training_words is None:
                raise ScoringError(
                    f"The metric '{name}' needs the words seen in training; give the training "
                    "text too."
                )
            if metric.needs_training_counts and not isinstance(
                training_words, collections.abc.Mapping
            ):
                raise ScoringError(
                    f"The metric '{name}' needs how often each word was seen in training; give a "
                    "Counter."
                )
            if metric.needs_scores and (scores is None or None in scores):
                raise ScoringError(
                    f"The metric '{name}' needs a model's probabilities, which texts do not tell: "
                    "measure the model itself with "
                    "'verbatim evaluate'."
                )

        systems = [list(hypotheses) for hypotheses in systems]
        for hypotheses in systems:
            self._check_length("hypotheses", hypotheses)
        if any(metric.needs_scores for metric in self.metrics.values()):
            for of_system in scores:
                self._check_length("scores", of_system)
                self._check_numbers(of_system)
        self._statistics = {
            name: [
                self._measure(metric, given)
                for given in (scores if metric.needs_scores else systems)
            ]
            for name, metric in self.metrics.items()
        }

    @functools.cached_property
    def _tables(self):
        return {
            name: metric.tabulate(self._statistics[name]) for name, metric in self.metrics.items()
        }

    def _check_length(self, kind, texts):
        if texts is not None and len(texts) != len(self._references):
            raise ScoringError(
                f"There are {len(texts)} {kind} for "
                f"{count_of(len(self._references), 'reference')}; "
                "each segment needs one of each."
            )

    @staticmethod
    def _check_numbers(scores):
        for segment, score in enumerate(scores):
            if any(math.isnan(number) for number in score):
                raise ScoringError(
                    f"The score of segment {segment} is not a number: the model is damaged, or "
                    "its training diverged."
                )

    def _measure(self, metric, hypotheses):
        """Returns the statistics of each segment of one system, of which `hypotheses` are the
        outputs, or the scores.
        """
        sources = self._sources or [None] * len(hypotheses)
        return [
            metric.statistics(*segment) for segment in zip(hypotheses, self._references, sources)
        ]

    def sums(self, name, system):
        """Returns a metric's statistics of one system, given by its number, summed over all
        segments.
        """
        metric = self.metrics[name]
        return functools.reduce(metric.add, self._statistics[name][system], metric.zero())

    def resample(self, samples, seed):
        """Returns for each system a dict from metric name to its values on resampled test sets,
        [samples].

        All systems and metrics see the same test sets. Undefined values are NaN.
        """
        _check_samples(samples, "resampled test sets")
        count = len(self._references)
        generator = np.random.default_rng(seed)
        systems = range(len(next(iter(self._statistics.values()))))
        values = [{name: np.empty(samples) for name in self.metrics} for _ in systems]
        chunk = max(1, _BOOTSTRAP_CHUNK_ELEMENTS // count)
        for begin in range(0, samples, chunk):
            size = min(chunk, samples - begin)
            # Drawn in chunks, the indices are those of one large draw: the generator keeps its
            # place.
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

    def swap(self, trials, seed):
        """Returns a dict from metric name to differences of the two systems whose segments are
        swapped at random, [trials].

        Undefined differences are NaN.
        """
        _check_samples(trials, "trials")
        count = len(self._references)
        generator = np.random.default_rng(seed)
        differences = {name: np.empty(trials) for name in self.metrics}
        # The generator draws 32 booleans at once: chunks of so many rows keep its place, so that
        # trials are sacrebleu's.
        chunk = max(32, _BOOTSTRAP_CHUNK_ELEMENTS // count // 32 * 32)
        for begin in range(0, trials, chunk):
            size = min(chunk, trials - begin)
            swapped = generator.integers(2, size=(size, count), dtype=bool).astype(np.float64)
            kept = 1.0 - swapped
            for name in self.metrics:
                first, second = (
                    np.array(self._values(name, dict(enumerate(mix))))
                    for mix in ((kept, swapped), (swapped, kept))
                )
                differences[name][begin : begin + size] = first - second
        return differences

    def _values(self, name, weights):
        """Returns a metric's values on mixtures:
        `weights` is a dict from a system's number to [samples, segments].
        """
        tables, evaluate = self._tables[name]
        rows = zip(*(tables[system].sums(of_system) for system, of_system in weights.items()))
        found = (evaluate(sum(parts)) for parts in rows)
        return [math.nan if value is None else value for value in found]


def _check_samples(number, kind):
    if number > MAX_SAMPLES:
        raise ScoringError(f"{number} {kind} are too many: ask for {MAX_SAMPLES} at most.")


def as_tuple(references):
    """Returns one segment's references;
    an empty text after the first is none, as where files have unequal numbers.
    """
    if isinstance(references, str):
        return (references,)
    return (*references[:1], *(text for text in references[1:] if text))


def compare(table, resampled, samples, seed, swapped=None):
    """Tests the difference of two systems on each metric:
    by randomisation where `swapped` is given, else by bootstrap.

    Args:
        table: the `SegmentStatistics` of system and baseline.
        resampled: what its `resample` returned.
        samples, seed: those of `resample`.
        swapped: what its `swap` returned.

    Returns:
        A dict from metric name to `Comparison`.
    """
    results = {}
    for name, metric in table.metrics.items():
        values = [metric.value(table.sums(name, system)) for system in range(2)]
        difference = None if None in values else values[0] - values[1]
        differences = resampled[0][name] - resampled[1][name]
        low, high = percentiles(differences)
        if swapped is None:
            kind = (
                "sacrebleu paired-bs" if metric.uses_sacrebleu_test else "shifted paired bootstrap"
            )
            test, sizes = (
                f"{kind}|bs:{samples}",
                _shifted_sizes(differences, metric.uses_sacrebleu_test),
            )
        else:
            kind = (
                "sacrebleu paired-ar"
                if metric.uses_sacrebleu_test
                else "paired approximate randomisation"
            )
            test, sizes = f"{kind}|ar:{len(swapped[name])}|bs:{samples}", np.abs(swapped[name])
        results[name] = Comparison(
            name=name,
            difference=difference,
            low=low,
            high=high,
            p_value=_p_value(difference, sizes, metric.uses_sacrebleu_test),
            signature=f"test:{test}|seed:{seed}",
        )
    return results


def verdict(result, baseline, p_value):
    """Returns `better` or `worse` where a system clearly differs from a baseline on a metric, else
    an empty string.

    Clearly is with a p-value below `SIGNIFICANT`. What is better neither large nor small
    (`registry.NEUTRAL`) is neither.

    Args:
        result, baseline: `MetricResult`s of the two; None where one was not measured.
        p_value: of their difference; None where it was not tested.
    """
    if result is None or baseline is None or p_value is None or p_value >= SIGNIFICANT:
        return ""
    if (
        None in (result.value, baseline.value)
        or result.value == baseline.value
        or result.name in registry.NEUTRAL
    ):
        return ""
    return "better" if (result.value > baseline.value) != result.lower_is_better else "worse"


def percentiles(values):
    """Returns the ends of the 95 % interval of values on resampled test sets, or None twice where
    none has a value.
    """
    if values is None or np.isnan(values).all():
        return None, None
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def _shifted_sizes(differences, uses_sacrebleu_test):
    """Returns the sizes of resampled differences, shifted as if the systems did not differ;
    undefined ones are left out.
    """
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return differences
    if uses_sacrebleu_test:
        return np.abs(differences) - np.abs(differences).mean()
    return np.abs(differences - differences.mean())


def _p_value(difference, sizes, uses_sacrebleu_test):
    """Returns (c + 1) / (n + 1), c of the n sizes being as large as the observed difference;
    sacrebleu's, larger.
    """
    sizes = sizes[~np.isnan(sizes)]
    if difference is None or not len(sizes):
        return None
    if difference == 0:
        return 1.0  # sacrebleu's formula would give its smallest p-value to two equal systems
    if uses_sacrebleu_test:
        extreme = np.count_nonzero(sizes > abs(difference))
    else:
        # The tolerance keeps ties of shares, which are sums of a few equal steps, ties.
        extreme = np.count_nonzero(sizes >= abs(difference) - 1e-12)
    return float((extreme + 1) / (len(sizes) + 1))
