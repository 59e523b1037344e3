"""Texts in XML: characters and inline elements."""

import dataclasses
import re
from collections.abc import Callable

from pipeline.readers.inline_text import CLOSE, EMPTY, OPEN, Mark, Piece, tags_in
from pipeline.readers.xml_tree import Token, escape, tokens, unescape

_ID = re.compile(r"\s(?:r?id|i|x)\s*=\s*(\"[^\"]*\"|'[^']*')")
_PLACEHOLDER = re.compile(r"%(?:\d+\$)?[-#+ 0,(]*\d*(?:\.\d+)?[a-zA-Z@]|\{[^{}\s]*\}")


def xml_pieces(
    text: str,
    begin: int,
    end: int,
    is_opaque: Callable[[Token], bool],
    opaque: Callable[[str, Token], Mark] | None = None,
) -> list[Piece]:
    """Returns the parts of a text in a well-formed XML file.

    Tags that are characters, such as `&lt;b>`, are marks too.

    Args:
        text: that of the file.
        begin, end: the place of the text.
        is_opaque: whether the content of an element, by its first tag, is not to be translated.
            Such an element becomes one mark.
        opaque: returns the mark of an opaque element, of all of it and its first tag.
    """
    pieces: list[Piece] = []
    # The first tag of an opaque element, and how many elements are open in it.
    first: Token | None = None
    depth = 0
    letters: list[tuple[str, str]] = []
    parts = list(tokens(text, begin, end))
    in_cdata = [part.kind for part in parts] == ["cdata"]
    for token in parts:
        if first:
            depth += (token.kind == OPEN) - (token.kind == CLOSE)
            if not depth:
                pieces.append((opaque or opaque_mark)(text[first.begin : token.end], first))
                first = None
            continue
        if token.kind in ("text", "cdata"):
            letters += _letters(token, in_cdata)
            continue
        pieces += _with_tags(letters)
        letters = []
        if token.kind == OPEN and is_opaque(token):
            first, depth = token, 1
        elif token.kind in (OPEN, CLOSE, EMPTY):
            pieces.append(Mark(token.raw, token.raw, token.kind, token.name))
        elif token.kind in ("entity", "comment"):
            pieces.append(Mark(token.raw, token.raw))
    return pieces + _with_tags(letters)


def _letters(token: Token, in_cdata: bool) -> list[tuple[str, str]]:
    """Returns (character, how it is written) of a token."""
    if token.kind == "cdata":
        return [(letter, letter if in_cdata else escape(letter)) for letter in token.text]
    if token.raw.startswith("&"):
        return [(token.text, token.raw)]
    return [(letter, letter) for letter in token.text]


def _with_tags(letters: list[tuple[str, str]]) -> list[Piece]:
    text = "".join(letter for letter, _ in letters)
    pieces: list[Piece] = []
    place = 0
    for begin, end, mark in tags_in(text):
        raw = "".join(raw for _, raw in letters[begin:end])
        pieces += text[place:begin], dataclasses.replace(mark, raw=raw)
        place = end
    return [*pieces, text[place:]]


def tag_id(tag: str) -> str:
    """Returns what numbers a tag (`id`, `rid`, `i` or `x`), in its quotes, or ""."""
    found = _ID.search(tag)
    return found[1] if found else ""


def attribute(tag: str, name: str) -> str:
    """Returns the value of an attribute of a tag, or ""."""
    found = re.search(rf"\s{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", tag)
    return unescape(found[1] or found[2] or "") if found else ""


def opaque_mark(raw: str, first: Token) -> Mark:
    """Returns the mark of an element whose content is not translated, such as `xliff:g`."""
    content = "".join(token.text for token in tokens(raw, 0, len(raw)))
    if _PLACEHOLDER.fullmatch(content):
        return Mark(raw, content)
    identity = tag_id(first.raw)
    return Mark(raw, f"<{first.name} id={identity}/>" if identity else f"<{first.name}/>")
