"""How a measure grows with a size: its exponent, and curves on two logarithmic scales."""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from benchmarks.peers import picture
from pipeline.common import whole_files

_TEMPLATE = pathlib.Path(__file__).with_name("curves.svg.jinja")
_PANEL = {"width": 320, "height": 250, "left": 58, "right": 16, "top": 46, "bottom": 44}
_COLUMNS = 2


class Curve(TypedDict):
    """A measure by size.

    Attributes:
        title: the measure.
        x_label: the size.
        points: of size and value, both positive, at least two sizes.
    """

    title: str
    x_label: str
    points: Sequence[tuple[float, float]]


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Returns b of the power law values = a sizes^b that fits best: 1 is linear, 0 constant.

    The fit is by least squares of the logarithms.

    Args:
        sizes, values: positive numbers, at least two different sizes.
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def last_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Returns the exponent between the two largest sizes, where constant costs weigh least."""
    last_sizes, last_values = zip(*sorted(zip(sizes, values))[-2:])
    return exponent(last_sizes, last_values)


def _marks(values: Sequence[float]) -> list[float]:
    """Returns the round numbers 1, 2, 5, 10, ... that enclose positive values.

    They are powers of ten where the others would be too many.
    """
    first, last = (math.floor(math.log10(value)) for value in (min(values), max(values)))
    for steps in ((1, 2, 5), (1,)):
        marks = [step * 10.0**power for power in range(first, last + 2) for step in steps]
        low = max(mark for mark in marks if mark <= min(values) * (1 + 1e-9))
        high = min(mark for mark in marks if mark >= max(values) * (1 - 1e-9) and mark > low)
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) <= 8:
            break
    return marks


def _label(number: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


@dataclasses.dataclass(frozen=True)
class _Scale:
    """A logarithmic scale from its first mark at `start` to its last one at `end`."""

    marks: Sequence[float]
    start: float
    end: float

    def position(self, value: float) -> float:
        """Returns where a value is drawn."""
        first, last = self.marks[0], self.marks[-1]
        share = math.log(value / first) / math.log(last / first)
        return round(self.start + (self.end - self.start) * share, 1)

    def ticks(self) -> list[dict[str, Any]]:
        """Returns the marks for the template."""
        return [{"at": self.position(mark), "label": _label(mark)} for mark in self.marks]


def panels(curves: Sequence[Curve]) -> dict[str, Any]:
    """Returns the geometry of curves, a panel each, for the template."""
    rows = -(-len(curves) // _COLUMNS)
    return {
        "width": _PANEL["width"] * min(len(curves), _COLUMNS),
        "height": rows * _PANEL["height"],
        "panels": [_panel(number, curve) for number, curve in enumerate(curves)],
    }


def _panel(number: int, curve: Curve) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    left = column * _PANEL["width"] + _PANEL["left"]
    right = (column + 1) * _PANEL["width"] - _PANEL["right"]
    top = row * _PANEL["height"] + _PANEL["top"]
    bottom = (row + 1) * _PANEL["height"] - _PANEL["bottom"]
    sizes, values = zip(*sorted(curve["points"]))
    x, y = _Scale(sizes, left, right), _Scale(_marks(values), bottom, top)
    return {
        "title": curve["title"],
        "exponent": f"exponent {exponent(sizes, values):.2f}; at the end "
        f"{last_exponent(sizes, values):.2f}",
        "x_label": curve["x_label"],
        "left": left,
        "right": right,
        "top": top,
        "bottom": bottom,
        "x_ticks": x.ticks(),
        "y_ticks": y.ticks(),
        "points": [
            {
                "x": x.position(size),
                "y": y.position(value),
                "label": f"{_label(size)}: {value:,.4g}",
            }
            for size, value in zip(sizes, values)
        ],
    }


def drawn(title: str, curves: Sequence[Curve]) -> str:
    """Returns the SVG of `panels(curves)`."""
    return picture.rendered(_TEMPLATE, title=title, **panels(curves))


def write(path: pathlib.Path, title: str, curves: Sequence[Curve]) -> None:
    """Writes an SVG file of `panels(curves)`."""
    whole_files.write_text(path, drawn(title, curves))
