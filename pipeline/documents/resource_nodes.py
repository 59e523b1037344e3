"""The keys of a file with one language, their texts, and where they are."""

import dataclasses
import re
from collections.abc import Callable, Sequence

from pipeline.documents.edits import Place
from pipeline.readers.inline_text import InlineText, Mark, Piece

_BLANK_LINE = re.compile(r"\n[ \t\r]*(?=\n)")


@dataclasses.dataclass(frozen=True)
class Value:
    """The text of a key.

    Attributes:
        place: where it is written, without what surrounds it, such as quotes that stay.
        parts: the text; several where it holds the forms of a plural itself.
        write: returns what is written at the place for the pieces of each part's translation.
        refuse: returns why a translation cannot be written; empty if it can.
        problem: why the text cannot be translated; empty if it can.
    """

    place: Place
    parts: Sequence[InlineText]
    write: Callable[[Sequence[Sequence[Piece]]], str]
    refuse: Callable[[str], str] = lambda text: ""
    problem: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to translate."""
        return not self.problem and not any(part.text.strip() for part in self.parts)


def one_part(
    place: Place,
    pieces: Sequence[Piece],
    write: Callable[[str], str],
    refuse: Callable[[str], str] = lambda text: "",
) -> Value:
    """Returns the value of a text whose markup is written with the escapes of all characters."""

    def written(parts: Sequence[Sequence[Piece]]) -> str:
        return write("".join(p.raw if isinstance(p, Mark) else p for p in parts[0]))

    return Value(place, [InlineText(pieces)], written, refuse)


#: What stands between the forms of a plural in Laravel's texts.
PIPE = "|"


def forms_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Returns the forms of a text that has several, as Laravel's `apple|apples`; else one."""
    forms: list[list[Piece]] = [[]]
    for piece in pieces:
        if isinstance(piece, Mark):
            forms[-1].append(piece)
            continue
        first, *others = piece.split(PIPE)
        forms[-1].append(first)
        forms += ([other] for other in others)
    is_blank = any(not InlineText(form).text.strip() for form in forms)
    return [list(pieces)] if is_blank else forms


@dataclasses.dataclass
class Node:
    """A key of a file, with its text or with the keys in it.

    Attributes:
        key: its name among its neighbours.
        line: counted from 1.
        chunk: the place of all that belongs to it, with the white space and comments before it.
        value: its text; None for a group, and for what is not to be translated.
        children: the keys in it.
        inner: where children can be inserted, for a group.
        is_plural: whether the children's keys are plural categories.
        ordinal: whether these are of ordinal numbers.
        name: the place of the category, of a child of a plural.
        named: returns what is written there for a category.
        separator: what stands between its children.
        begin: where the key itself begins, behind what the chunk begins with.
        aliases: keys of the file that a plural stands for.
    """

    key: str
    line: int
    chunk: Place
    value: Value | None = None
    children: list["Node"] = dataclasses.field(default_factory=list)
    inner: Place | None = None
    is_plural: bool = False
    ordinal: bool = False
    name: Place | None = None
    named: Callable[[str], str] = str
    separator: str = ""
    begin: int | None = None
    aliases: Sequence[str] = ()

    @property
    def is_translated(self) -> bool:
        """Whether it has a text, or one of its children has one."""
        if self.value and not self.value.is_blank:
            return True
        return any(child.is_translated for child in self.children)


def own_begin(text: str, node: Node, separator: str) -> int:
    """Returns where a key begins with the comments that stand directly above it.

    Args:
        text: that of the file.
        node: the key.
        separator: what stands between it and its neighbours. If that is a line's end, a key begins
            with its line, else behind the line before.
    """
    first = node.chunk[0]
    if node.begin is None:
        return first
    before = text[first : node.begin]
    if blank := list(_BLANK_LINE.finditer(before)):
        return first + blank[-1].end() + (separator == "\n")
    # What stands on the line of the neighbour before belongs to that.
    line = before.find("\n")
    return first + line if first and line >= 0 and separator != "\n" else first
