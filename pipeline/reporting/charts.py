"""Geometry of the report's charts, for its template to draw as SVG."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal

from pipeline.reporting import breakdowns
from pipeline.reporting.facts import SystemFacts


@dataclasses.dataclass(frozen=True)
class Frame:
    """The size of a chart and the margins around its plot, in user units of SVG."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def plot_right(self) -> int:
        """The plot's right edge."""
        return self.width - self.right

    @property
    def plot_bottom(self) -> int:
        """The plot's lower edge."""
        return self.height - self.bottom


@dataclasses.dataclass(frozen=True)
class Point:
    """A mark of a chart, and what it says when one points at it."""

    x: float
    y: float
    title: str


@dataclasses.dataclass(frozen=True)
class XTick:
    """A mark of the horizontal axis."""

    x: float
    label: str


@dataclasses.dataclass(frozen=True)
class YTick:
    """A mark of the vertical axis."""

    y: float
    label: str


@dataclasses.dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        name: what the legend says.
        points: its marks.
        index: the number of its system, which chooses colour and mark.
        key: its style, where it belongs to the chart's only system.
    """

    name: str
    points: list[Point]
    index: int = 0
    key: str = ""


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart of lines.

    Attributes:
        frame: its size.
        series: its lines.
        x_ticks, y_ticks: the marks of its axes.
        columns, rows: the same numbers as a table.
        name, index: of its system, where it has only one.
    """

    frame: Frame
    series: list[Series]
    x_ticks: list[XTick]
    y_ticks: list[YTick]
    columns: list[str]
    rows: list[list[str]]
    name: str = ""
    index: int = 0


_FRAME = Frame(width=360, height=220, left=44, right=12, top=12, bottom=40)
# Room for slanted names of categories.
_CATEGORY_FRAME = dataclasses.replace(_FRAME, height=250, bottom=72)
_LOSSES: tuple[tuple[Literal["loss", "eval_loss"], str], ...] = (
    ("loss", "training"),
    ("eval_loss", "evaluation"),
)


