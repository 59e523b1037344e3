"""The rows of the report's tables: metrics of each system, slices, counts and times."""

import dataclasses
from collections.abc import Mapping, Sequence

from pipeline.metrics import registry, resampling
from pipeline.metrics.base import MetricResult
from pipeline.reporting import score_tables
from pipeline.reporting.facts import Counts, SliceFacts, SystemFacts, metric_result

MAX_SLICES = 60


@dataclasses.dataclass(frozen=True)
class Versus:
    """How a system compares with the first on a metric.

    Attributes:
        p_value: as the page shows it.
        side: `better` or `worse`, where that is clear, else "".
    """

    p_value: str
    side: str


@dataclasses.dataclass(frozen=True)
class MetricCell:
    """A metric of one system."""

    value: str = "–"
    interval: str = ""
    best: bool = False
    versus: Versus | None = None


@dataclasses.dataclass(frozen=True)
class Whisker:
    """A value and its interval, as places from 0 to 100 on a line that the systems share."""

    value: float
    low: float | None
    high: float | None
    index: int


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """A metric in the headline table.

    Attributes:
        label: its name.
        lower_is_better: True for error rates.
        signature: the settings that reproduce the number.
        n: how many things it was measured on, where that is not all pairs.
        cells: one for each system.
        p_value: of the first system against the second.
        winner: the number of that one of the two which is clearly better.
        whiskers: a small drawing of values and intervals.
    """

    label: str
    lower_is_better: bool
    signature: str
    n: int | None
    cells: list[MetricCell]
    p_value: str | None
    winner: int | None
    whiskers: list[Whisker]


@dataclasses.dataclass(frozen=True)
class SliceCell:
    """A metric on a slice, and what the last blessed model reaches there."""

    value: str
    last_blessed: str | None


@dataclasses.dataclass(frozen=True)
class SliceRow:
    """A slice of the test split and how many pairs it has."""

    name: str
    n: int
    cells: list[SliceCell]


@dataclasses.dataclass(frozen=True)
class SliceTable:
    """Metrics by slice; `left_out` is how many slices the page does not show."""

    metrics: list[str]
    rows: list[SliceRow]
    left_out: int


@dataclasses.dataclass(frozen=True)
class Bar:
    """A row with a bar, whose length is in percent of the longest one's."""

    name: str
    value: float | None
    percent: float


@dataclasses.dataclass(frozen=True)
class CountRows:
    """The numbers of the data, and bars of its splits and of the reasons for rejections."""

    numbers: list[tuple[str, int]]
    rejected_share: float | None
    splits: list[Bar]
    reasons: list[Bar]


def metric_rows(
    systems: Sequence[SystemFacts],
    p_values: Mapping[str, float | None],
    comparisons: Mapping[str, Mapping[str, float | None]] | None = None,
) -> list[MetricRow]:
    """Returns a row of the headline table for each metric.

    Args:
        systems: the systems of the facts.
        p_values: of the first system against the second, by metric.
        comparisons: of the first system against others, by system and metric.
    """
    names = list(dict.fromkeys(name for system in systems for name in system["metrics"]))
    return [_metric_row(name, systems, p_values.get(name), comparisons or {}) for name in names]


def _metric_row(
    name: str,
    systems: Sequence[SystemFacts],
    p_value: float | None,
    comparisons: Mapping[str, Mapping[str, float | None]],
) -> MetricRow:
    results = [_result_of(name, system) for system in systems]
    known = [result for result in results if result is not None and result.value is not None]
    lower_is_better = bool(known) and known[0].lower_is_better
    best = None
    values = {result.value for result in known if result.value is not None}
    if name not in registry.NEUTRAL and len(values) > 1:
        best = (min if lower_is_better else max)(values)
    cells = []
    for system, result in zip(systems, results):
        against = comparisons.get(system["name"], {}).get(name)
        versus = None if against is None else _versus(results[0], result, against)
        cells.append(_metric_cell(result, best, versus))
    winner = None
    # The p-value compares the first two systems, so the win goes to one of them, whatever a third
    # may reach.
    if len(results) > 1:
        winner = {"better": 0, "worse": 1}.get(resampling.verdict(results[0], results[1], p_value))
    return MetricRow(
        label=registry.LABELS.get(name, name),
        lower_is_better=lower_is_better,
        signature=next((result.signature for result in known if result.signature), ""),
        n=next((result.details["n"] for result in known if "n" in result.details), None),
        cells=cells,
        p_value=None if p_value is None else _p_value(p_value),
        winner=winner,
        whiskers=_whiskers(results),
    )


