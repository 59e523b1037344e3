"""ICU messages: arguments, apostrophes, and the forms of plurals within a text."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pipeline.documents import languages
from pipeline.readers.inline_text import InlineText, Mark, Piece, with_tags

#: A text with an argument: braces that belong to no other framework's placeholder.
ARGUMENT = re.compile(r"(?<![%$#{\\])\{\s*[\w.-]+\s*[,}](?!\})")
_SPECIAL = "{}<>#'"
#: The begin of an argument that chooses between texts.
CHOICE = re.compile(
    r"\{\s*([^\s{},]+)\s*,\s*(plural|select|selectordinal)\s*,(?:\s*offset:\s*\d+)?"
)
_ARM = re.compile(r"(\s*)([^\s{}]+)(\s*)\{")
_MOST_PARTS = 40


class IcuError(ValueError):
    """A text that is no ICU message; its message says why."""


@dataclasses.dataclass(frozen=True)
class _Arm:
    """A form: what is written before its selector, the selector, and behind it, and its parts."""

    before: str
    selector: str
    after: str
    parts: list["_Part"]


@dataclasses.dataclass(frozen=True)
class _Choice:
    """An argument that chooses between texts."""

    head: str
    name: str
    kind: str
    arms: list[_Arm]
    tail: str


_Part: TypeAlias = str | Mark | _Choice


@dataclasses.dataclass(frozen=True)
class _Leaf:
    """A text: its number among the texts, and whether it is in a plural."""

    part: int
    in_plural: bool


@dataclasses.dataclass(frozen=True)
class _Branch:
    """A choice, and for each form what it is made of, its name, and what is in it."""

    choice: _Choice
    arms: list[tuple[_Arm, str, "_Tree"]]


_Tree: TypeAlias = _Leaf | _Branch
_NUMBER = Mark("#", "#")


class IcuMessage:
    """A message, and the texts in it.

    Text around a plural moves into its forms, so that each of them is a sentence.

    Args:
        text: the message.
        language: that of the translations.
        doubles: whether every apostrophe is written twice, as Java's MessageFormat needs it.

    Attributes:
        parts: the texts to translate.

    Raises:
        IcuError: it is no message, or has too many forms.
    """

    def __init__(self, text: str, language: str, doubles: bool = False) -> None:
        self._doubles = doubles
        self._language = language
        parts, end = _parse(text, 0, None, "")
        if end != len(text):
            raise IcuError("a brace that is not opened")
        self.parts: list[InlineText] = []
        self._tree = self._expanded(parts, None)

    def _expanded(self, parts: Sequence[_Part], number: str | None) -> _Tree:
        """Returns a message as texts and the choices between them.

        Args:
            parts: those of the message.
            number: the argument that `#` stands for; None outside of plurals.
        """
        place = next((n for n, part in enumerate(parts) if isinstance(part, _Choice)), None)
        if place is None:
            if len(self.parts) == _MOST_PARTS:
                raise IcuError("a message with too many forms")
            pieces: list[Piece] = []
            for part in parts:
                assert not isinstance(part, _Choice)
                pieces += with_tags(part) if isinstance(part, str) else [part]
            self.parts.append(InlineText(pieces))
            return _Leaf(len(self.parts) - 1, number is not None)
        choice = parts[place]
        assert isinstance(choice, _Choice)
        before, after = list(parts[:place]), list(parts[place + 1 :])
        if choice.kind != "select":
            if number:
                # There `#` would be the number of the inner plural.
                outer = Mark(f"{{{number}, number}}", f"{{{number}}}")
                before, after = (
                    [outer if part == _NUMBER else part for part in one] for one in (before, after)
                )
            number = choice.name
        return _Branch(
            choice,
            [
                (arm, selector, self._expanded([*before, *arm.parts, *after], number))
                for arm, selector in self._arms(choice)
            ],
        )

    def _arms(self, choice: _Choice) -> Iterator[tuple[_Arm, str]]:
        """Yields each form that the target's language needs, made of which one, and its name."""
        if choice.kind == "select":
            yield from ((arm, arm.selector) for arm in choice.arms)
            return
        by_name = {arm.selector: arm for arm in choice.arms}
        ordinal = choice.kind == "selectordinal"
        wanted = languages.categories(self._language, ordinal)
        if not wanted:
            raise IcuError(languages.UNKNOWN)
        yield from ((arm, arm.selector) for arm in choice.arms if arm.selector.startswith("="))
        texts = {
            name: InlineText([p for p in arm.parts if not isinstance(p, _Choice)])
            for name, arm in by_name.items()
        }
        for category in wanted:
            source = languages.source_category(category, texts, self._language, ordinal)
            yield by_name[source], category

    def written(self, parts: Sequence[Sequence[Piece]]) -> str:
        """Returns the message with a translation of each text."""
        return self._written(self._tree, parts)

    def _written(self, tree: _Tree, parts: Sequence[Sequence[Piece]]) -> str:
        if isinstance(tree, _Leaf):
            return _escaped(parts[tree.part], tree.in_plural, self._doubles)
        arms = "".join(
            f"{arm.before}{selector}{arm.after}{{{self._written(inner, parts)}}}"
            for arm, selector, inner in tree.arms
        )
        return tree.choice.head + arms + tree.choice.tail