def loss_charts(systems: Sequence[SystemFacts]) -> list[Chart]:
    """Returns a chart of losses for each system that has curves.

    All share their axes, so that they compare.
    """
    with_curves = [(index, system) for index, system in enumerate(systems) if system.get("curves")]
    losses = [
        loss
        for _, system in with_curves
        for point in system["curves"]
        for key, _ in _LOSSES
        if (loss := point.get(key)) is not None
    ]
    if not losses:
        return []
    epochs = [point["epoch"] for _, system in with_curves for point in system["curves"]]
    marks = ticks(min(losses), max(losses), 5)
    x_low, x_high = min(epochs), max(epochs)
    left, right = _FRAME.left, _FRAME.plot_right

    def x(epoch: int) -> float:
        share = (epoch - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        return round(left + share * (right - left), 1)

    y = _vertical(_FRAME, marks[0], marks[-1])
    step = max(1, math.ceil((x_high - x_low) / 8))
    x_ticks = [XTick(x(epoch), str(epoch)) for epoch in range(x_low, x_high + 1, step)]
    return [
        _loss_chart(index, system, Chart(_FRAME, [], x_ticks, labelled(marks, y), [], []), x, y)
        for index, system in with_curves
    ]


def _loss_chart(
    index: int,
    system: SystemFacts,
    empty: Chart,
    x: Callable[[int], float],
    y: Callable[[float], float],
) -> Chart:
    """Returns a chart with the axes of `empty` and the losses of one system."""
    series = []
    for key, label in _LOSSES:
        points = [
            Point(x(point["epoch"]), y(loss), f"epoch {point['epoch']}, {label} loss {loss:.3f}")
            for point in system["curves"]
            if (loss := point.get(key)) is not None
        ]
        series.append(Series(label, points, key=key))
    columns = list(dict.fromkeys(key for point in system["curves"] for key in point))
    rows = [[_cell(point.get(column)) for column in columns] for point in system["curves"]]
    return dataclasses.replace(
        empty, series=series, columns=columns, rows=rows, name=system["name"], index=index
    )


def _vertical(frame: Frame, low: float, high: float) -> Callable[[float], float]:
    """Returns the function that places a value between the plot's lower and upper edge."""

    def y(value: float) -> float:
        share = (value - low) / (high - low)
        return round(frame.plot_bottom - share * (frame.plot_bottom - frame.top), 1)

    return y


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def ticks(low: float, high: float, count: int) -> list[float]:
    """Returns round numbers that enclose low and high, about `count` of them."""
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def labelled(values: Sequence[float], y: Callable[[float], float]) -> list[YTick]:
    """Returns the marks of the vertical axis, with as many decimals as tell them apart."""
    digits = max(0, -math.floor(math.log10(values[1] - values[0]) + 1e-9))
    return [YTick(y(value), f"{value:.{digits}f}") for value in values]


def category_chart(systems: Sequence[SystemFacts], breakdown: breakdowns.Breakdown) -> Chart | None:
    """Returns a chart of a value by category, with a line for each system.

    A category that stands for no word of any system is left out. None where no system has values.
    """
    parts = {
        index: of_system
        for index, system in enumerate(systems)
        if (of_system := breakdowns.parts_of(breakdown, system))
    }
    sizes: dict[str, int] = {}
    for of_system in parts.values():
        for part in of_system:
            sizes[part.name] = max(sizes.get(part.name, 0), part.weight)
    names = [name for name, size in sizes.items() if size]
    values = {
        index: {part.name: part.value for part in of_system if part.value is not None}
        for index, of_system in parts.items()
    }
    shown = [numbers[name] for numbers in values.values() for name in names if name in numbers]
    if not shown:
        return None
    marks = ticks(0.0, max(shown) or 1.0, 5)
    left, right = _CATEGORY_FRAME.left, _CATEGORY_FRAME.plot_right
    places = {
        name: round(left + (place + 0.5) * (right - left) / len(names), 1)
        for place, name in enumerate(names)
    }
    y = _vertical(_CATEGORY_FRAME, 0.0, marks[-1])
    series = [
        Series(
            systems[index]["name"],
            [
                Point(
                    places[name],
                    y(numbers[name]),
                    f"{systems[index]['name']}, {name}: {_cell(numbers[name])}",
                )
                for name in names
                if name in numbers
            ],
            index,
        )
        for index, numbers in values.items()
    ]
    return Chart(
        _CATEGORY_FRAME,
        series,
        [XTick(places[name], name) for name in names],
        labelled(marks, y),
        ["", "words of the references", *(line.name for line in series)],
        [
            [name, str(sizes[name]), *(_cell(numbers.get(name)) for numbers in values.values())]
            for name in names
        ],
    )


def _short(number: float) -> str:
    """Returns a count in three digits: 950, 12.3k, 4.79M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


@dataclasses.dataclass(frozen=True)
class SizedSystem:
    """A system of a scatter chart: its number, its name, its size above 0, and its value."""

    index: int
    name: str
    size: int
    value: float


def scatter_chart(systems: Sequence[SizedSystem], label: str) -> Chart:
    """Returns a chart of a value against a size, with a mark for each system.

    Args:
        systems: what it shows; sizes are on a logarithmic axis.
        label: the value's name, for the table.
    """
    sizes = [math.log10(system.size) for system in systems]
    values = [system.value for system in systems]
    marks = ticks(min(values), max(values), 5)
    low, high = min(sizes), max(sizes)
    margin = max(0.1 * (high - low), 0.01)
    low, high = low - margin, high + margin
    left, right = _CATEGORY_FRAME.left, _CATEGORY_FRAME.plot_right

    def x(size: float) -> float:
        return round(left + (size - low) / (high - low) * (right - left), 1)

    y = _vertical(_CATEGORY_FRAME, marks[0], marks[-1])
    series = []
    for system, size in zip(systems, sizes):
        title = f"{system.name}: {system.size:,}, {_cell(system.value)}"
        series.append(Series(system.name, [Point(x(size), y(system.value), title)], system.index))
    x_marks = [low + (high - low) * step / 4 for step in range(5)]
    return Chart(
        _CATEGORY_FRAME,
        series,
        [XTick(x(mark), _short(10**mark)) for mark in x_marks],
        labelled(marks, y),
        ["", "parameters", label],
        [[system.name, f"{system.size:,}", _cell(system.value)] for system in systems],
    )
