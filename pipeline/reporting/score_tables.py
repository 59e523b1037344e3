"""Scores and comparisons as plain-text tables, for people."""

from pipeline.metrics import resampling
from pipeline.metrics.base import MetricResult
from pipeline.metrics.registry import LABELS, unit_and_direction


def format_value(result, value=None):
    """Returns a metric's value as people read it:
    two decimals for points, percent for shares, `n/a` where undefined.

    Args:
        result: a `MetricResult`.
        value: another value of the same metric, such as an end of its interval; the result's own by
            default.
    """
    value = result.value if value is None else value
    if value is None:
        return "n/a"
    return f"{100 * value:.1f} %" if result.unit == "share" else f"{value:.2f}"


#: How a table marks what `pipeline.metrics.resampling.verdict` says.
_MARKS = {"better": " ▲", "worse": " ▼", "": ""}


def format_table(results_by_system, p_values=None, baseline=None):
    """Returns a plain-text table:
    a row for each metric, a column for each system, intervals in brackets, wins marked.

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
            if result.low is not None:
                low, high = format_value(result, result.low), format_value(result, result.high)
                cell += f" [{low.removesuffix(' %')}, {high}]"
            if result.unit == "share" and "n" in result.details:
                cell += f" n={result.details['n']}"
            other = results_by_system.get(baseline, {}).get(name)
            p_value = p_values.get(system, {}).get(name)
            row.append(cell + _MARKS[resampling.verdict(result, other, p_value)])
        rows.append(row)
    lines = _aligned(rows)
    if with_interval:
        lines.append("In brackets: 95 % bootstrap interval over segments.")
    if any(p_values.values()):
        better, worse = (_MARKS[side].strip() for side in ("better", "worse"))
        lines.append(
            f"{better} better, {worse} worse than {baseline}, p < {resampling.SIGNIFICANT} by "
            "paired bootstrap."
        )
    return "\n".join(lines) + "\n"


def format_breakdowns(results_by_system):
    """Returns plain-text tables of what metrics' details say by length and by frequency;
    an empty text where none does.

    Args:
        results_by_system: as for `format_table`.
    """
    tables = []
    for metric, key, category, value, weight, title in (
        (
            "bleu_by_length",
            "by_length",
            "words",
            "bleu",
            "reference_length",
            "BLEU by words of the reference",
        ),
        (
            "word_f1_by_length",
            "f1_by_length",
            "words",
            "f1",
            "reference_words",
            "Word F1 by words of the reference",
        ),
        (
            "word_f1_by_frequency",
            "by_frequency",
            "seen",
            "f1",
            "reference_words",
            "Word F1 by how often training saw it",
        ),
    ):
        parts = {
            system: {part[category]: part for part in results[metric].details[key]}
            for system, results in results_by_system.items()
            if metric in results
        }
        if not parts:
            continue
        unit = unit_and_direction(metric)[0]
        rows = [[title, *parts, "reference words"]]
        for name in next(iter(parts.values())):
            # Of several references, each system has its own closest one.
            words = max(of_system[name][weight] for of_system in parts.values())
            cells = (
                MetricResult(value, of_system[name][value], unit=unit)
                for of_system in parts.values()
            )
            if words:
                rows.append([f"  {name}", *map(format_value, cells), str(words)])
        tables.append("\n".join(_aligned(rows)) + "\n")
    return "\n".join(tables)


def format_comparisons(comparisons):
    """Returns a plain-text table:
    a row for each metric, with difference, its interval, p-value, and whether that is clear.

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
        results = (
            MetricResult(name, value, lower_is_better=lower_is_better)
            for value in (comparison.difference, 0.0)
        )
        clear = comparison.p_value is not None and comparison.p_value < resampling.SIGNIFICANT
        said = resampling.verdict(*results, comparison.p_value) or (
            "differs" if clear else "not clear"
        )
        rows.append([LABELS[name], difference + interval, p_value, said])
    tests = dict.fromkeys(comparison.signature for comparison in comparisons.values())
    return "\n".join([*_aligned(rows), *tests]) + "\n"


def _aligned(rows):
    """Returns the lines of a plain-text table, a rule under its first row."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
