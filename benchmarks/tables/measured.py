"""The table of speed, memory or growth: a row for each program or size."""

from collections.abc import Sequence

from benchmarks.campaign.plan import Column, Table
from benchmarks.records import record as records
from benchmarks.records.record import MeasuredRow, TableRecord
from benchmarks.tables import cells


def on_older_stacks(plan: Table, older: Sequence[TableRecord]) -> str:
    """Returns the tables of other stacks, as Markdown: what the page shows below the newest.

    Args:
        plan: which columns there are.
        older: the figures on each, the newest stack first.
    """
    parts = []
    for one in older:
        backend, version = records.stack(one) or ("", ())
        named = cells.stack({backend: ".".join(map(str, version))}) if backend else "another stack"
        parts.append(f"\nThe same on {named}:\n\n{table(plan, one)}")
    return "".join(parts)


def table(plan: Table, record: TableRecord | None) -> str:
    """Returns a table and where its figures come from, as Markdown.

    Args:
        plan: which columns there are; without any, all.
        record: the figures; None where nothing is measured yet.
    """
    if record is None or not record.measured:
        return "Not measured yet.\n"
    columns = plan.columns or _all_columns(record.measured)
    text = cells.markdown(*_lines(columns, record.measured))
    rounds = "One round" if record.rounds <= 1 else f"Median of {record.rounds} rounds"
    if record.rounds > 1 and any(column.spread for column in columns):
        rounds += " (smallest to largest)"
    origin = cells.origins([record.origin]) if record.origin else ""
    stem = records.stem_by_stack(record) if plan.by_stack else plan.name
    figures = f"Figures: `benchmarks/results/{stem}.json`."
    sentences = [f"{rounds}.", *record.notes, origin, figures]
    return f"{text}\n{cells.wrapped(' '.join(filter(None, sentences)))}"


def _all_columns(rows: list[MeasuredRow]) -> tuple[Column, ...]:
    labels = dict.fromkeys(key for row in rows for key in row.labels)
    figures = dict.fromkeys(key for row in rows for key in row.figures)
    return (
        *(Column(key) for key in labels),
        *(Column(key, spread=True, digits=2) for key in figures),
    )


def _cell(row: MeasuredRow, column: Column) -> str:
    if column.key in row.labels:
        return row.labels[column.key]
    spread = row.figures.get(column.key)
    if spread is None:
        return ""
    return cells.of_rounds(spread, column.digits, column.spread, column.percent)


def plain(record: TableRecord) -> str:
    """Returns all columns of a table, for the terminal of who measured it."""
    head, rows = _lines(_all_columns(record.measured), record.measured)
    origin = cells.origins([record.origin]) if record.origin else ""
    return cells.markdown(head, rows) + "\n" + " ".join(filter(None, [*record.notes, origin]))


def _lines(
    columns: tuple[Column, ...], rows: list[MeasuredRow]
) -> tuple[list[str], list[list[str]]]:
    head = [column.title or cells.column_title(column.key) for column in columns]
    return head, [[_cell(row, column) for column in columns] for row in rows]
