"""What a metric is: a sum of statistics over segments, and one value computed from the sum."""

import collections
import dataclasses
import itertools
import math
import typing

import numpy as np
import regex

from pipeline.common.errors import VerbatimError

# sacrebleu's own default seed: with it, and the same number of resamples, our resamples are
# sacrebleu's.
DEFAULT_SEED = 12345


class ScoringError(VerbatimError, ValueError):
    """Texts that cannot be scored; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """One metric of one system.

    Attributes:
        name: the metric's name, such as `bleu`.
        value: the corpus value; None where it is undefined (a share of nothing).
        low: lower end of the 95 % interval, None without bootstrap: the 2.5th percentile over
            resampled test sets.
        high: upper end, the 97.5th percentile.
        signature: what one must know to get the same number again.
        details: counts and parts, ready for JSON.
        unit: `points` (0 to 100, for TER also above) or `share` (0 to 1).
        lower_is_better: True for error rates.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    signature: str = ""
    details: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    unit: str = "points"
    lower_is_better: bool = False

    def to_dict(self):
        """Returns the result as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


class Metric:
    """A corpus metric as sums over segments.

    Attributes:
        size: how many statistics a segment has; 0 for a `SparseMetric`, which names them itself.
        unit, lower_is_better: as in `MetricResult`.
        needs_sources, needs_training_words: what besides outputs and references it reads.
        needs_training_counts: whether it asks how often a word was seen in training, not only
            whether.
        needs_scores: whether it reads, in the output's place, what a model's signature `score` says
            of the reference.
        always_defined: whether it has a value for any segments, or may find nothing to measure.
        buckets: names of the parts that `by_bucket` measures; most metrics have none.
    """

    size = 0
    unit = "points"
    lower_is_better = False
    needs_sources = False
    needs_training_words = False
    needs_training_counts = False
    needs_scores = False
    always_defined = True
    buckets = ()
    # sacrebleu publishes a paired test of its own for its metrics; we use its formula for those.
    uses_sacrebleu_test = False

    def statistics(self, hypothesis, references, source):
        """Returns one segment's statistics, a list of `size` numbers.

        Args:
            hypothesis: the output, a string; where `needs_scores`, log-probability and number of
                tokens of the first reference.
            references: a tuple of one string or more; each metric says how it reads several.
            source: the source, a string; None unless `needs_sources`.
        """
        raise NotImplementedError

    def zero(self):
        """Returns the sums of no segment."""
        return np.zeros(self.size, np.float64)

    def add(self, sums, statistics):
        """Returns sums with a segment's statistics, or other sums, added; `sums` may be changed."""
        return sums + np.asarray(statistics, np.float64)

    def tabulate(self, systems):
        """Returns (tables, evaluate): what resampling needs.

        Args:
            systems: for each system the list of its segments' statistics.

        Returns:
            For each system a table with a method `sums(weights)`, and a function from one such row
            of sums to the value.
        """
        return [_DenseTable(statistics) for statistics in systems], self.value

    def value(self, sums):
        """Returns the corpus value from statistics summed over segments, or None where it is
        undefined.
        """
        raise NotImplementedError

    def by_bucket(self, sums):
        """Returns a dict from each of `buckets` to its value, None where that is undefined."""
        return {}

    def details(self, sums):
        """Returns counts and parts to show beside the value."""
        raise NotImplementedError

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        """Returns what one must know to get the same number again.

        Args:
            samples: resampled test sets behind the interval; 0 for none.
            seed: their seed.
            references: how many references a segment has; None where segments have different
                numbers.
        """
        raise NotImplementedError


class SparseMetric(Metric):
    """A corpus metric of so many statistics, such as n-gram counts, that a segment names those that
    it has.

    `statistics` returns a `collections.Counter`, and sums are one too.
    """

    def zero(self):
        return collections.Counter()

    def add(self, sums, statistics):
        sums.update(statistics)
        return sums

    def tabulate(self, systems):
        columns = {}
        for counter in itertools.chain(*systems):
            for key in counter:
                columns.setdefault(key, len(columns))
        return [_SparseTable(statistics, columns) for statistics in systems], self.evaluator(
            list(columns)
        )

    def evaluator(self, keys):
        """Returns a function from an array of sums, in the order of `keys`, to the corpus value."""
        raise NotImplementedError

    def value(self, sums):
        # In an order of their own, not that in which workers met them, in which the last digit may
        # be another.
        keys = sorted(sums, key=repr)
        return self.evaluator(keys)(np.array([sums[key] for key in keys], np.float64))


class _DenseTable:
    """The statistics of one system's segments, a row each."""

    def __init__(self, statistics):
        self._rows = np.array(statistics, np.float64)

    def sums(self, weights):
        """Yields the weighted sum of the rows for each row of `weights`, float64 `[samples,
        segments]`.
        """
        yield from weights @ self._rows


class _SparseTable:
    """As `_DenseTable`, of Counters:
    only what a segment has is held, and one row of sums at a time is made.
    """

    def __init__(self, statistics, columns):
        self._rows = np.repeat(np.arange(len(statistics)), [len(counter) for counter in statistics])
        keys = itertools.chain.from_iterable(statistics)
        self._columns = np.fromiter((columns[key] for key in keys), np.int64, len(self._rows))
        counts = itertools.chain.from_iterable(counter.values() for counter in statistics)
        self._counts = np.fromiter(counts, np.float64, len(self._rows))
        self._width = len(columns)

    def sums(self, weights):
        """Yields the weighted sum of the rows for each row of `weights`, float64 `[samples,
        segments]`.
        """
        for row in weights:
            yield np.bincount(self._columns, self._counts * row[self._rows], self._width)


class Share(Metric):
    """A part of a whole, both summed over segments: statistics are (part, whole).

    Attributes:
        counted: what whole and part are called in `details`.
    """

    size = 2
    unit = "share"
    counted = ("n", "part")

    def value(self, sums):
        return ratio(sums[0], sums[1])

    def details(self, sums):
        whole, part = self.counted
        return {whole: int(sums[1]), part: int(sums[0])}


def exact_parts(number):
    """Returns two floats that add up to a number, to 2^-56:
    the sums of each are exact, in whatever order workers add.

    Multiples of 2^-20 have exact sums below 2^33; what is left, multiples of 2^-56 up to 2^-21,
    below 2^-3.
    """
    number = float(number)
    if not math.isfinite(number):
        return number, 0.0
    coarse = round(number * 2**20) / 2**20
    return coarse, round((number - coarse) * 2**56) / 2**56


def share_or_one(counts):
    """Returns part / whole of one segment's (part, whole), 1 without a whole:
    by it the best of several references is chosen.
    """
    return counts[0] / counts[1] if counts[1] else 1.0


def ratio(part, whole):
    """Returns part / whole as a float, None where the whole is 0."""
    return float(part) / float(whole) if whole else None


def join_signature(text, samples, seed, references):
    """Returns a signature in sacrebleu's form:
    `text` says what is the metric's own, the others are as in `Metric.signature`.
    """
    resampled = f"|bs:{samples}|seed:{seed}" if samples else ""
    return f"nrefs:{references or 'var'}{resampled}|{text}"


def primary_language(language):
    """Returns the language of a code that may name a region or script too: `fr` of `fr_CA`;
    `en` of an empty one.
    """
    return regex.split("[-_@.]", language or "en")[0].lower()


def count_of(number, noun):
    """Returns `1 line`, `2 lines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
