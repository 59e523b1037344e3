"""The table of trained models: a row for each system, the document's figures beside ours."""

from collections.abc import Sequence

from benchmarks.campaign.plan import Row, Table
from benchmarks.records.record import RowRecord, RunRecord, TableRecord, Value
from benchmarks.tables import cells


def table(plan: Table, record: TableRecord | None) -> str:
    """Returns a table and what is to be known about it, as Markdown.

    Args:
        plan: which rows and columns there are; a row without figures shows the document's.
        record: the figures; None where nothing is measured yet.
    """
    rows = {row.name: found for row in plan.rows if record and (found := record.row(row.name))}
    if not rows and not any(row.paper for row in plan.rows):
        names = "; ".join(row.label or row.name for row in plan.rows)
        return cells.wrapped(f"Rows: {names}.") + notes(plan, rows)
    body = [_line(plan, row, rows.get(row.name), rows) for row in plan.rows]
    return cells.markdown(_head(plan, list(rows.values())), body) + "\n" + notes(plan, rows)


def transposed(plan: Table, record: TableRecord | None) -> str:
    """Returns the same with a row for each metric and a column for each system."""
    rows = {row.name: found for row in plan.rows if record and (found := record.row(row.name))}
    if not rows:
        return notes(plan, rows)
    head = ["", *(row.label or row.name for row in plan.rows)]
    body = [
        [
            cells.label(metric, _values(list(rows.values()), metric)),
            *(_metric(rows.get(row.name), metric) for row in plan.rows),
        ]
        for metric in plan.metrics
    ]
    return cells.markdown(head, body) + "\n" + notes(plan, rows)


def _values(rows: Sequence[RowRecord], metric: str) -> list[Value]:
    return [run.metrics[metric] for row in rows for run in row.runs if metric in run.metrics]


def _has_paper(plan: Table, metric: str) -> bool:
    return any(metric in row.paper for row in plan.rows)


def _head(plan: Table, rows: Sequence[RowRecord]) -> list[str]:
    head = [""]
    for metric in plan.metrics:
        label = cells.label(metric, _values(rows, metric))
        head.append(label)
        if _has_paper(plan, metric):
            split = f" ({plan.paper_split})" if plan.paper_split else ""
            head.append(f"{label}, published{split}")
    tested = f"p against {plan.row(plan.against).label or plan.against}" if plan.against else "p"
    return [*head, tested, "seeds", "epochs", "converged", "minutes", ""]


def _line(plan: Table, row: Row, found: RowRecord | None, rows: dict[str, RowRecord]) -> list[str]:
    line = [row.label or row.name]
    for metric in plan.metrics:
        line.append(_metric(found, metric))
        if _has_paper(plan, metric):
            figures = [row.paper[metric] for row in plan.rows if metric in row.paper]
            line.append(cells.documents(row.paper.get(metric), figures))
    if found is None:
        return [*line, cells.NOTHING, cells.NOTHING, cells.NOTHING, cells.NOTHING, "", _note(row)]
    # The first metric that was tested.
    tests = {test.metric: test for test in found.tests}
    test = next((tests[metric] for metric in plan.metrics if metric in tests), None)
    return [
        *line,
        cells.p_value(test.p_value) if test else cells.NOTHING,
        str(len({run.seed for run in found.runs})),
        cells.span(run.epochs for run in found.runs),
        cells.converged(found.runs),
        cells.span(run.minutes for run in found.runs),
        row.note,
    ]


def _note(row: Row) -> str:
    return row.note or "not measured yet"


def _metric(found: RowRecord | None, metric: str) -> str:
    values = _values([found], metric) if found else []
    return cells.of_seeds(values, metric) if values else cells.NOTHING


def notes(plan: Table, rows: dict[str, RowRecord]) -> str:
    """Returns what is to be known about a table: split, document, machine, files."""
    runs: list[RunRecord] = [run for row in rows.values() for run in row.runs]
    sentences = [f"Split: {plan.split}{_pairs(runs)}."] if plan.split else []
    if plan.source:
        sentences.append(f"Document: {plan.source}.")
    if not runs:
        return cells.wrapped(" ".join([*sentences, "Not measured yet."]))
    tests = [test for row in rows.values() for test in row.tests]
    if tests:
        sentences.append("p: bootstrap over seeds and sentences.")
    sentences += [cells.INTERVALS, cells.origins(run.origin for run in runs)]
    figures = f"Figures: `benchmarks/results/{plan.name}.json`."
    return cells.wrapped(" ".join([*sentences, figures]))


def _pairs(runs: Sequence[RunRecord]) -> str:
    pairs = {run.pairs for run in runs if run.pairs}
    return f", {cells.span(pairs)} pairs" if pairs else ""
