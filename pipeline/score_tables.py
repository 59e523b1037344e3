"""Scores and comparisons as plain-text tables, for people."""

from pipeline.metrics.base import MetricResult
from pipeline.metrics.registry import LABELS, unit_and_direction


def format_value(result, value=None):
    """Returns a metric's value as people read it: two decimals for points, percent for shares, `n/a` where undefined.

    Args:
        result: a `MetricResult`.
        value: another value of the same metric, such as an end of its interval; the result's own by default.
    """
    value = result.value if value is None else value
    if value is None:
        return "n/a"
    return f"{100 * value:.1f} %" if result.unit == "share" else f"{value:.2f}"


def format_table(results_by_system):
    """Returns a plain-text table: a row for each metric, a column for each system, intervals in brackets.

    Args:
        results_by_system: dict from a system's name to the dict that `score` returns.
    """
    names = list(dict.fromkeys(name for results in results_by_system.values() for name in results))
    with_interval = any(result.low is not None for results in results_by_system.values() for result in results.values())
    rows = [["", *results_by_system]]
    for name in names:
        row = [LABELS.get(name, name)]
        for results in results_by_system.values():
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
            row.append(cell)
        rows.append(row)
    lines = _aligned(rows)
    if with_interval:
        lines.append("In brackets: 95 % bootstrap interval over segments.")
    return "\n".join(lines) + "\n"


def format_breakdowns(results_by_system):
    """Returns plain-text tables of what metrics' details say by length and by frequency; an empty text where none does.

    Args:
        results_by_system: as for `format_table`.
    """
    tables = []
    for metric, key, category, value, weight, title in (
        ("bleu_by_length", "by_length", "words", "bleu", "reference_length", "BLEU by words of the reference"),
        ("word_f1_by_length", "f1_by_length", "words", "f1", "reference_words", "Word F1 by words of the reference"),
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
            cells = (MetricResult(value, of_system[name][value], unit=unit) for of_system in parts.values())
            if words:
                rows.append([f"  {name}", *map(format_value, cells), str(words)])
        tables.append("\n".join(_aligned(rows)) + "\n")
    return "\n".join(tables)


def format_comparisons(comparisons):
    """Returns a plain-text table: a row for each metric, with difference, its interval and p-value.

    Args:
        comparisons: the dict that `paired_bootstrap` or `paired_randomisation` returns.
    """
    rows = [["", "difference", "p-value"]]
    for name, comparison in comparisons.items():
        unit, _ = unit_and_direction(name)
        difference, low, high = (
            format_value(MetricResult(name, value, unit=unit))
            for value in (comparison.difference, comparison.low, comparison.high)
        )
        interval = "" if comparison.low is None else f" [{low.removesuffix(' %')}, {high}]"
        p_value = "n/a" if comparison.p_value is None else f"{comparison.p_value:.4f}"
        rows.append([LABELS[name], difference + interval, p_value])
    tests = dict.fromkeys(comparison.signature for comparison in comparisons.values())
    return "\n".join([*_aligned(rows), *tests]) + "\n"


def _aligned(rows):
    """Returns the lines of a plain-text table, a rule under its first row."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