def _result_of(name: str, system: SystemFacts) -> MetricResult | None:
    facts = system["metrics"].get(name)
    return None if facts is None else metric_result(name, facts)


def _metric_cell(
    result: MetricResult | None, best: float | None, versus: Versus | None
) -> MetricCell:
    if result is None:
        return MetricCell(versus=versus)
    interval = ""
    if result.low is not None and result.high is not None:
        low, high = (score_tables.format_value(result, end) for end in (result.low, result.high))
        interval = f"{low.removesuffix(' %')} – {high}"
    return MetricCell(
        score_tables.format_value(result),
        interval,
        result.value is not None and result.value == best,
        versus,
    )


def _versus(first: MetricResult | None, result: MetricResult | None, p_value: float) -> Versus:
    return Versus(_p_value(p_value), resampling.verdict(result, first, p_value))


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _whiskers(results: Sequence[MetricResult | None]) -> list[Whisker]:
    known = [
        (index, result.value, result.low, result.high)
        for index, result in enumerate(results)
        if result is not None and result.value is not None
    ]
    ends = [end for _, *all_ends in known for end in all_ends if end is not None]
    if not ends or max(ends) == min(ends):
        return []
    first, width = min(ends), max(ends) - min(ends)

    def place(value: float) -> float:
        return round(4 + 92 * (value - first) / width, 2)

    return [
        Whisker(
            place(value),
            None if low is None else place(low),
            None if high is None else place(high),
            index,
        )
        for index, value, low, high in known
    ]


def slice_table(slices: Sequence[SliceFacts]) -> SliceTable:
    """Returns the table of metrics by slice."""
    names = list(dict.fromkeys(name for one in slices for name in one["metrics"]))
    rows = []
    for one in slices[:MAX_SLICES]:
        cells = []
        for name in names:
            result = metric_result(name, {"value": one["metrics"].get(name)})
            before = one["last_blessed"].get(name)
            last_blessed = None if before is None else score_tables.format_value(result, before)
            cells.append(SliceCell(score_tables.format_value(result), last_blessed))
        rows.append(SliceRow(one["slice"], one["n"], cells))
    labels = [registry.LABELS.get(name, name) for name in names]
    return SliceTable(labels, rows, max(0, len(slices) - MAX_SLICES))


def count_rows(counts: Counts) -> CountRows:
    """Returns the headline numbers of the data, and bars of splits and of reasons for rejection."""
    reasons = counts.get("by_reason") or {}
    by_number = sorted(reasons, key=lambda reason: -reasons[reason])
    return CountRows(
        numbers=[
            (key, number)
            for key, number in (
                ("read", counts.get("read")),
                ("kept", counts.get("kept")),
                ("rejected", counts.get("rejected")),
                ("recombined", counts.get("recombined") or None),
            )
            if number is not None
        ],
        rejected_share=counts["rejected"] / counts["read"]
        if counts.get("read") and "rejected" in counts
        else None,
        splits=bars(counts.get("by_split") or {}),
        reasons=bars({reason: reasons[reason] for reason in by_number}),
    )


def bars(values: Mapping[str, float | None] | Mapping[str, int]) -> list[Bar]:
    """Returns a row with a bar for each value."""
    largest = max((value or 0 for value in values.values()), default=0)
    return [
        Bar(name, value, round(100 * (value or 0) / largest, 1) if largest else 0)
        for name, value in values.items()
    ]
