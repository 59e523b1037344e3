"""Texts with markup inside: what the model sees of them, and how its output becomes markup."""

import collections
import dataclasses
import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.text.placeholders import syntax_of
from pipeline.text.placeholders.protected_syntax import BEGIN_MARK, MARKED

OPEN, CLOSE, EMPTY = "open", "close", "empty"
_MARKED = re.compile(MARKED)
_TAG = re.compile(
    r"<(/?)([A-Za-z][\w:.\-]*|[0-9]+)((?:\s+(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)?)(/?)>"
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


@dataclasses.dataclass(frozen=True)
class Mark:
    """Markup in a text.

    Attributes:
        raw: how it is written in the file.
        shown: what the model sees instead, a protected token.
        kind: `OPEN`, `CLOSE`, or `EMPTY` if it stands alone.
        name: the name by which an opening and a closing one belong together.
        in_text: whether it is characters of the text, which the file's syntax does not know.
    """

    raw: str
    shown: str
    kind: str = EMPTY
    name: str = ""
    in_text: bool = False


#: A part of a text: characters, or markup.
Piece: TypeAlias = str | Mark


def tags_in(text: str) -> Iterator[tuple[int, int, Mark]]:
    """Yields begin, end and mark of each tag in a text in which tags are characters."""
    for match in _TAG.finditer(text):
        is_void = match[4] or match[2].lower() in _VOID
        kind = CLOSE if match[1] else EMPTY if is_void else OPEN
        yield *match.span(), Mark(match[0], match[0], kind, match[2], in_text=True)


def with_tags(text: str) -> list[Piece]:
    """Returns a text in which tags are characters, with its tags as marks."""
    pieces: list[Piece] = []
    place = 0
    for begin, end, mark in tags_in(text):
        pieces += text[place:begin], mark
        place = end
    return [*pieces, text[place:]]


class InlineText:
    """A text with markup.

    Args:
        pieces: its parts.
        dialects: the dialects of placeholders that a translation must have as often.

    Attributes:
        text: what the model sees.
        problem: why its markup cannot be told from its characters; empty if it can.
    """

    def __init__(
        self, pieces: Sequence[Piece], dialects: Sequence[str] = DEFAULT_PLACEHOLDERS
    ) -> None:
        self._dialects = tuple(dialects)
        pieces = _distinct(list(_joined(pieces)))
        self._marks = {piece.shown: piece for piece in pieces if isinstance(piece, Mark)}
        self.text = "".join(p if isinstance(p, str) else p.shown for p in pieces)
        same = self.pieces_of(self.text) == pieces
        self.problem = "" if same else "its markup cannot be told from its text"

    @property
    def marks(self) -> Collection[Mark]:
        """Its markup, each once."""
        return self._marks.values()

    def pieces_of(self, text: str) -> list[Piece]:
        """Cuts a text, such as a translation, into characters and this text's markup."""
        if not self._marks:
            return [text] if text else []
        parts = self._pattern.split(text)
        return [self._marks.get(part, part) for part in parts if part]

    @functools.cached_property
    def _pattern(self) -> "re.Pattern[str]":
        shown = sorted(self._marks, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, shown))})")

    def refuse(self, translation: str) -> str:
        """Returns why a translation cannot stand for this text; empty if it can."""
        pieces = self.pieces_of(translation)
        if _marks_of(pieces) != _marks_of(self.pieces_of(self.text)):
            return "the model's output has other markup than its source"
        # Tags in a text need not be well nested, unless they were.
        may_cross = not _is_nested(self.pieces_of(self.text), True)
        if not _is_nested(pieces, False) or not (may_cross or _is_nested(pieces, True)):
            return "the markup of the model's output is not well nested"
        if self._placeholders_of(translation) != self.placeholders:
            return "the model's output has other placeholders than its source"
        return ""

    @functools.cached_property
    def placeholders(self) -> collections.Counter[str]:
        """How often the text has each placeholder."""
        return self._placeholders_of(self.text)

    def _placeholders_of(self, text: str) -> collections.Counter[str]:
        syntax = syntax_of(self._dialects)
        if not text or BEGIN_MARK in text:
            return collections.Counter()
        found = (one[1:-1] for one in _MARKED.findall(syntax.mark(text)))
        return collections.Counter(one for one in found if syntax.is_placeholder(one))


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yields pieces with neighbouring characters in one, and without empty ones."""
    characters = ""
    for piece in pieces:
        if isinstance(piece, str):
            characters += piece
            continue
        if characters:
            yield characters
        characters = ""
        yield piece
    if characters:
        yield characters


def _distinct(pieces: list[Piece]) -> list[Piece]:
    """Renames marks that look like other marks or like characters of the text."""
    characters = "\n".join(piece for piece in pieces if isinstance(piece, str))
    by_shown: dict[str, set[str]] = collections.defaultdict(set)
    for piece in pieces:
        if isinstance(piece, Mark):
            by_shown[piece.shown].add(piece.raw)
    in_doubt = {shown for shown, raws in by_shown.items() if len(raws) > 1 or shown in characters}
    if not in_doubt:
        return pieces
    names: dict[str, str] = {}
    renamed: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Mark) and piece.shown in in_doubt:
            if piece.raw not in names:
                number = len(names) + 1
                while any(f'{end}="{number}"' in characters for end in ("<m id", "</m id")):
                    number += 1
                names[piece.raw] = {
                    OPEN: f'<m id="{number}">',
                    CLOSE: f"</m{number}>",
                    EMPTY: f'<m id="{number}"/>',
                }[piece.kind]
            piece = dataclasses.replace(piece, shown=names[piece.raw])
        renamed.append(piece)
    return renamed


def _marks_of(pieces: Sequence[Piece]) -> collections.Counter[Mark]:
    return collections.Counter(piece for piece in pieces if isinstance(piece, Mark))


def _is_nested(pieces: Sequence[Piece], in_text: bool) -> bool:
    opened: list[str] = []
    for piece in pieces:
        if isinstance(piece, str) or piece.in_text != in_text:
            continue
        if piece.kind == OPEN:
            opened.append(piece.name)
        elif piece.kind == CLOSE:
            if not opened or opened.pop() != piece.name:
                return False
    return not opened
