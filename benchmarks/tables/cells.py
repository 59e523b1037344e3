"""What stands in the cells of tables, and below them."""

import math
import re
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.records.record import Machine, Origin, RunRecord, Spread, Value
from pipeline.metrics import registry

#: What a cell of several seeds, or of one, shows beside its value.
INTERVALS = (
    "±: standard deviation over seeds. Brackets: 95 % bootstrap interval over the test sentences."
)
#: A cell without a figure.
NOTHING = "–"
# Metrics that have large values, and those that people give with two digits.
_DIGITS = {"nist": 2, "attention_entropy": 2}
#: What tables of speed call their figures.
_COLUMNS = {
    "ms": "ms",
    "ms_a_pair": "ms a pair",
    "cpu_ms": "CPU ms",
    "peak_mb": "peak of memory, MB",
    "first_seconds": "first call, s",
}
# Marketing that says nothing of a processor.
_NOISE = re.compile(r"\((?:R|TM)\)|\bCPU\b|\bProcessor\b|@.*|\b\d+-Core\b", re.I)
# With more commits than these, readers look into the result files anyway.
_NAMED_COMMITS = 4


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; columns that are empty in every row are left out."""
    rows = [list(row) for row in rows]
    shown = [
        place
        for place in range(len(head))
        if place == 0 or any(row[place] not in ("", NOTHING) for row in rows)
    ]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells[place] for place in shown) + " |"

    rule = "|" + "---|" * len(shown)
    return "\n".join([line(head), rule, *(line(row) for row in rows)]) + "\n"


def wrapped(text: str) -> str:
    """Returns a paragraph in lines of at most 100 characters."""
    lines = textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def label(metric: str, values: Sequence[Value]) -> str:
    """Returns what people call a metric, with its unit where that is percent."""
    named = registry.LABELS.get(metric, metric.replace("_", " "))
    unit = values[0].unit if values else registry.unit_and_direction(metric)[0]
    return f"{named}, %" if unit == "share" else named


def documents(figure: float | None, column: Sequence[float]) -> str:
    """Returns a document's figure, with as many digits as the others of its column have."""
    digits = max(len(repr(float(one)).partition(".")[2]) for one in column)
    return NOTHING if figure is None else f"{figure:.{digits}f}"


def column_title(key: str) -> str:
    """Returns what people call a figure of a table of speed."""
    return _COLUMNS.get(key, key.replace("_", " "))


def number(value: float, metric: str, unit: str) -> str:
    """Returns a metric's value: shares in percent, everything with one digit, mostly."""
    if unit == "share":
        return f"{100 * value:.1f}"
    return f"{value:.{_DIGITS.get(metric, 1)}f}"


def of_seeds(values: Sequence[Value], metric: str, with_interval: bool = False) -> str:
    """Returns a metric's cell.

    One seed has its value and 95 % bootstrap interval; several have their mean and standard
    deviation, and, `with_interval`, the mean of their intervals.
    """
    known = [value.value for value in values if value.value is not None]
    if not known:
        return NOTHING
    unit = values[0].unit
    shown = number(statistics.fmean(known), metric, unit)
    if len(known) > 1:
        shown += f" ± {number(statistics.stdev(known), metric, unit)}"
        if not with_interval:
            return shown
    ends = [(value.low, value.high) for value in values]
    lows = [low for low, high in ends if low is not None and high is not None]
    highs = [high for low, high in ends if low is not None and high is not None]
    if not lows:
        return shown
    low, high = statistics.fmean(lows), statistics.fmean(highs)
    return f"{shown} [{number(low, metric, unit)}, {number(high, metric, unit)}]"


def of_rounds(spread: Spread, digits: int, with_spread: bool, percent: bool = False) -> str:
    """Returns the cell of a quantity measured in rounds: the median, and perhaps both ends."""
    factor, unit = (100, " %") if percent else (1, "")
    median, low, high = (
        f"{one * factor:,.{digits}f}" for one in (spread.median, spread.low, spread.high)
    )
    if not with_spread or low == high:
        return median + unit
    return f"{median}{unit} ({low} to {high})"


def p_value(p: float | None) -> str:
    """Returns a p-value; a bootstrap of 1,000 samples knows none below 0.001."""
    return NOTHING if p is None else "< 0.002" if p < 0.002 else f"{p:.3f}"


def span(numbers: Iterable[float]) -> str:
    """Returns a whole number, or the smallest and the largest where they differ."""
    rounded = [math.ceil(one) if 0 < one < 1 else round(one) for one in numbers]
    low, high = min(rounded), max(rounded)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def converged(runs: Sequence[RunRecord]) -> str:
    """Returns whether all trainings of a row had converged."""
    answers = {run.converged for run in runs}
    return "no" if False in answers else "not known" if None in answers else "yes"


def machine(of: Machine) -> str:
    """Returns a machine in a few words."""
    processor = " ".join(_NOISE.sub("", of.processor).split())
    cores = "1 core" if of.cores == 1 else f"{of.cores} cores"
    return ", ".join(filter(None, (of.accelerator, processor, cores)))


def stack(versions: Mapping[str, str]) -> str:
    """Returns packages and their versions."""
    names = {"python": "Python", "tensorflow": "TensorFlow", "keras": "Keras", "tfx": "TFX"}
    return ", ".join(f"{names.get(name, name)} {version}" for name, version in versions.items())


def origins(of: Iterable[Origin]) -> str:
    """Returns where figures come from, in sentences: machines, packages, commits and days."""
    of = list(of)
    days = sorted({origin.date for origin in of})
    commits = sorted({origin.commit for origin in of if origin.commit})
    parts = [
        *dict.fromkeys(machine(origin.machine) for origin in of),
        *dict.fromkeys(stack(origin.stack) for origin in of if origin.stack),
    ]
    loads = [origin.machine.load for origin in of if origin.machine.load is not None]
    load = f" Load before the measurement: {max(loads):.2f}." if loads else ""
    if len(commits) > _NAMED_COMMITS:
        commit = f" {len(commits)} commits, which the result files name,"
    else:
        commit = f" Commit {', '.join(commits)}," if commits else ""
    day = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{'; '.join(parts)}.{load}{commit} {day}."
