"""Summaries: tables whose rows are pairs of rows of other tables, of which some are measured."""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from benchmarks.campaign.plan import PlanError, Table
from benchmarks.records.record import RowRecord, TableRecord
from benchmarks.tables import cells

SUMMARIES = pathlib.Path(__file__).parents[1] / "summaries.toml"


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a summary: two rows of one table, compared by one metric.

    Attributes:
        label: what is measured, such as the corpus.
        table: the table's name.
        metric: the metric's name.
        without, with_row: the names of the two rows.
    """

    label: str
    table: str
    metric: str
    without: str
    with_row: str


@dataclasses.dataclass(frozen=True)
class Summary:
    """A table of lines.

    Attributes:
        name: that of its markers.
        titles: of the first column, and of those of the two rows.
        lines: those that are not measured are left out.
    """

    name: str
    titles: tuple[str, str, str]
    lines: tuple[Line, ...]


def load(path: pathlib.Path = SUMMARIES) -> dict[str, Summary]:
    """Reads the summaries; returns them by name."""
    tree = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {one["name"]: _summary(one) for one in tree.get("summaries", [])}


def _summary(tree: Mapping[str, Any]) -> Summary:
    lines = tuple(
        Line(line["label"], line["table"], line["metric"], line["without"], line["with"])
        for line in tree["lines"]
    )
    first, without, with_row = tree["titles"]
    return Summary(tree["name"], (first, without, with_row), lines)


def table(summary: Summary, plans: Mapping[str, Table], records: Mapping[str, TableRecord]) -> str:
    """Returns a summary as Markdown.

    Args:
        summary: which lines there are.
        plans: the tables by name.
        records: the figures by table, of those that are measured.

    Raises:
        PlanError: a line names a row that there is not.
    """
    body, missing, origins = [], [], []
    for line in summary.lines:
        if line.table not in plans:
            raise PlanError(f"The summary {summary.name} names the table {line.table}: none.")
        plan = plans[line.table]
        names = {row.name: row for row in plan.rows}
        if unknown := {line.without, line.with_row} - set(names):
            raise PlanError(f"The summary {summary.name} names a row {unknown.pop()}: none.")
        found = records.get(line.table)
        without, with_row = (
            found.row(name) if found else None for name in (line.without, line.with_row)
        )
        if not without or not with_row:
            missing.append(line.label)
            continue
        body.append(_cells(line, plan, without, with_row))
        origins += [run.origin for row in (without, with_row) for run in row.runs]
    first, *both = summary.titles
    head = [first, "measure", "split", *both, "p", "published", "seeds", "epochs", "converged"]
    text = cells.markdown(head, body) + "\n" if body else ""
    notes = [cells.INTERVALS, cells.origins(origins)] if origins else []
    if missing:
        notes.append(f"Not measured yet: {'; '.join(missing)}.")
    return text + cells.wrapped(" ".join(notes))


def _cells(line: Line, plan: Table, without: RowRecord, with_row: RowRecord) -> list[str]:
    rows = (without, with_row)
    values = [[run.metrics[line.metric] for run in row.runs] for row in rows]
    tests = [test for test in with_row.tests if test.metric == line.metric]
    tested = cells.p_value(tests[0].p_value) if tests and plan.against == line.without else ""
    runs = [run for row in rows for run in row.runs]
    return [
        line.label,
        cells.label(line.metric, [*values[0], *values[1]]),
        plan.split,
        *(cells.of_seeds(of_row, line.metric, with_interval=True) for of_row in values),
        tested,
        _published(line, plan),
        cells.span(len({run.seed for run in row.runs}) for row in rows),
        cells.span(run.epochs for run in runs),
        cells.converged(runs),
    ]


def _published(line: Line, plan: Table) -> str:
    """Returns the published figure with copying, or else the one without copying."""
    for name, words in ((line.with_row, ""), (line.without, "without copying, ")):
        paper = plan.row(name).paper.get(line.metric)
        if paper is not None:
            return f"{paper:g} ({words}{plan.paper_split})"
    return ""
