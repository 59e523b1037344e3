"""Compiled gettext catalogues: the .mo format, system-dependent strings included.

The format is described in GNU gettext's manual, "The Format of GNU MO Files". Its minor revision 1
keeps strings with macros such as `PRIu64` in tables of their own, which polib, babel, the Translate
Toolkit and Python's gettext do not read.
"""

import struct
from collections.abc import Iterator

from pipeline.readers.catalogue_entries import Entry, charset_of, decode_in, is_text_charset

MAGICS = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}

_LAST_SEGMENT = 0xFFFFFFFF
# The flag that selects a locale's digits: system-dependent, and no macro.
_DIGITS_FLAG = b"I"
_CONTEXT_END = "\x04"
# The strings of a file may overlap. Their total size is at most this many times that of the file.
_MOST_OVERLAP = 16


class MoError(ValueError):
    """A .mo file that cannot be read; the message completes "FILE is not a readable .mo file: "."""


def read_mo(content: bytes) -> tuple[str, list[Entry]]:
    """Reads a .mo file.

    Args:
        content: its bytes.

    Returns:
        (header, entries). The header is not among the entries; it is empty if there is none.

    Raises:
        MoError: the tables are damaged, or the charset is unknown.
    """
    file = _MoFile(content)
    pairs = list(file.strings())
    raw_header = next((translation for text, translation in pairs if text == b""), None)
    header = (raw_header or b"").decode("latin-1")
    charset = charset_of(header)
    if not is_text_charset(charset):
        raise MoError(f"its charset {charset} is unknown")
    entries: list[Entry] = []
    for text, translation in pairs:
        if text != b"":
            entries.append(_entry(len(entries) + 1, text, translation, charset))
    return decode_in(charset, raw_header or b""), entries


def _entry(number: int, raw: bytes | None, translation: bytes | None, charset: str) -> Entry:
    if raw is None or translation is None:
        return Entry(
            number,
            problem="a string that reaches outside the file",
            text=decode_in(charset, raw or translation or b""),
        )
    text = decode_in(charset, raw)
    context, mark, rest = text.partition(_CONTEXT_END)
    if not mark:
        context, rest = "", text
    msgid, has_plural, plural = rest.partition("\0")
    target = decode_in(charset, translation)
    forms = target.split("\0") if has_plural else [target]
    return Entry(
        number,
        context if mark else None,
        msgid,
        plural if has_plural else None,
        dict(enumerate(forms)),
    )


class _MoFile:
    """The strings of a .mo file, by its tables."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._budget = _MOST_OVERLAP * len(content)
        order = MAGICS.get(content[:4])
        if order is None:
            raise MoError("it does not begin as one")
        self._order = order
        try:
            revision, self._count, self._texts, self._translations = self._numbers(4, 4)
            if revision >> 16 > 1:
                raise MoError(f"its major revision is {revision >> 16}")
            # Minor revision 1 added the system-dependent strings.
            self._has_system_strings = bool(revision & 0xFFFF)
            if self._has_system_strings:
                segments, where, self._system_count, *self._system = self._numbers(28, 5)
                self._segments = [
                    self._take(*self._numbers(where + 8 * index, 2)) for index in range(segments)
                ]
        except struct.error:
            raise MoError("it is cut off") from None
        for table, size in (
            (self._texts, 8 * self._count),
            (self._translations, 8 * self._count),
            *((table, 4 * self._system_count) for table in getattr(self, "_system", ())),
        ):
            if table + size > len(content):
                raise MoError("a table reaches outside it")

    def strings(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yields (text, translation) of each entry; None stands for an unreadable string."""
        for index in range(self._count):
            yield (
                self._string(self._texts + 8 * index),
                self._string(self._translations + 8 * index),
            )
        if self._has_system_strings:
            texts, translations = self._system
            for index in range(self._system_count):
                yield (
                    self._system_string(texts + 4 * index),
                    self._system_string(translations + 4 * index),
                )

    def _numbers(self, offset: int, count: int) -> tuple[int, ...]:
        """Returns unsigned numbers of four bytes each; struct.error where the file ends."""
        return struct.unpack_from(f"{self._order}{count}I", self._content, offset)

    def _take(self, length: int, offset: int) -> bytes:
        """Returns the bytes at a place; struct.error where the file ends."""
        self._budget -= length + 8
        if self._budget < 0:
            raise MoError("its strings overlap")
        if offset + length > len(self._content):
            raise struct.error
        return self._content[offset : offset + length]

    def _string(self, descriptor: int) -> bytes | None:
        try:
            return self._take(*self._numbers(descriptor, 2))
        except struct.error:
            return None

    def _system_string(self, place: int) -> bytes | None:
        """Joins the segments of a system-dependent string; macros are in angle brackets.

        `%` and the macro `PRIu64` make `%<PRIu64>`, as in the .po file.
        """
        parts: list[bytes] = []
        try:
            (descriptor,) = self._numbers(place, 1)
            (offset,) = self._numbers(descriptor, 1)
            while True:
                length, macro = self._numbers(descriptor + 4, 2)
                parts.append(self._take(length, offset))
                if macro == _LAST_SEGMENT:
                    # The last segment holds the NUL that ends the string.
                    return b"".join(parts).removesuffix(b"\0")
                name = self._segments[macro].rstrip(b"\0")
                parts.append(name if name == _DIGITS_FLAG else b"<" + name + b">")
                offset += length
                descriptor += 8
        except (struct.error, IndexError):
            return None
