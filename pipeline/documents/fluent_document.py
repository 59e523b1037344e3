"""Fluent's .ftl files."""

import re
from collections.abc import Sequence

from fluent.syntax import FluentParser, ast

from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Place
from pipeline.documents.languages import CATEGORIES
from pipeline.documents.options import Options
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, Value
from pipeline.readers.inline_text import InlineText, Mark, Piece, with_tags
from pipeline.readers.line_numbers import line_of

_INDENT = re.compile(r"\n([ ]+)(?=[^ \n])")
_DEFAULT_INDENT = "    "
_PLURAL_KEY = re.compile(rf"{'|'.join(CATEGORIES)}|-?[0-9]+(?:\.[0-9]+)?")


class FluentDocument(ResourceDocument):
    """A .ftl file: its messages and their attributes. Terms, such as names, stay.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it contains no message.
    """

    def __init__(self, path: str, content: bytes, options: Options) -> None:
        self._junk: list[int] = []
        super().__init__(path, content, options)
        self.problems += ((line, "not valid Fluent syntax") for line in self._junk)

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        nodes = []
        end = 0
        entries = FluentParser().parse(text).body
        for entry in entries:
            if isinstance(entry, ast.Junk):
                self._junk.append(line_of(text, entry.span.start))
            elif isinstance(entry, ast.Message):
                node = self._pattern(text, entry.value, entry.id.name, entry.span.start)
                node.chunk, node.begin = (end, entry.span.end), entry.span.start
                end = (
                    entry.value.span.end if entry.value else text.index("=", entry.id.span.end) + 1
                )
                node.inner = end, end
                for one in entry.attributes:
                    child = self._pattern(text, one.value, f".{one.id.name}", one.span.start)
                    child.chunk = end, one.span.end
                    end = one.span.end
                    node.children.append(child)
                nodes.append(node)
            end = entry.span.end
        if not nodes:
            raise DocumentError(f"{self._path} has no message of Fluent's.")
        return nodes

    def _pattern(self, text: str, pattern: ast.Pattern | None, key: str, begin: int) -> Node:
        """Returns the node of a pattern, or of the variants that it chooses from."""
        place = (pattern.span.start, pattern.span.end) if pattern else (begin, begin)
        node = Node(key, line_of(text, begin), (begin, place[1]))
        if not pattern:
            return node
        placeables = [one for one in pattern.elements if isinstance(one, ast.Placeable)]
        selectors = [
            one.expression for one in placeables if isinstance(one.expression, ast.SelectExpression)
        ]
        if not selectors:
            node.value = _value(text, pattern)
        elif len(pattern.elements) > 1:
            problem = "a selector within a sentence: write the whole sentence in each variant"
            node.value = Value(place, (), lambda parts: "", problem=problem)
        else:
            self._variants(text, selectors[0], node)
        return node

    def _variants(self, text: str, select: ast.SelectExpression, node: Node) -> None:
        end = text.index("->", select.selector.span.end) + 2
        for variant in select.variants:
            key = text[variant.key.span.start : variant.key.span.end]
            child = self._pattern(text, variant.value, key, variant.span.start)
            child.chunk = end, variant.span.end
            child.name = variant.span.start, text.index("]", variant.key.span.end) + 1
            child.named = _default_variant if variant.default else _variant
            end = variant.span.end
            node.children.append(child)
        default = next(v for v in select.variants if v.default)
        keys = [child.key for child in node.children]
        node.is_plural = (
            text[default.key.span.start : default.key.span.end] == "other"
            and all(map(_PLURAL_KEY.fullmatch, keys))
            and all(child.value for child in node.children)
        )
        node.ordinal = "ordinal" in text[select.selector.span.start : select.selector.span.end]


def _variant(key: str) -> str:
    return f"[{key}]"


def _default_variant(key: str) -> str:
    return f"*[{key}]" if key == "other" else f" [{key}]"


def _value(text: str, pattern: ast.Pattern) -> Value:
    begin, end = pattern.span.start, pattern.span.end
    raw = text[begin:end]
    is_block = text[:begin].endswith("\n")
    first = raw[: len(raw) - len(raw.lstrip(" "))] if is_block else ""
    found = _INDENT.search(raw)
    indent = first or (found[1] if found else _DEFAULT_INDENT)
    pieces: list[Piece] = []
    for element in pattern.elements:
        if isinstance(element, ast.TextElement):
            pieces += with_tags(element.value)
        elif isinstance(element.expression, ast.StringLiteral):
            pieces.append(element.expression.parse()["value"])
        else:
            placeable = text[element.span.start : element.span.end]
            pieces.append(Mark(placeable, placeable))
    place: Place = begin + len(first), begin + len(raw.rstrip(" "))
    line_end = "\r\n" if "\r\n" in text else "\n"
    return Value(
        place,
        [InlineText(pieces)],
        lambda parts: _written(parts[0], indent, is_block).replace("\n", line_end),
    )


def _written(pieces: Sequence[Piece], indent: str, is_block: bool) -> str:
    """Returns a text as it is written in a pattern.

    Args:
        pieces: its parts.
        indent: what its lines begin with.
        is_block: whether its first line stands alone: then it says how far the others are indented.
    """
    letters: list[tuple[str, bool]] = []
    for piece in pieces:
        if isinstance(piece, Mark):
            letters.append((piece.raw, True))
        else:
            letters += ((letter, False) for letter in piece)
    written: list[str] = []
    begins_line = True
    for number, (letter, is_mark) in enumerate(letters):
        is_end = number in (0, len(letters) - 1)
        after = letters[number + 1][0] if not is_end else ""
        if is_mark:
            written.append(letter)
        elif letter == "\n" and not is_end:
            written.append("\n" if after == "\n" else "\n" + indent)
        elif (
            # White space at the ends of a pattern counts only beside a placeable.
            (letter in " \n" and is_end)
            or (letter == " " and begins_line and not is_block)
            or (letter in "[*." and begins_line)
            or letter in "{}\r\0"
        ):
            shown = letter if letter not in "\r\n\0" else f"\\u{ord(letter):04X}"
            written.append(f'{{ "{shown}" }}')
        else:
            written.append(letter)
            if letter == " " and begins_line:
                continue
        begins_line = letter == "\n" and not is_end
    return "".join(written)
