"""Scores and comparisons as plain-text tables, for people."""

from collections.abc import Mapping, Sequence

from pipeline.metrics import resampling
from pipeline.metrics.base import MetricResult
from pipeline.metrics.registry import LABELS, unit_and_direction
from pipeline.metrics.resampling import Comparison
from pipeline.reporting import breakdowns


def format_value(result: MetricResult, value: float | None = None) -> str:
    """Returns a metric's value as people read it.

    Points have two decimals, shares are in percent, and what is undefined is `n/a`.

    Args:
        result: a `MetricResult`.
        value: another value of the same metric, such as an end of its interval; the result's own by
            default.
    """
    value = result.value if value is None else value
    if value is None:
        return "n/a"
    return f"{100 * value:.1f} %" if result.unit == "share" else f"{value:.2f}"


#: The key of a metric's details for the standard deviation over seeds, where the value is a mean.
DEVIATION = "seed_deviation"
#: How a table marks what `pipeline.metrics.resampling.verdict` says.
_MARKS = {"better": " ▲", "worse": " ▼", "": ""}


def format_table(
    results_by_system: Mapping[str, Mapping[str, MetricResult]],
    p_values: Mapping[str, Mapping[str, float | None]] | None = None,
    baseline: str | None = None,
) -> str:
    """Returns a plain-text table with a row for each metric and a column for each system.

    Intervals are in brackets, and wins are marked.

    Args:
        results_by_system: dict from a system's name to the dict that `score` returns.
        p_values: dict from the name of a system that was tested against `baseline` to a dict from
            metric to p-value.
        baseline: name of the system that the others were tested against.
    """
    p_values = p_values or {}
    names = list(dict.fromkeys(name for results in results_by_system.values() for name in results))
    with_interval = any(
        result.low is not None
        for results in results_by_system.values()
        for result in results.values()
    )
    rows = [["", *results_by_system]]
    for name in names:
        row = [LABELS.get(name, name)]
        for system, results in results_by_system.items():
            result = results.get(name)
            if result is None:
                row.append("-")
                continue
            cell = format_value(result)
            if deviation := result.details.get(DEVIATION):
                cell += f" ± {format_value(result, deviation).removesuffix(' %')}"
            elif result.low is not None:
                low, high = format_value(result, result.low), format_value(result, result.high)
                cell += f" [{low.removesuffix(' %')}, {high}]"
            if result.unit == "share" and "n" in result.details:
                cell += f" n={result.details['n']}"
            other = results_by_system.get(baseline, {}).get(name) if baseline else None
            p_value = p_values.get(system, {}).get(name)
            row.append(cell + _MARKS[resampling.verdict(result, other, p_value)])
        rows.append(row)
    lines = _aligned(rows)
    if any(
        result.details.get(DEVIATION)
        for results in results_by_system.values()
        for result in results.values()
    ):
        lines.append("±: standard deviation over seeds, whose mean stands before it.")
    if with_interval:
        lines.append("In brackets: 95 % bootstrap interval over segments.")
    if any(p_values.values()):
        better, worse = (_MARKS[side].strip() for side in ("better", "worse"))
        lines.append(
            f"{better} better, {worse} worse than {baseline}, p < {resampling.SIGNIFICANT} by "
            "paired bootstrap."
        )
    return "\n".join(lines) + "\n"


def format_breakdowns(results_by_system: Mapping[str, Mapping[str, MetricResult]]) -> str:
    """Returns plain-text tables of quality by length and by frequency.

    It is an empty text where no metric measured them.

    Args:
        results_by_system: as for `format_table`.
    """
    tables = []
    for breakdown in breakdowns.TABLES:
        parts = {
            system: {
                part.name: part
                for part in breakdowns.parts_of(breakdown, results[breakdown.metric].details)
            }
            for system, results in results_by_system.items()
            if breakdown.metric in results
        }
        if not parts:
            continue
        unit = unit_and_direction(breakdown.metric)[0]
        rows = [[breakdown.title, *parts, "reference words"]]
        for name in next(iter(parts.values())):
            # Of several references, each system has its own closest one.
            words = max(of_system[name].weight for of_system in parts.values())
            cells = (
                format_value(MetricResult(breakdown.value, of_system[name].value, unit=unit))
                for of_system in parts.values()
            )
            if words:
                rows.append([f"  {name}", *cells, str(words)])
        tables.append("\n".join(_aligned(rows)) + "\n")
    return "\n".join(tables)


def format_comparisons(comparisons: Mapping[str, Comparison]) -> str:
    """Returns a plain-text table with a row for each metric.

    It says the difference, its interval, its p-value, and whether that is clear.

    Args:
        comparisons: the dict that `paired_bootstrap` or `paired_randomisation` returns.
    """
    rows = [["", "difference", "p-value", ""]]
    for name, comparison in comparisons.items():
        unit, lower_is_better = unit_and_direction(name)
        difference, low, high = (
            format_value(MetricResult(name, value, unit=unit))
            for value in (comparison.difference, comparison.low, comparison.high)
        )
        interval = "" if comparison.low is None else f" [{low.removesuffix(' %')}, {high}]"
        p_value = "n/a" if comparison.p_value is None else f"{comparison.p_value:.4f}"
        own, other = (
            MetricResult(name, value, lower_is_better=lower_is_better)
            for value in (comparison.difference, 0.0)
        )
        clear = comparison.p_value is not None and comparison.p_value < resampling.SIGNIFICANT
        verdict = resampling.verdict(own, other, comparison.p_value) or (
            "differs" if clear else "not clear"
        )
        rows.append([LABELS[name], difference + interval, p_value, verdict])
    tests = dict.fromkeys(comparison.signature for comparison in comparisons.values())
    return "\n".join([*_aligned(rows), *tests]) + "\n"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a plain-text table, a rule under its first row."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
