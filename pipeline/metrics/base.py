"""The base of metrics: a sum of statistics over segments, and one value computed from the sum."""

import collections
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import regex

from pipeline.common.errors import VerbatimError
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import DEFAULT_SEED

FloatArray: TypeAlias = npt.NDArray[np.float64]
#: One segment's statistics of a `DenseMetric`.
Row: TypeAlias = Sequence[float] | FloatArray
#: The name of one statistic of a `SparseMetric`.
Key: TypeAlias = tuple[Any, ...]

_Statistics = TypeVar("_Statistics")
_Sums = TypeVar("_Sums")


class ScoringError(VerbatimError, ValueError):
    """Texts that cannot be scored; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """One metric of one system.

    Attributes:
        name: the metric's name, such as `bleu`.
        value: the corpus value; None where it is undefined (a share of nothing).
        low: lower end of the 95 % interval, the 2.5th percentile over resampled test sets; None
            without bootstrap.
        high: upper end, the 97.5th percentile.
        signature: the settings that reproduce the number.
        details: counts and parts, ready for JSON.
        unit: `points` (0 to 100, for TER also above) or `share` (0 to 1).
        lower_is_better: True for error rates.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    signature: str = ""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    unit: str = "points"
    lower_is_better: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


class Table(Protocol):
    """The statistics of one system's segments, as resampling reads them."""

    def sums(self, weights: FloatArray) -> Iterator[FloatArray]:
        """Yields the weighted sum of the segments for each row of `weights`.

        Args:
            weights: float64 `[samples, segments]`.
        """


class Metric(Generic[_Statistics, _Sums]):
    """A corpus metric as sums over segments.

    Attributes:
        unit, lower_is_better: as in `MetricResult`.
        needs_sources, needs_training_words: its inputs besides outputs and references.
        needs_training_counts: whether it asks how often a word was seen in training, not only
            whether.
        needs_scores: whether it reads, instead of the output, what a model's signature `score` says
            of the reference.
        cuts_words: whether its value depends on where words end.
        always_defined: whether it has a value for any segments, or may find nothing to measure.
        buckets: names of the parts that `by_bucket` measures; most metrics have none.
        uses_sacrebleu_test: sacrebleu publishes a paired test of its own for its metrics; we use
            its formula for those.
    """

    unit: ClassVar[str] = "points"
    lower_is_better: ClassVar[bool] = False
    needs_sources: ClassVar[bool] = False
    needs_training_words: ClassVar[bool] = False
    needs_training_counts: ClassVar[bool] = False
    needs_scores: ClassVar[bool] = False
    cuts_words: ClassVar[bool] = False
    always_defined: ClassVar[bool] = True
    uses_sacrebleu_test: ClassVar[bool] = False
    buckets: Sequence[str] = ()

    def statistics(self, segment: Segment) -> _Statistics:
        """Returns one segment's statistics."""
        raise NotImplementedError

    def zero(self) -> _Sums:
        """Returns the sums of no segment."""
        raise NotImplementedError

    def add(self, sums: _Sums, statistics: _Statistics | _Sums) -> _Sums:
        """Returns sums with a segment's statistics, or other sums, added; `sums` may be changed."""
        raise NotImplementedError

    def tabulate(
        self, systems: Sequence[Sequence[_Statistics]]
    ) -> tuple[list[Table], Callable[[FloatArray], float | None]]:
        """Returns (tables, evaluate), for resampling.

        Args:
            systems: for each system the list of its segments' statistics.

        Returns:
            A table for each system, and a function from one of its rows of sums to the value.
        """
        raise NotImplementedError

    def value(self, sums: _Sums) -> float | None:
        """Returns the corpus value of summed statistics, or None where it is undefined."""
        raise NotImplementedError

    def by_bucket(self, sums: _Sums) -> dict[str, float | None]:
        """Returns a dict from each of `buckets` to its value, None where that is undefined."""
        return {}

    def details(self, sums: _Sums) -> dict[str, Any]:
        """Returns counts and parts to show beside the value."""
        raise NotImplementedError

    def signature(
        self, samples: int = 0, seed: int = DEFAULT_SEED, references: int | None = 1
    ) -> str:
        """Returns the settings that reproduce the number, in sacrebleu's form.

        Args:
            samples: resampled test sets behind the interval; 0 for none.
            seed: their seed.
            references: how many references a segment has; None where segments have different
                numbers.
        """
        resampled = f"|bs:{samples}|seed:{seed}" if samples else ""
        return f"nrefs:{references or 'var'}{resampled}|{self.own_signature()}"

    def own_signature(self) -> str:
        """Returns the part of the signature that is the metric's own."""
        raise NotImplementedError


#: A metric of either kind.
AnyMetric: TypeAlias = Metric[Any, Any]


