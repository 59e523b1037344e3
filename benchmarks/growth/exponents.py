"""How a measure grows with a size:
the exponent of a power of it, and curves on two logarithmic scales.
"""

import math
import pathlib

import numpy as np

from benchmarks.peers import picture

_TEMPLATE = pathlib.Path(__file__).with_name("curves.svg.jinja")
_PANEL = {"width": 320, "height": 250, "left": 58, "right": 16, "top": 46, "bottom": 44}
_COLUMNS = 2


def exponent(sizes, values):
    """Returns b of the power law values = a sizes^b that fits best, by least squares of the
    logarithms: 1 is linear, 0 constant.

    Args:
        sizes, values: positive numbers, at least two different sizes.
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def last_exponent(sizes, values):
    """Returns the exponent between the two largest sizes: where constant costs weigh least."""
    return exponent(*zip(*sorted(zip(sizes, values))[-2:]))


def _marks(values):
    """Returns the round numbers 1, 2, 5, 10, ... that enclose positive values;
    powers of ten where those were too many.
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


def _label(number):
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def panels(curves):
    """Returns the geometry of curves, a panel each.

    Args:
        curves: list of dicts: `title`, `x_label`, `points` (list of (size, value), both positive,
            at least two sizes).

    Returns:
        Dict for the template.
    """
    made = []
    for number, curve in enumerate(curves):
        row, column = divmod(number, _COLUMNS)
        left, top = (
            column * _PANEL["width"] + _PANEL["left"],
            row * _PANEL["height"] + _PANEL["top"],
        )
        right = (column + 1) * _PANEL["width"] - _PANEL["right"]
        bottom = (row + 1) * _PANEL["height"] - _PANEL["bottom"]
        sizes, values = zip(*sorted(curve["points"]))
        x_marks, y_marks = sizes, _marks(values)

        def place(value, marks, start, end):
            return round(
                start + (end - start) * math.log(value / marks[0]) / math.log(marks[-1] / marks[0]),
                1,
            )

        def x(value, marks=x_marks, start=left, end=right):
            return place(value, marks, start, end)

        def y(value, marks=y_marks, start=bottom, end=top):
            return place(value, marks, start, end)

        made.append(
            {
                "title": curve["title"],
                "exponent": f"exponent {exponent(sizes, values):.2f}; at the end "
                f"{last_exponent(sizes, values):.2f}",
                "x_label": curve["x_label"],
                "left": left,
                "right": right,
                "top": top,
                "bottom": bottom,
                "x_ticks": [{"at": x(mark), "label": _label(mark)} for mark in x_marks],
                "y_ticks": [{"at": y(mark), "label": _label(mark)} for mark in y_marks],
                "points": [
                    {"x": x(size), "y": y(value), "label": f"{_label(size)}: {value:,.4g}"}
                    for size, value in zip(sizes, values)
                ],
            }
        )
    rows = -(-len(curves) // _COLUMNS)
    width = _PANEL["width"] * min(len(curves), _COLUMNS)
    return {"width": width, "height": rows * _PANEL["height"], "panels": made}


def write(path, title, curves):
    """Writes an SVG file of `panels(curves)`."""
    picture.render(_TEMPLATE, path, title=title, **panels(curves))
