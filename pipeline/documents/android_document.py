"""Android's string resources: strings.xml."""

import dataclasses
import re
from collections.abc import Sequence

from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Place
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, Value
from pipeline.documents.xml_files import read_xml
from pipeline.readers.inline_text import InlineText, Mark, Piece
from pipeline.readers.line_numbers import line_of
from pipeline.readers.xml_text import xml_pieces
from pipeline.readers.xml_tree import Element, escape, tokens

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "\n": ""}
_WRITTEN = {"'": r"\'", '"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t"}
_SPACE = " \t\n\r\f\v"
# A reference to another resource.
_REFERENCE = re.compile(r"[@?](?:\+?[\w.]+:)?(?:[\w.]+/)?[\w.]+|@null|@empty")
_DIALECTS = ("java", "icu", "template")


class AndroidDocument(ResourceDocument):
    """A file of `<string>`, `<plurals>` and `<string-array>`.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is not well-formed, or has no resources.
    """

    zero_is_special = False

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        root = read_xml(self._path, text)
        if root.name != "resources":
            raise DocumentError(
                f"{self._path} is not a file of Android's resources: its root is {root.name}."
            )
        nodes = []
        end = root.tag_end
        for element in root.children:
            if element.attributes.get("translatable") != "false":
                nodes += _nodes_of(text, element, (end, element.end))
            end = element.end
        return nodes


def _nodes_of(text: str, element: Element, chunk: Place) -> list[Node]:
    attributes = element.attributes
    name = "/".join(attributes[key] for key in ("name", "product") if key in attributes)
    line = line_of(text, element.begin)
    is_string = element.name == "string" or (
        element.name == "item" and attributes.get("type") == "string"
    )
    node = Node(f"{element.name}/{name}", line, chunk, begin=element.begin)
    if is_string:
        node.value = _value(text, element)
        return [node]
    if element.name not in ("plurals", "string-array"):
        return []
    node.is_plural, node.inner = element.name == "plurals", element.inner
    end = element.tag_end
    for number, item in enumerate(element.children):
        key = item.attributes.get("quantity", "") if node.is_plural else str(number)
        line = line_of(text, item.begin)
        child = Node(key, line, (end, item.end), _value(text, item))
        if found := re.search(r"quantity\s*=\s*[\"']([^\"']*)", text[item.begin : item.tag_end]):
            child.name = item.begin + found.start(1), item.begin + found.end(1)
        node.children.append(child)
        end = item.end
    return [node]


def _value(text: str, element: Element) -> Value | None:
    """Returns the text of an element; None if it refers to another resource."""
    if element.is_empty:
        return None
    begin, end = element.inner
    raw = text[begin:end]
    if raw.strip(_SPACE):
        begin += len(raw) - len(raw.lstrip(_SPACE))
        end -= len(raw) - len(raw.rstrip(_SPACE))
    if _REFERENCE.fullmatch(text[begin:end]):
        return None
    write = _write
    pieces = _read(xml_pieces(text, begin, end, lambda tag: ":" in tag.name))
    parts = list(tokens(text, begin, end))
    if len(parts) == 1 and parts[0].kind == "cdata":
        begin, end, write = begin + len("<![CDATA["), end - len("]]>"), _write_cdata
    return Value((begin, end), [InlineText(pieces, _DIALECTS)], write, _refuse)


def _read(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns pieces with Android's escapes, quotes and white space resolved."""
    reader = _Reader()
    read: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str):
            read.append(reader.read(piece))
        else:
            # A tag's quotes are lost in the compiled string, and may be escaped to keep them.
            shown = re.sub(r"\\([\"'])", r"\1", piece.shown)
            read.append(dataclasses.replace(piece, shown=shown))
            reader.after_space = False
    return read


class _Reader:
    """Reads characters as Android's compiler does: escapes, quotes and white space."""

    def __init__(self) -> None:
        self._in_quotes = False
        self.after_space = False

    def read(self, text: str) -> str:
        """Returns the text of characters; quotes may begin in one call and end in another."""
        read = []
        position = 0
        while position < len(text):
            letter = text[position]
            position += 1
            if letter == "\\":
                match = _ESCAPE.match(text, position - 1)
                assert match
                position = match.end()
                other = match[2] or ""
                letter = chr(int(match[1], 16)) if match[1] else _ESCAPED.get(other, other)
                self.after_space = False
            elif letter == '"':
                self._in_quotes = not self._in_quotes
                continue
            elif letter in _SPACE and not self._in_quotes:
                if self.after_space:
                    continue
                letter, self.after_space = " ", True
            else:
                self.after_space = False
            read.append(letter)
        # Escapes can be halves of one character.
        return "".join(read).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(text: str, at_begin: bool, at_end: bool) -> str:
    """Returns characters with Android's escapes.

    Args:
        text: the characters.
        at_begin, at_end: whether the string begins and ends with them.
    """
    written: list[str] = []
    after_space = False
    for number, letter in enumerate(text):
        first, last = at_begin and number == 0, at_end and number == len(text) - 1
        if letter == " " and (first or last or after_space):
            written.append(r"\u0020")
        elif letter in _WRITTEN:
            written.append(_WRITTEN[letter])
        elif letter in "@?" and first:
            written.append("\\" + letter)
        elif letter < " " or letter in "\ufffe\uffff":
            written.append(f"\\u{ord(letter):04x}")
        else:
            written.append(letter)
        after_space = letter == " " and written[-1] == " "
    return "".join(written)


def _write(parts: Sequence[Sequence[Piece]]) -> str:
    return "".join(
        piece.raw if isinstance(piece, Mark) else escape(written)
        for piece, written in zip(parts[0], _all_written(parts[0]))
    )


def _write_cdata(parts: Sequence[Sequence[Piece]]) -> str:
    # What would end the section is cut in two.
    return "".join(_all_written(parts[0])).replace("]]>", "]]]]><![CDATA[>")


def _all_written(pieces: Sequence[Piece]) -> list[str]:
    last = len(pieces) - 1
    return [
        piece.raw if isinstance(piece, Mark) else _written(piece, number == 0, number == last)
        for number, piece in enumerate(pieces)
    ]


def _refuse(text: str) -> str:
    return "Android's strings cannot hold the character U+0000" if "\0" in text else ""
