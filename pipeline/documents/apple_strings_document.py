"""Apple's .strings files."""

import codecs
import re

from pipeline.documents.document import DocumentError
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, one_part
from pipeline.readers.inline_text import with_tags
from pipeline.readers.line_numbers import line_of

_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|/\*.*?\*/|//[^\r\n]*)+)
    |"(?P<string>(?:[^"\\]|\\.)*)"
    |(?P<word>[\w.$/:-]+)
    |(?P<sign>[=;])""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
_CHARSETS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class AppleStringsDocument(ResourceDocument):
    """A .strings file of keys and values, UTF-8 or UTF-16.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is compiled, or not valid.
    """

    def decoded(self, content: bytes) -> tuple[str, bytes]:
        """See `ResourceDocument`."""
        if content.startswith(b"bplist"):
            raise DocumentError(f"{self._path} is a compiled .strings file: translate its source.")
        self._charset = _CHARSETS.get(content[:2], "utf-8")
        if self._charset == "utf-8":
            return super().decoded(content)
        try:
            return content[2:].decode(self._charset), content[:2]
        except UnicodeDecodeError:
            raise DocumentError(f"{self._path} is not valid UTF-16.") from None

    def encoded(self, text: str) -> bytes:
        """See `ResourceDocument`."""
        return self.mark + text.encode(self._charset)

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        tokens = []
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if not match:
                raise self._error(text, place)
            place = match.end()
            if not match["space"]:
                tokens.append(match)
        nodes: list[Node] = []
        end = number = 0
        while number < len(tokens):
            key, *rest = tokens[number : number + 4]
            signs = [token["sign"] for token in rest]
            # A key alone stands for itself, and there is nothing to write at.
            if signs[:1] == [";"] and not key["sign"]:
                number += 2
                continue
            if key["sign"] or signs != ["=", None, ";"]:
                raise self._error(text, key.start())
            value = rest[1]
            name = key["word"] or _unescape(key["string"])
            line = line_of(text, key.start())
            node = Node(name, line, (end, rest[2].end()), begin=key.start())
            if value["word"] is None:
                pieces = with_tags(_unescape(value["string"]))
                node.value = one_part(value.span("string"), pieces, _escaped)
            nodes.append(node)
            end = rest[2].end()
            number += 4
        if not nodes:
            raise DocumentError(f"{self._path} has no keys and texts.")
        return nodes

    def _error(self, text: str, place: int) -> DocumentError:
        line = line_of(text, place)
        return DocumentError(f"{self._path} is not a valid .strings file: see line {line}.")


def _unescape(text: str) -> str:
    def character(match: "re.Match[str]") -> str:
        if match[1] or match[2]:
            return chr(int(match[1] or match[2], 16 if match[1] else 8))
        return _ESCAPED.get(match[3], match[3])

    unescaped = _ESCAPE.sub(character, text)
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(text: str) -> str:
    return "".join(
        _WRITTEN.get(letter) or (f"\\U{ord(letter):04x}" if letter < " " else letter)
        for letter in text
    )
