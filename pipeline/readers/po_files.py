"""gettext catalogues as text: the syntax of .po files.

It is that of GNU gettext's own parser: strings, keywords and comments may be anywhere, with or
without white space between them. polib, babel and the Translate Toolkit read line by line. They
refuse valid files, and return wrong texts for invalid ones. Here invalid syntax becomes an entry
with a problem, so that nothing is lost or misread.
"""

import difflib
import re
from collections.abc import Iterator

from pipeline.readers.catalogue_entries import Entry, charset_of, decode_in, is_text_charset
from pipeline.readers.files import BYTE_ORDER_MARK

TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v\n]+)
    | (?P<previous>\#~?\|[^\n]*)
    | (?P<obsolete>\#~)
    | (?P<comment>\#[^\n]*)
    | "(?P<string>(?:[^"\\\n]|\\[^\n]|\\\n)*)"
    | (?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)(?![A-Za-z0-9_$])
      (?:[ \t\r\f\v\n]*\[[ \t\r\f\v\n]*(?P<index>[0-9]{1,9})[ \t\r\f\v\n]*\])?
    | (?P<word>[A-Za-z0-9_$]+)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]+)|(.))", re.DOTALL)
_ESCAPED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a",
    "\\": "\\", '"': '"', "\n": "",
}  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")
FLAG_MARKS = ("#,", "#=", "#!")
_EXTRACTED_MARK = "#."
# The keywords that a keyword may follow, within one entry.
_PREDECESSORS = {
    "msgctxt": (None,),
    "msgid": (None, "msgctxt"),
    "msgid_plural": ("msgid",),
    "msgstr": ("msgid",),
    "msgstr[]": ("msgid_plural", "msgstr[]"),
}


class PoError(ValueError):
    """A .po file that cannot be read at all; the message completes "FILE "."""


def read_po(content: bytes) -> list[Entry]:
    """Reads a .po file.

    Args:
        content: its bytes.

    Returns:
        Its entries in order, the header among them.

    Raises:
        PoError: the charset is unknown, or not one for catalogues.
    """
    content = content.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    charset = charset_of_po(content)
    if not is_text_charset(charset):
        raise PoError(f"is not valid in its charset {charset}: convert it to UTF-8 with msgconv")
    return list(_Parser(decode_in(charset, content), charset).entries())


def charset_of_po(content: bytes) -> str:
    """Returns the charset that the header of a .po file names; it is read as ASCII."""
    for entry in _Parser(content.decode("latin-1"), "latin-1").entries():
        # In some charsets a letter's second byte is a backslash, so a header may look broken here.
        header = entry.header
        if header is not None:
            return charset_of(header)
    return charset_of("")


