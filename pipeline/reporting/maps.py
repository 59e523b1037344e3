"""Geometry of the report's heat maps, for its template to draw as SVG."""

import dataclasses
import math

from pipeline.reporting.facts import HeatMap
from pipeline.reporting.samples import join_tokens, strip_padding
from pipeline.text.tokenization import JOINER

# In user units of SVG; a character is one of the labels' 12 px font.
_CELL_WIDTH = 30
_CELL_HEIGHT = 26
_CHARACTER_WIDTH = 7.3


@dataclasses.dataclass(frozen=True)
class MapCell:
    """How much one output token looks at one source token.

    Attributes:
        x: the cell's left edge.
        shade: how dark it is, 0 to 1.
        label: percent; "" for little.
        strength: the style of a label on that shade.
        copied: whether the token was copied from there.
        title: what the cell says when one points at it.
    """

    x: float
    shade: float
    label: str
    strength: str
    copied: bool
    title: str


@dataclasses.dataclass(frozen=True)
class MapRow:
    """An output token.

    Attributes:
        y: the row's upper edge.
        label: the token, shortened.
        token: the token.
        cells: one for each source token.
        origin: the source token that it was copied from, or "".
        shade, strength, percent, probability: of the probability that it was copied.
    """

    y: float
    label: str
    token: str
    cells: list[MapCell]
    origin: str
    shade: float
    strength: str
    percent: str
    probability: str


@dataclasses.dataclass(frozen=True)
class MapColumn:
    """A source token: the middle of its column, its label, and the whole token."""

    x: float
    label: str
    token: str


@dataclasses.dataclass(frozen=True)
class DrawnMap:
    """A heat map: rows are output tokens, columns are source tokens.

    Attributes:
        name: the system's.
        text, source: the output and the source as texts.
        width, height: of the whole drawing.
        left, top: where the cells begin.
        copy_x: where the column of copy probabilities begins.
        columns, rows: the source's and the output's tokens.
        cell_width, cell_height: of every cell.
    """

    name: str
    text: str
    source: str
    width: int
    height: int
    left: float
    top: float
    copy_x: float
    columns: list[MapColumn]
    rows: list[MapRow]
    cell_width: int = _CELL_WIDTH
    cell_height: int = _CELL_HEIGHT


def drawn_map(facts: HeatMap) -> DrawnMap:
    """Returns the geometry of a heat map."""
    source_tokens = strip_padding(facts["source_tokens"])
    tokens = strip_padding(facts["tokens"])
    text, source_text = join_tokens(tokens), join_tokens(source_tokens)
    source_tokens = [_without_joiner(token) for token in source_tokens]
    tokens = [_without_joiner(token) for token in tokens]
    sources = [_shorten(token) for token in source_tokens]
    labels = [_shorten(token) for token in tokens]
    left = 14 + _CHARACTER_WIDTH * max((len(label) for label in labels), default=0)
    top = 16 + _CHARACTER_WIDTH * 0.78 * max((len(label) for label in sources), default=0)
    copy_x = left + _CELL_WIDTH * len(sources) + 14
    rows = []
    for row, (token, label) in enumerate(zip(tokens, labels)):
        origin = facts["copied_from"][row]
        copied = 0 <= origin < len(source_tokens)
        probability = facts["copy_probability"][row] or 0.0
        cells = []
        for column, source in enumerate(source_tokens):
            weight = facts["attention"][row][column] or 0.0
            is_origin = copied and column == origin
            title = f"“{token}” looks at “{source}” with {weight:.3f}"
            if is_origin:
                title += f"; copied from it, probability {probability:.3f}"
            cells.append(
                MapCell(
                    x=left + _CELL_WIDTH * column,
                    shade=_shade(weight),
                    label=f"{100 * weight:.0f}" if weight >= 0.05 else "",
                    strength=_strength(weight),
                    copied=is_origin,
                    title=title,
                )
            )
        rows.append(
            MapRow(
                y=top + _CELL_HEIGHT * row,
                label=label,
                token=token,
                cells=cells,
                origin=source_tokens[origin] if copied else "",
                shade=_shade(probability),
                strength=_strength(probability),
                percent=f"{100 * probability:.0f}",
                probability=f"{probability:.3f}",
            )
        )
    columns = [
        MapColumn(left + _CELL_WIDTH * (column + 0.5), label, token)
        for column, (label, token) in enumerate(zip(sources, source_tokens))
    ]
    return DrawnMap(
        name=facts.get("system", ""),
        text=text,
        source=source_text,
        width=math.ceil(copy_x + _CELL_WIDTH + 46),
        height=math.ceil(top + _CELL_HEIGHT * len(rows) + 4),
        left=left,
        top=top,
        copy_x=copy_x,
        columns=columns,
        rows=rows,
    )


def _without_joiner(token: str) -> str:
    """Returns a token as a label.

    The joiner is in few fonts, so where it stands alone an undertie stands for it.
    """
    return token.replace(JOINER, "") or ("\u203f" if token else "")


def _shade(weight: float) -> float:
    return round(min(1.0, max(0.0, weight)), 3)


def _strength(shade: float) -> str:
    """Returns the class of a label over a shade, which chooses a text colour that can be read."""
    return "strong" if shade >= 0.78 else "medium" if shade >= 0.57 else ""


def _shorten(token: str, limit: int = 22) -> str:
    return token if len(token) <= limit else token[: limit - 1] + "…"
