"""A picture of figures:
a bar for each program, a line from the smallest to the largest round, in the colours of page and
report: one is ours.
"""

import pathlib

import jinja2

from benchmarks.peers import processes
from pipeline.reporting import charts

_TEMPLATE = pathlib.Path(__file__).with_name("bars.svg.jinja")
_WIDTH, _NAMES, _RIGHT, _BAR, _GAP, _TITLE = 640, 170, 90, 18, 8, 34


def bars(groups):
    """Returns the geometry of bars.

    Args:
        groups: list of dicts: `title`, and `figures`, a dict from a program's name to what
            `rounds.spread` returns.

    Returns:
        Dict for the template: sizes, and groups of bars and ticks; each group has a scale of its
        own, from 0.
    """
    top, made = 0, []
    for group in groups:
        marks = charts.ticks(0.0, max(one["high"] for one in group["figures"].values()), 5)
        scale = (_WIDTH - _NAMES - _RIGHT) / marks[-1]

        def x(value, scale=scale):
            return round(_NAMES + value * scale, 1)

        drawn = []
        for place, (name, one) in enumerate(group["figures"].items()):
            y = top + _TITLE + place * (_BAR + _GAP)
            ends = {key: x(one[key]) for key in ("median", "low", "high")}
            drawn.append(
                {
                    "name": name,
                    "index": 0 if name.startswith("ours") else 1,
                    "y": y,
                    "label": f"{one['median']:,.4g}",
                    **ends,
                }
            )
        bottom = top + _TITLE + len(drawn) * (_BAR + _GAP)
        ticks = [{"x": x(mark), "label": f"{mark:g}"} for mark in marks]
        made.append(
            {"title": group["title"], "top": top, "bottom": bottom, "bars": drawn, "ticks": ticks}
        )
        top = bottom + 34
    return {"width": _WIDTH, "height": top, "left": _NAMES, "bar": _BAR, "groups": made}


def write(path, title, groups):
    """Writes an SVG file of `bars(groups)`."""
    render(_TEMPLATE, path, title=title, **bars(groups))


def render(template, path, **values):
    """Writes an SVG file of a template, which has `colours`, those of page and report, beside its
    values.
    """
    colours = (processes.ROOT / "serving" / "web" / "base.css").read_text(encoding="utf-8")
    # The first rules of the file, up to the first that is not of colours.
    colours = colours[: colours.index("* {")]
    made = jinja2.Template(template.read_text(encoding="utf-8"), autoescape=True, trim_blocks=True)
    text = made.render(colours=jinja2.utils.markupsafe.Markup(colours), **values)
    pathlib.Path(path).write_text(text + "\n", encoding="utf-8")