def _escaped(pieces: Sequence[Piece], in_plural: bool, doubles: bool) -> str:
    """Returns a text as it is written in a message."""
    # Each character, and whether it is text, markup, or a quoted part of the source.
    letters: list[tuple[str, str]] = []
    for piece in pieces:
        if isinstance(piece, str):
            letters += ((letter, "text") for letter in piece)
        elif piece.raw.startswith("'"):
            letters += ((letter, "quoted") for letter in piece.raw[1:].removesuffix("'"))
        else:
            letters += ((letter, "mark") for letter in piece.raw)
    written = []
    in_quotes = False
    for number, (letter, kind) in enumerate(letters):
        is_quoted = kind == "quoted" or (
            kind == "text" and (letter in "{}" or (letter == "#" and in_plural))
        )
        is_apostrophe = kind == "text" and letter == "'"
        if is_quoted != in_quotes and not (in_quotes and is_apostrophe):
            written.append("'")
            in_quotes = is_quoted
        if is_apostrophe:
            following = letters[number + 1][0] if number + 1 < len(letters) else "}"
            before = letters[number - 1] if number else ("", "")
            alone = following not in _SPECIAL and before != ("'", "text")
            written.append("'" if alone and not doubles and not in_quotes else "''")
        else:
            written.append(letter)
    return "".join(written) + ("'" if in_quotes else "")


def _parse(text: str, begin: int, plural: str | None, closing: str) -> tuple[list[_Part], int]:
    """Returns the parts of a message, and where it ends.

    Args:
        text: all of it.
        begin: where to begin.
        plural: the argument whose number `#` stands for; None outside of plurals.
        closing: what ends it, a brace or nothing.
    """
    parts: list[_Part] = []
    letters = ""
    place = begin
    while place < len(text) and text[place] != (closing or "\0"):
        letter = text[place]
        if letter == "'":
            following = text[place + 1 : place + 2]
            if following == "'":
                letters, place = letters + "'", place + 2
            elif following and (following in "{}" or (following == "#" and plural)):
                end = _end_of_quote(text, place + 1)
                parts += letters, Mark(text[place:end], text[place:end])
                letters, place = "", end
            else:
                letters, place = letters + "'", place + 1
        elif letter == "{":
            part, place = _argument(text, place, plural)
            parts += letters, part
            letters = ""
        elif letter == "}":
            raise IcuError("a brace that is not opened")
        elif letter == "#" and plural:
            parts += letters, _NUMBER
            letters, place = "", place + 1
        else:
            letters, place = letters + letter, place + 1
    if closing and place == len(text):
        raise IcuError("a brace that is not closed")
    return [*parts, letters] if letters else parts, place


def _end_of_quote(text: str, place: int) -> int:
    """Returns where quoted text ends, of which two apostrophes are one; at the end if never."""
    while (place := text.find("'", place)) >= 0:
        if text[place + 1 : place + 2] != "'":
            return place + 1
        place += 2
    return len(text)


def _argument(text: str, begin: int, plural: str | None) -> tuple[_Part, int]:
    head = CHOICE.match(text, begin)
    if not head:
        depth, place = 0, begin
        while place < len(text):
            if text[place] == "'" and text[place + 1 : place + 2] in ("{", "}"):
                place = _end_of_quote(text, place + 1)
                continue
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            place += 1
            if not depth:
                raw = text[begin:place]
                return Mark(raw, raw), place
        raise IcuError("a brace that is not closed")
    name, kind = head[1], head[2]
    place = head.end()
    arms = []
    number = name if kind != "select" else plural
    while match := _ARM.match(text, place):
        parts, end = _parse(text, match.end(), number, "}")
        arms.append(_Arm(match[1], match[2], match[3], parts))
        place = end + 1
    tail = re.compile(r"\s*\}").match(text, place)
    if not tail or not any(arm.selector == "other" for arm in arms):
        raise IcuError("a plural or select that is not valid")
    return _Choice(head[0], name, kind, arms, tail[0]), tail.end()
