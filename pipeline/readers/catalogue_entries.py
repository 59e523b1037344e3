"""The entries and the header of a gettext catalogue."""

import dataclasses
import re

_CHARSET = re.compile(r"Content-Type:[^\n]*?charset=[ \t]*([^\s;\\\"]+)", re.IGNORECASE)
_HEADER_FIELD = re.compile(r'^[^#\n]*"(?:Content-Type|Plural-Forms):', re.IGNORECASE | re.M)
# A template's stand-in for the charset; gettext itself treats it as none.
_TEMPLATE_CHARSET = "CHARSET"
#: The charset of a catalogue that names none.
DEFAULT_CHARSET = "utf-8"
# Every charset of a catalogue encodes these characters as ASCII does.
_SYNTAX = r"#\"[]msgid0x41"


@dataclasses.dataclass
class Entry:
    """One entry, or a syntax error in its place.

    Attributes:
        line: its line in a .po file, its number in a .mo file; both count from 1.
        context: `msgctxt`, or None.
        msgid, plural: the texts to translate; `plural` is None if there is none.
        forms: the translations by their index, the only one of an entry without a plural being 0.
            Bytes that are not valid in the charset are lone surrogates.
        flags: from the comment `#,`.
        comments: the extracted ones (`#.`), without their mark.
        is_obsolete: whether the entry is commented out with `#~`.
        problem: the error in its syntax; empty if there is none.
        text: the entry as it is in the file, if there is a problem.
    """

    line: int
    context: str | None = None
    msgid: str = ""
    plural: str | None = None
    forms: dict[int, str] = dataclasses.field(default_factory=dict)
    flags: list[str] = dataclasses.field(default_factory=list)
    comments: list[str] = dataclasses.field(default_factory=list)
    is_obsolete: bool = False
    problem: str = ""
    text: str = ""

    @property
    def header(self) -> str | None:
        """The header, which is the translation of the empty text; None if this is another entry.

        The charset and the plural rule of a header with a syntax error still count.
        """
        if self.is_obsolete or self.msgid or self.context is not None or self.plural is not None:
            return None
        if not self.problem:
            return self.forms.get(0)
        if not _HEADER_FIELD.search(self.text):
            return None
        return self.text.replace('"', "").replace("\\n", "\n")


def charset_of(header: str) -> str:
    """Returns the charset that a header names, or `DEFAULT_CHARSET`."""
    match = _CHARSET.search(header)
    if not match or match.group(1) == _TEMPLATE_CHARSET:
        return DEFAULT_CHARSET
    return match.group(1)


def is_text_charset(charset: str) -> bool:
    """Whether Python knows a charset, and a catalogue can be written in it."""
    try:
        return _SYNTAX.encode("ascii").decode(charset) == _SYNTAX
    # LookupError: unknown, or not for text. ValueError: a NUL in the name, and UnicodeError.
    except (LookupError, ValueError):
        return False


def decode_in(charset: str, raw: bytes) -> str:
    """Decodes bytes; those that are not valid in the charset become lone surrogates."""
    try:
        return raw.decode(charset, "surrogateescape")
    # A charset whose decoder cannot keep bad bytes.
    except UnicodeError:
        return raw.decode("ascii", "surrogateescape")
