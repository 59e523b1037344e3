"""The table of speed, memory or growth: a row for each program or size."""

from benchmarks.campaign.plan import Column, Table
from benchmarks.records.record import MeasuredRow, TableRecord
from benchmarks.tables import cells


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
    figures = f"Figures: `benchmarks/results/{plan.name}.json`."
    return f"{text}\n{cells.wrapped(f'{rounds}. {origin} {figures}')}"


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
    return cells.markdown(head, rows) + "\n" + origin


def _lines(
    columns: tuple[Column, ...], rows: list[MeasuredRow]
) -> tuple[list[str], list[list[str]]]:
    head = [column.title or cells.column_title(column.key) for column in columns]
    return head, [[_cell(row, column) for column in columns] for row in rows]