class DenseMetric(Metric[Row, FloatArray]):
    """A corpus metric with the same few statistics for each segment.

    Attributes:
        size: how many statistics a segment has.
    """

    size: int = 0

    def zero(self) -> FloatArray:
        return np.zeros(self.size, np.float64)

    def add(self, sums: FloatArray, statistics: Row) -> FloatArray:
        return sums + np.asarray(statistics, np.float64)

    def tabulate(
        self, systems: Sequence[Sequence[Row]]
    ) -> tuple[list[Table], Callable[[FloatArray], float | None]]:
        return [_DenseTable(statistics) for statistics in systems], self.value


class SparseMetric(Metric[collections.Counter[Key], collections.Counter[Key]]):
    """A corpus metric with so many statistics, such as n-gram counts, that a segment names its own.

    `statistics` returns a `collections.Counter`, and sums are one too.
    """

    def zero(self) -> collections.Counter[Key]:
        return collections.Counter()

    def add(
        self, sums: collections.Counter[Key], statistics: collections.Counter[Key]
    ) -> collections.Counter[Key]:
        sums.update(statistics)
        return sums

    def tabulate(
        self, systems: Sequence[Sequence[collections.Counter[Key]]]
    ) -> tuple[list[Table], Callable[[FloatArray], float | None]]:
        columns: dict[Key, int] = {}
        for counter in itertools.chain(*systems):
            for key in counter:
                columns.setdefault(key, len(columns))
        tables: list[Table] = [_SparseTable(statistics, columns) for statistics in systems]
        return tables, self.evaluator(list(columns))

    def evaluator(self, keys: Sequence[Key]) -> Callable[[FloatArray], float]:
        """Returns a function from an array of sums, in the order of `keys`, to the corpus value."""
        raise NotImplementedError

    def value(self, sums: collections.Counter[Key]) -> float:
        # In a fixed order, not that of the workers, which could change the last digit.
        keys = sorted(sums, key=repr)
        return self.evaluator(keys)(np.array([sums[key] for key in keys], np.float64))


class _DenseTable:
    """The statistics of one system's segments, a row each."""

    def __init__(self, statistics: Sequence[Row]) -> None:
        self._rows: FloatArray = np.array(statistics, np.float64)

    def sums(self, weights: FloatArray) -> Iterator[FloatArray]:
        """See `Table`."""
        yield from weights @ self._rows


class _SparseTable:
    """As `_DenseTable`, of Counters.

    It holds only what a segment has, and makes one row of sums at a time.
    """

    def __init__(
        self, statistics: Sequence[collections.Counter[Key]], columns: dict[Key, int]
    ) -> None:
        self._rows = np.repeat(np.arange(len(statistics)), [len(counter) for counter in statistics])
        keys = itertools.chain.from_iterable(statistics)
        self._columns = np.fromiter((columns[key] for key in keys), np.int64, len(self._rows))
        counts = itertools.chain.from_iterable(counter.values() for counter in statistics)
        self._counts = np.fromiter(counts, np.float64, len(self._rows))
        self._width = len(columns)

    def sums(self, weights: FloatArray) -> Iterator[FloatArray]:
        """See `Table`."""
        for row in weights:
            sums = np.bincount(self._columns, self._counts * row[self._rows], self._width)
            yield sums.astype(np.float64, copy=False)


class Share(DenseMetric):
    """A part of a whole, both summed over segments: statistics are (part, whole).

    Attributes:
        counted: the names of whole and part in `details`.
    """

    size = 2
    unit = "share"
    counted: ClassVar[tuple[str, str]] = ("n", "part")

    def value(self, sums: FloatArray) -> float | None:
        return ratio(sums[0], sums[1])

    def details(self, sums: FloatArray) -> dict[str, Any]:
        whole, part = self.counted
        return {whole: int(sums[1]), part: int(sums[0])}


def exact_parts(number: float) -> tuple[float, float]:
    """Returns two floats that add up to a number, to 2^-56.

    The sums of each are exact, in whatever order workers add: multiples of 2^-20 have exact sums
    below 2^33; the rest, multiples of 2^-56 up to 2^-21, below 2^-3.
    """
    number = float(number)
    if not math.isfinite(number):
        return number, 0.0
    coarse = round(number * 2**20) / 2**20
    return coarse, round((number - coarse) * 2**56) / 2**56


def share_or_one(counts: Sequence[float]) -> float:
    """Returns part / whole of one segment's (part, whole), 1 without a whole.

    The best of several references is chosen by it.
    """
    return counts[0] / counts[1] if counts[1] else 1.0


def ratio(part: float, whole: float) -> float | None:
    """Returns part / whole as a float, None where the whole is 0."""
    return float(part) / float(whole) if whole else None


def primary_language(language: str) -> str:
    """Returns the language of a code that may name a region or script too.

    That is `fr` of `fr_CA`, and `en` of an empty code.
    """
    primary: str = regex.split("[-_@.]", language or "en")[0]
    return primary.lower()


def count_of(number: int, noun: str) -> str:
    """Returns `1 line`, `2 lines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