class _Parser:
    """Turns the text of a .po file into entries."""

    def __init__(self, text: str, charset: str) -> None:
        self._text = text
        self._charset = charset
        self._entry: Entry | None = None
        self._begin = self._end = 0
        # The keyword that strings belong to now, its index, and its strings.
        self._keyword: str | None = None
        self._index = 0
        self._strings: list[str] = []
        # Whether the rest of the entry is skipped, after an error.
        self._skips = False
        # Comments above the next entry.
        self._flags: list[str] = []
        self._comments: list[str] = []

    def entries(self) -> Iterator[Entry]:
        """Yields the entries, one step behind the tokens."""
        line, place, obsolete_line = 1, 0, 0
        line_begin = True
        for token in TOKEN.finditer(self._text):
            line += self._text.count("\n", place, token.start())
            place = token.start()
            kind = token.lastgroup
            if kind == "blank":
                line_begin = line_begin or "\n" in token.group()
                continue
            if kind == "obsolete":
                obsolete_line = line
                continue
            if kind == "previous":
                continue
            if kind == "comment":
                self._take_comment(token.group())
                continue
            keyword = token.group("keyword")
            if keyword is None and line_begin and self._is_misspelt(token.group()):
                keyword = "msgid"
            if keyword in ("msgctxt", "msgid", "domain") and self._begins(keyword, line_begin):
                yield from self._finish()
                self._entry = Entry(line, flags=self._flags, comments=self._comments)
                self._flags, self._comments = [], []
                self._begin, self._keyword, self._skips = token.start(), None, False
            elif self._entry is None:
                self._entry = Entry(line)
                self._begin, self._keyword = token.start(), None
            line_begin = False
            self._end = token.end()
            if line == obsolete_line:
                self._entry.is_obsolete = True
            if token.group("keyword") == "msgid" and not self._skips:
                self._entry.line = line
            self._take(token)
        yield from self._finish()

    def _begins(self, keyword: str, line_begin: bool) -> bool:
        """Whether a keyword begins another entry."""
        if keyword == "msgid" and self._keyword == "msgctxt":
            is_same_entry = self._skips or bool(self._strings)
            if self._skips:
                self._keyword = keyword
            return not is_same_entry
        # The rest of a broken line may contain the word too.
        return line_begin or not self._skips

    def _is_misspelt(self, word: str) -> bool:
        """Whether a word after a translation was meant to begin the next entry."""
        behind = not self._skips and bool(self._strings) and bool(self._keyword)
        return (
            behind
            and str(self._keyword).startswith("msgstr")
            and bool(difflib.get_close_matches(word.lower(), ("msgid", "msgctxt")))
        )

    def _take_comment(self, comment: str) -> None:
        # A comment after a translation belongs to the next entry.
        own = self._entry if self._keyword in ("msgctxt", "msgid", "msgid_plural") else None
        if comment.startswith(FLAG_MARKS):
            (own.flags if own else self._flags).extend(re.split(r"[,\s]+", comment[2:].strip(", ")))
        elif comment.startswith(_EXTRACTED_MARK):
            (own.comments if own else self._comments).append(comment[2:].removeprefix(" "))

    def _take(self, token: re.Match[str]) -> None:
        """Takes a string, a keyword, or another token."""
        if self._skips:
            return
        keyword, string = token.group("keyword"), token.group("string")
        if keyword:
            self._take_keyword(keyword, token.group("index"))
        elif string is None:
            what = "a string without its end" if token.group() == '"' else repr(token.group())
            self._fail(f"{what} in place of a keyword or a string")
        elif self._keyword is None:
            self._fail("a string without a keyword")
        else:
            try:
                self._strings.append(unescape(string))
            except ValueError as error:
                self._fail(str(error))

    def _take_keyword(self, keyword: str, index: str | None) -> None:
        assert self._entry is not None
        if self._keyword and not self._strings:
            return self._fail(f"{self._keyword} without a string")
        name = "msgstr[]" if keyword == "msgstr" and index else keyword
        if index and keyword != "msgstr":
            return self._fail(f"an index behind {keyword}")
        if name != "domain" and self._keyword not in _PREDECESSORS[name]:
            before = self._keyword or "nothing"
            return self._fail(f"{name} after {before}")
        self._store()
        self._keyword, self._index, self._strings = name, int(index or 0), []
        if name.startswith("msgstr") and self._index in self._entry.forms:
            self._fail(f"two translations with the index {self._index}")

    def _fail(self, problem: str) -> None:
        assert self._entry is not None
        self._entry.problem = problem
        self._skips = True

    def _store(self) -> None:
        """Puts the strings of the last keyword into the entry."""
        assert self._entry is not None
        if self._keyword is None:
            return
        value = "".join(self._strings)
        if _SURROGATE.search(value):
            value = _join_bytes(value, self._charset)
        if self._keyword == "msgctxt":
            self._entry.context = value
        elif self._keyword == "msgid":
            self._entry.msgid = value
        elif self._keyword == "msgid_plural":
            self._entry.plural = value
        elif self._keyword != "domain":
            self._entry.forms[self._index] = value

    def _finish(self) -> Iterator[Entry]:
        """Yields the entry that ends here."""
        entry = self._entry
        if entry is None:
            return
        if not self._skips:
            self._store()
            if not self._strings:
                entry.problem = f"{self._keyword} without a string"
            elif not entry.forms and self._keyword != "domain":
                entry.problem = "no msgstr"
        if entry.problem:
            entry.text = self._text[self._begin : self._end]
        entry.flags = [flag for flag in entry.flags if flag]
        self._entry = None
        # A domain is not an entry.
        if entry.problem or self._keyword != "domain":
            yield entry


def unescape(string: str) -> str:
    """Returns the value of a string; bytes beyond ASCII become lone surrogates.

    Raises:
        ValueError: an escape that gettext does not know.
    """
    if "\\" not in string:
        return string

    def replace(match: re.Match[str]) -> str:
        octal, hexadecimal, letter = match.groups()
        if letter is not None:
            if letter not in _ESCAPED:
                raise ValueError(f"the escape \\{letter}, which gettext does not know")
            return _ESCAPED[letter]
        byte = (int(octal, 8) if octal else int(hexadecimal[-2:], 16)) & 0xFF
        return chr(byte if byte < 0x80 else 0xDC00 + byte)

    return _ESCAPE.sub(replace, string)


def _join_bytes(text: str, charset: str) -> str:
    """Decodes bytes that became lone surrogates together with those around them."""
    try:
        return decode_in(charset, text.encode(charset, "surrogateescape"))
    except UnicodeError:
        return text
