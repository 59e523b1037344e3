"""Learning curves: the loss of each evaluation, a line for each variant.

The colours are those of page and report.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers import picture
from pipeline.common import whole_files
from pipeline.reporting import charts

_TEMPLATE = pathlib.Path(__file__).with_name("learning_curves.svg.jinja")
_SIZE = {"width": 560, "height": 320, "left": 52, "right": 372, "top": 40, "bottom": 276}
_LEGEND_LINE = 20
# Lines of the same colour differ by their dashes.
_COLOURS = 4


def geometry(curves: Mapping[str, Sequence[float]]) -> dict[str, Any] | None:
    """Returns where lines, points, marks and names are drawn, for the template.

    Args:
        curves: the losses of each variant in nats, one for each evaluation; one an epoch, mostly.

    Returns:
        Values for the template; None where no variant has a point.
    """
    known = {name: list(enumerate(points, 1)) for name, points in curves.items() if points}
    epochs = [epoch for points in known.values() for epoch, _ in points]
    losses = [loss for points in known.values() for _, loss in points]
    if not losses:
        return None
    first, last = min(epochs), max(epochs)
    marks = charts.ticks(min(losses), max(losses), 6)

    def x(epoch: int) -> float:
        share = (epoch - first) / (last - first) if last > first else 0.5
        return round(_SIZE["left"] + share * (_SIZE["right"] - _SIZE["left"]), 1)

    def y(loss: float) -> float:
        share = (loss - marks[0]) / (marks[-1] - marks[0])
        return round(_SIZE["bottom"] - share * (_SIZE["bottom"] - _SIZE["top"]), 1)

    lines = [
        {
            "name": name,
            "colour": place % _COLOURS,
            "dash": f"{2 + 4 * (place // _COLOURS)} 3" if place >= _COLOURS else "none",
            "legend_y": _SIZE["top"] + _LEGEND_LINE * place,
            "points": [
                {"x": x(epoch), "y": y(loss), "label": f"{name}, epoch {epoch}: {loss:.3f}"}
                for epoch, loss in points
            ],
        }
        for place, (name, points) in enumerate(known.items())
    ]
    step = max(1, math.ceil((last - first) / 8))
    height = max(_SIZE["height"], _SIZE["top"] + _LEGEND_LINE * len(lines))
    return {
        **_SIZE,
        "height": height,
        "lines": lines,
        "x_ticks": [{"at": x(epoch), "label": epoch} for epoch in range(first, last + 1, step)],
        "y_ticks": charts.labelled(marks, y),
    }


def drawn(curves: Mapping[str, Sequence[float]]) -> str | None:
    """Returns the SVG of `geometry(curves)`, or None where there is nothing to draw."""
    made = geometry(curves)
    title = "Evaluation loss after each epoch"
    return picture.rendered(_TEMPLATE, title=title, **made) if made else None


def write(path: pathlib.Path, curves: Mapping[str, Sequence[float]]) -> None:
    """Writes an SVG file of `geometry(curves)`, unless there is nothing to draw."""
    text = drawn(curves)
    if text:
        whole_files.write_text(path, text)
