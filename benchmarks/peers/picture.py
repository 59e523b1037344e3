"""A picture of figures: a bar for each program, a line from the smallest to the largest round.

The colours are those of page and report; one is for our programs.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import jinja2
import markupsafe

from benchmarks.peers import processes
from benchmarks.peers.rounds import Spread
from pipeline.common import whole_files
from pipeline.reporting import charts

_TEMPLATE = pathlib.Path(__file__).with_name("bars.svg.jinja")
_WIDTH, _NAMES, _RIGHT, _BAR, _GAP, _TITLE = 640, 170, 90, 18, 8, 34


class Group(TypedDict):
    """Bars with a common scale.

    Attributes:
        title: what they show.
        figures: the numbers by the name of the program.
    """

    title: str
    figures: Mapping[str, Spread]


def bars(groups: Sequence[Group]) -> dict[str, Any]:
    """Returns the geometry of bars, for the template.

    It has sizes, and groups of bars and ticks; each group has a scale of its own, from 0.
    """
    top, made = 0, []
    for group in groups:
        marks = charts.ticks(0.0, max(one["high"] for one in group["figures"].values()), 5)
        scale = (_WIDTH - _NAMES - _RIGHT) / marks[-1]

        def x(value: float, scale: float = scale) -> float:
            return round(_NAMES + value * scale, 1)

        shown = []
        for place, (name, one) in enumerate(group["figures"].items()):
            y = top + _TITLE + place * (_BAR + _GAP)
            ends = {"median": x(one["median"]), "low": x(one["low"]), "high": x(one["high"])}
            shown.append(
                {
                    "name": name,
                    "index": 0 if name.startswith("ours") else 1,
                    "y": y,
                    "label": f"{one['median']:,.4g}",
                    **ends,
                }
            )
        bottom = top + _TITLE + len(shown) * (_BAR + _GAP)
        ticks = [{"x": x(mark), "label": f"{mark:g}"} for mark in marks]
        made.append(
            {"title": group["title"], "top": top, "bottom": bottom, "bars": shown, "ticks": ticks}
        )
        top = bottom + 34
    return {"width": _WIDTH, "height": top, "left": _NAMES, "bar": _BAR, "groups": made}


def drawn(title: str, groups: Sequence[Group]) -> str:
    """Returns the SVG of `bars(groups)`."""
    return rendered(_TEMPLATE, title=title, **bars(groups))


def write(path: pathlib.Path, title: str, groups: Sequence[Group]) -> None:
    """Writes an SVG file of `bars(groups)`."""
    whole_files.write_text(path, drawn(title, groups))


def render(template: pathlib.Path, path: pathlib.Path, **values: Any) -> None:
    """Writes an SVG file of a template; arguments as for `rendered`."""
    whole_files.write_text(path, rendered(template, **values))


def rendered(template: pathlib.Path, **values: Any) -> str:
    """Returns the SVG of a template.

    Beside its values, the template has `colours`, those of page and report.
    """
    colours = (processes.ROOT / "serving" / "web" / "base.css").read_text(encoding="utf-8")
    # The first rules of the file define the colours.
    colours = colours[: colours.index("* {")]
    made = jinja2.Template(template.read_text(encoding="utf-8"), autoescape=True, trim_blocks=True)
    return made.render(colours=markupsafe.Markup(colours), **values) + "\n"
