"""What all formats of documents share."""

import abc
import dataclasses
import re
from collections.abc import Mapping

from pipeline.common.errors import VerbatimError
from pipeline.readers.files import BYTE_ORDER_MARK, starts_as_utf16

_ENDS = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


class DocumentError(VerbatimError, ValueError):
    """A document that cannot be read or filled; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """One text to translate.

    Attributes:
        line: where it is in the file, counted from 1.
        text: the text.
    """

    line: int
    text: str


class Document(abc.ABC):
    """A file, and the texts in it that have no translation yet.

    Attributes:
        segments: the texts to translate, in the order of the file.
        blank: the lines of places without a text.
        translated_before: how many places had a translation; they are not touched.
        problems: (line, reason) of each place that cannot be translated; it is not touched.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.blank: list[int] = []
        self.translated_before = 0
        self.problems: list[tuple[int, str]] = []

    def refuse(self, place: int, text: str) -> str:
        """Returns why a text cannot translate the segment at a place; empty if it can."""
        return ""

    @abc.abstractmethod
    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """Returns the file with translations.

        Args:
            texts: place in `segments` to its translation; segments that are not there stay
                untranslated.
            note: one line that tells where the translations come from, for formats with comments.

        Raises:
            DocumentError: the result would not be a valid file.
        """


def decode(path: str, content: bytes) -> tuple[str, bytes]:
    """Returns the text of a UTF-8 file, and its byte order mark if it has one.

    Raises:
        DocumentError: it is not UTF-8, or contains no text.
    """
    if starts_as_utf16(content):
        raise DocumentError(f"{path} is UTF-16, or not text at all: convert it to UTF-8.")
    mark = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
    try:
        text = content[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(
            f"{path} is not UTF-8: line {line} cannot be read; convert the file to UTF-8."
        ) from None
    if not text.strip():
        raise DocumentError(f"{path} contains no text.")
    return text, mark


def with_ends_of(source: str, target: str) -> str:
    """Returns a translation with the white space that its source begins and ends with."""
    before, _, after = _ends(source)
    return before + _ends(target)[1] + after


def _ends(text: str) -> tuple[str, str, str]:
    match = _ENDS.fullmatch(text)
    assert match
    return match[1], match[2], match[3]


def on_one_line(text: str) -> str:
    """Returns a text with each run of white space that breaks a line as one blank."""
    return re.sub(r"\s*[\r\n]\s*", " ", text.strip("\r\n"))
