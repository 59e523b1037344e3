"""Java's .properties files."""

import re
from collections.abc import Iterator

from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Place
from pipeline.documents.icu_messages import ARGUMENT, IcuError, IcuMessage
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, Value, one_part
from pipeline.readers.files import starts_as_utf16
from pipeline.readers.inline_text import with_tags

_LINE = re.compile(
    r"(?P<space>[ \t\f]*)(?P<line>(?:[^\\\r\n]|\\(?:\r\n|.)|\\\Z)*)(?:\r\n|\r|\n|\Z)", re.S
)
_KEY = re.compile(r"(?:[^\\ \t\f:=]|\\(?:\r\n|\r|\n)[ \t\f]*|\\.)*", re.DOTALL)
# White space, over lines that go on.
_GAP = re.compile(r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(\r\n|\r|\n)[ \t\f]*|(.)|\Z)", re.S)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r", "\f": r"\f"}
_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
# An argument of Java's MessageFormat, and an apostrophe that it would not print.
_NUMBERED = re.compile(r"\{\d")
_PLAIN_APOSTROPHE = re.compile(r"\w'\w")


class PropertiesDocument(ResourceDocument):
    """A .properties file.

    Other letters than ASCII are written as `\\uXXXX`, unless the file has some of UTF-8.

    Args:
        path: its name in messages.
        content: its bytes; those that are not UTF-8 are ISO 8859-1.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it contains no text, or has an escape that is not valid.
    """

    separator = "\n"

    def decoded(self, content: bytes) -> tuple[str, bytes]:
        """See `ResourceDocument`."""
        self._charset = "utf-8"
        self._is_ascii = content.isascii()
        if not starts_as_utf16(content) and not _is_utf8(content):
            self._charset, self._is_ascii = "latin-1", True
            return content.decode("latin-1"), b""
        return super().decoded(content)

    def encoded(self, text: str) -> bytes:
        """See `ResourceDocument`."""
        return self.mark + text.encode(self._charset)

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        entries = list(self._entries(text))
        numbered = [_unescape(text[slice(*place)]) for _, place, *_ in entries]
        numbered = [value for value in numbered if _NUMBERED.search(value)]
        self._doubles = not any(map(_PLAIN_APOSTROPHE.search, numbered))
        return [
            Node(key, line, chunk, self._value(text, place), begin=begin)
            for key, place, chunk, line, begin in entries
        ]

    def _entries(self, text: str) -> Iterator[tuple[str, Place, Place, int, int]]:
        """Yields the key, the place of the value, the chunk, the line and the begin of entries."""
        end, line, counted = 0, 1, 0
        for match in _LINE.finditer(text):
            if not match["line"] or match["line"][0] in "#!":
                continue
            begin = match.start("line")
            line += text.count("\n", counted, begin)
            counted = begin
            key, behind = _cut(match["line"])
            if _BAD_ESCAPE.search(match["line"]):
                raise DocumentError(
                    f"{self._path} has an escape that is not valid: see line {line}."
                )
            place = begin + behind, match.end("line")
            yield _unescape(key), place, (end, match.end("line")), line, begin
            end = match.end()

    def _value(self, text: str, place: Place) -> Value:
        value = _unescape(text[slice(*place)])
        if not ARGUMENT.search(value):
            return one_part(place, with_tags(value), self._escaped)
        try:
            doubles = self._doubles and bool(_NUMBERED.search(value))
            message = IcuMessage(value, self.language, doubles)
        except IcuError as error:
            return Value(place, (), lambda parts: "", problem=str(error))
        return Value(place, message.parts, lambda parts: self._escaped(message.written(parts)))

    def _escaped(self, text: str) -> str:
        written = []
        for number, letter in enumerate(text):
            # It would count for what separates the value from its key.
            if letter in " :=" and number == 0:
                written.append("\\" + letter)
            elif letter in _WRITTEN:
                written.append(_WRITTEN[letter])
            elif letter < " " or (self._is_ascii and not letter.isascii()):
                units = letter.encode("utf-16-be")
                written += (f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))
            else:
                written.append(letter)
        return "".join(written)


def _cut(line: str) -> tuple[str, int]:
    """Returns the key of an entry as it is written, and where the value begins."""

    def end_of(pattern: "re.Pattern[str]", place: int) -> int:
        match = pattern.match(line, place)
        assert match
        return match.end()

    key = end_of(_KEY, 0)
    place = end_of(_GAP, key)
    if line[place : place + 1] in (":", "="):
        place = end_of(_GAP, place + 1)
    return line[:key], place


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unescape(text: str) -> str:
    def character(match: "re.Match[str]") -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPED.get(match[3], match[3] or "")

    unescaped = _ESCAPE.sub(character, text)
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
