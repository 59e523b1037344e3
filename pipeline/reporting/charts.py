"""Geometry of the report's charts, for its template to draw as SVG."""

import math

_CHART = {"width": 360, "height": 220, "left": 44, "right": 12, "top": 12, "bottom": 40}
_CATEGORY_CHART = {**_CHART, "height": 250, "bottom": 72}  # room for slanted names of categories
_SERIES = (("loss", "training"), ("eval_loss", "evaluation"))


def loss_charts(systems):
    """Returns one chart of losses for each system that has curves;
    all share their axes, so that they compare.
    """
    with_curves = [(index, system) for index, system in enumerate(systems) if system.get("curves")]
    losses = [
        point[key]
        for _, system in with_curves
        for point in system["curves"]
        for key, _ in _SERIES
        if point.get(key) is not None
    ]
    if not losses:
        return []
    epochs = [point["epoch"] for _, system in with_curves for point in system["curves"]]
    y_ticks = ticks(min(losses), max(losses), 5)
    y_low, y_high = y_ticks[0], y_ticks[-1]
    x_low, x_high = min(epochs), max(epochs)
    left, right = _CHART["left"], _CHART["width"] - _CHART["right"]
    top, bottom = _CHART["top"], _CHART["height"] - _CHART["bottom"]

    def x(epoch):
        share = (epoch - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        return round(left + share * (right - left), 1)

    def y(loss):
        return round(bottom - (loss - y_low) / (y_high - y_low) * (bottom - top), 1)

    step = max(1, math.ceil((x_high - x_low) / 8))
    x_ticks = [{"x": x(epoch), "label": str(epoch)} for epoch in range(x_low, x_high + 1, step)]
    charts = []
    for index, system in with_curves:
        series = []
        for key, label in _SERIES:
            points = [
                {
                    "x": x(point["epoch"]),
                    "y": y(point[key]),
                    "title": f"epoch {point['epoch']}, {label} loss {point[key]:.3f}",
                }
                for point in system["curves"]
                if point.get(key) is not None
            ]
            series.append({"key": key, "label": label, "points": points})
        columns = list(dict.fromkeys(key for point in system["curves"] for key in point))
        charts.append(
            {
                **_CHART,
                "name": system["name"],
                "index": index,
                "plot_right": right,
                "plot_bottom": bottom,
                "series": series,
                "x_ticks": x_ticks,
                "y_ticks": labelled(y_ticks, y),
                "columns": columns,
                "rows": [
                    [_curve_cell(point.get(column)) for column in columns]
                    for point in system["curves"]
                ],
            }
        )
    return charts


def _curve_cell(value):
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def ticks(low, high, count):
    """Returns round numbers that enclose low and high, about `count` of them."""
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def labelled(values, y):
    """Returns the marks of the vertical axis at round values, with as many decimals as tell them
    apart.
    """
    digits = max(0, -math.floor(math.log10(values[1] - values[0]) + 1e-9))
    return [{"y": y(value), "label": f"{value:.{digits}f}"} for value in values]


def category_chart(systems, key, category, value, weight):
    """Returns a chart of a value by category, a line for each system, or None where no system has
    what it takes.

    Args:
        systems: the systems of the report's facts.
        key: where a system has the list of its categories, each a dict.
        category: the key of a category's name in it.
        value: the key of its value, a number or None.
        weight: the key of how many words it stands for; a category of none in any system is left
            out.

    Returns:
        Dict of geometry: `series` (a line of points for each system), `x_ticks`, `y_ticks`, and the
        numbers as `columns` and `rows`.
    """
    shown = [(index, system) for index, system in enumerate(systems) if system.get(key)]
    sizes = {}
    for _, system in shown:
        for part in system[key]:
            sizes[part[category]] = max(sizes.get(part[category], 0), part[weight] or 0)
    names = [name for name, size in sizes.items() if size]
    found = {
        index: {part[category]: part[value] for part in system[key] if part[value] is not None}
        for index, system in shown
    }
    values = [values[name] for values in found.values() for name in names if name in values]
    if not values:
        return None
    y_ticks = ticks(0.0, max(values) or 1.0, 5)
    left, right = _CATEGORY_CHART["left"], _CATEGORY_CHART["width"] - _CATEGORY_CHART["right"]
    top, bottom = _CATEGORY_CHART["top"], _CATEGORY_CHART["height"] - _CATEGORY_CHART["bottom"]
    places = {
        name: round(left + (place + 0.5) * (right - left) / len(names), 1)
        for place, name in enumerate(names)
    }

    def y(number):
        return round(bottom - number / y_ticks[-1] * (bottom - top), 1)

    series = [
        {
            "index": index,
            "name": system["name"],
            "points": [
                {
                    "x": places[name],
                    "y": y(found[index][name]),
                    "title": f"{system['name']}, {name}: {_curve_cell(found[index][name])}",
                }
                for name in names
                if name in found[index]
            ],
        }
        for index, system in shown
    ]
    return {
        **_CATEGORY_CHART,
        "plot_right": right,
        "plot_bottom": bottom,
        "series": series,
        "x_ticks": [{"x": places[name], "label": name} for name in names],
        "y_ticks": labelled(y_ticks, y),
        "columns": ["", "words of the references", *(system["name"] for _, system in shown)],
        "rows": [
            [name, str(sizes[name]), *(_curve_cell(found[index].get(name)) for index, _ in shown)]
            for name in names
        ],
    }


def _short(number):
    """Returns a count in three digits: 950, 12.3k, 4.79M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def scatter_chart(points, label):
    """Returns a chart of a value against a size, a mark for each system;
    sizes are on a logarithmic axis.

    Args:
        points: list of (system's index, its name, size above 0, value).
        label: the value's name, for the table.

    Returns:
        Dict of geometry as of `category_chart`.
    """
    sizes, values = [math.log10(size) for _, _, size, _ in points], [value for *_, value in points]
    y_ticks = ticks(min(values), max(values), 5)
    low, high = min(sizes), max(sizes)
    margin = max(0.1 * (high - low), 0.01)
    low, high = low - margin, high + margin
    left, right = _CATEGORY_CHART["left"], _CATEGORY_CHART["width"] - _CATEGORY_CHART["right"]
    top, bottom = _CATEGORY_CHART["top"], _CATEGORY_CHART["height"] - _CATEGORY_CHART["bottom"]

    def x(size):
        return round(left + (size - low) / (high - low) * (right - left), 1)

    def y(number):
        return round(
            bottom - (number - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * (bottom - top), 1
        )

    marks = [low + (high - low) * step / 4 for step in range(5)]
    series = [
        {
            "index": index,
            "name": name,
            "points": [
                {
                    "x": x(math.log10(size)),
                    "y": y(value),
                    "title": f"{name}: {size:,}, {_curve_cell(value)}",
                }
            ],
        }
        for index, name, size, value in points
    ]
    return {
        **_CATEGORY_CHART,
        "plot_right": right,
        "plot_bottom": bottom,
        "series": series,
        "x_ticks": [{"x": x(mark), "label": _short(10**mark)} for mark in marks],
        "y_ticks": labelled(y_ticks, y),
        "columns": ["", "parameters", label],
        "rows": [[name, f"{size:,}", _curve_cell(value)] for _, name, size, value in points],
    }
