"""The pictures of tables: bars, growth and learning curves, drawn of the result files."""

from benchmarks import learning_curves
from benchmarks.campaign.plan import Picture, Table
from benchmarks.growth import exponents
from benchmarks.peers import picture as bars
from benchmarks.records.record import MeasuredRow, TableRecord
from benchmarks.tables import cells


def svg(plan: Table, record: TableRecord | None) -> str | None:
    """Returns the picture of a table, or None where there is nothing to draw."""
    if not plan.picture or not record:
        return None
    if plan.picture.kind == "losses":
        labels = {row.name: row.label or row.name for row in plan.rows}
        losses = {labels[row.name]: row.runs[0].eval_losses for row in record.rows}
        return learning_curves.drawn(losses)
    if not record.measured:
        return None
    groups: dict[str, list[MeasuredRow]] = {}
    for row in record.measured:
        groups.setdefault(row.labels.get(plan.picture.group, ""), []).append(row)
    if plan.picture.kind == "growth":
        return _growth(plan.picture, groups)
    return _bars(plan.picture, groups)


def _bars(drawn: Picture, groups: dict[str, list[MeasuredRow]]) -> str:
    [figure] = drawn.figures
    return bars.drawn(
        drawn.title,
        [
            {
                "title": f"{drawn.group} {name}: {drawn.title}" if name else drawn.title,
                "figures": {
                    row.labels[drawn.label]: {
                        "median": spread.median,
                        "low": spread.low,
                        "high": spread.high,
                        "values": [],
                    }
                    for row in rows
                    if (spread := row.figures.get(figure))
                },
            }
            for name, rows in groups.items()
        ],
    )


def _growth(drawn: Picture, groups: dict[str, list[MeasuredRow]]) -> str:
    curves: list[exponents.Curve] = []
    for name, rows in groups.items():
        for figure in drawn.figures:
            points = [
                (float(row.labels[drawn.label].replace(",", "")), spread.median)
                for row in rows
                if (spread := row.figures.get(figure))
            ]
            if len(points) > 1:
                title = f"{name}: {cells.column_title(figure)}"
                curves.append({"title": title, "x_label": drawn.label, "points": points})
    return exponents.drawn(drawn.title, curves)
