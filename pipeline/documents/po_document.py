"""gettext catalogues: the untranslated entries of a .po file."""

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping

from pipeline.documents.document import Document, DocumentError, Segment
from pipeline.documents.po_places import PoPlace, po_places
from pipeline.readers.catalogue_entries import Entry, decode_in
from pipeline.readers.files import BYTE_ORDER_MARK, starts_as_utf16
from pipeline.readers.gettext_catalogues import default_text, is_zope_header
from pipeline.readers.mo_files import MAGICS
from pipeline.readers.plural_forms import PluralForms, plural_forms_of
from pipeline.readers.po_files import PoError, charset_of_po, read_po
from pipeline.text.placeholders.format_flags import breaks_format

_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r",
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v",
}  # fmt: skip
_ESCAPED = str.maketrans(_ESCAPES)
# What a format directive begins with, in any of the languages that gettext knows.
# What stands for a value in gettext's dialects: %d, %(count)d, %1$s, %1, {count}.
_DIRECTIVE = re.compile(
    r"%\([^)]*\)[#0+'\-\d.*]*[a-zA-Z]|%[#0+'\-\d.$*]*[a-zA-Z@]+|%L?\d+|\{[^{}]*\}"
)
_TEMPLATE_CHARSET = re.compile(r"(charset=)CHARSET\b")


@dataclasses.dataclass(frozen=True)
class _Unit:
    """An entry to fill: its place, and the segment of each of its forms."""

    entry: Entry
    place: PoPlace
    segments: Mapping[int, int]


class PoDocument(Document):
    """A .po file. A filled entry is marked fuzzy, with a comment that says where it comes from.

    Each form of a plural is filled by the rule of the file's header.

    Args:
        path: its name in messages.
        content: its bytes.

    Raises:
        DocumentError: it is compiled, not valid in its charset, or not gettext's syntax at all.
    """

    def __init__(self, path: str, content: bytes) -> None:
        super().__init__()
        self._path = path
        if content.startswith(tuple(MAGICS)):
            raise DocumentError(f"{path} is a compiled catalogue: translate its .po file.")
        if starts_as_utf16(content):
            raise DocumentError(f"{path} is UTF-16 text: convert it to UTF-8.")
        self._mark = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
        body = content[len(self._mark) :]
        try:
            self._entries = read_po(content)
        except PoError as error:
            raise DocumentError(f"{path} {error}.") from None
        if not self._entries or all(entry.problem for entry in self._entries):
            raise DocumentError(f"{path} has no valid entry: msgfmt -c says more.")
        self._charset = charset_of_po(body)
        self._text = decode_in(self._charset, body)
        if b"\n" not in body or self._encoded(self._text) != body:
            raise DocumentError(
                f"{path} cannot be filled in place: convert it to UTF-8 and lines that end in a "
                "line feed, with msgconv."
            )
        self._units: list[_Unit] = []
        # Which flags and source each segment has, and whether it is of a plural.
        self._checks: list[tuple[Entry, str]] = []
        places = po_places(self._text)
        header = next((e.header for e in self._entries if e.header is not None), "")
        forms, is_zope = plural_forms_of(header), is_zope_header(header)
        for entry in self._entries:
            if entry.header is not None:
                forms, is_zope = plural_forms_of(entry.header), is_zope_header(entry.header)
            elif not entry.is_obsolete:
                source = default_text("\n".join(entry.comments)) if is_zope else None
                self._sort(entry, source or entry.msgid, forms, places.get(entry.line))

    def _sort(
        self, entry: Entry, source: str, forms: PluralForms | None, place: PoPlace | None
    ) -> None:
        if entry.problem:
            self.problems.append((entry.line, f"not valid gettext syntax: {entry.problem}"))
        elif all(text for text in entry.forms.values()):
            self.translated_before += 1
        elif any(text for text in entry.forms.values()):
            self.problems.append((entry.line, "only some of its plural forms are translated"))
        elif not source.strip():
            self.blank.append(entry.line)
        elif place is None or set(place.strings) != set(entry.forms):
            self.problems.append((entry.line, "its syntax cannot be edited in place"))
        elif self._text[self._text.rfind("\n", 0, place.keyword) + 1 : place.keyword].strip():
            self.problems.append((entry.line, "its first keyword does not begin a line"))
        elif entry.plural is None:
            self._add(entry, place, {0: source})
        elif forms is None:
            self.problems.append((entry.line, "the Plural-Forms of the header cannot be read"))
        elif max(entry.forms) >= forms.count:
            self.problems.append((entry.line, f"more plural forms than the header's {forms.count}"))
        else:
            self._add(entry, place, _sources_of_forms(source, entry.plural, forms))

    def _add(self, entry: Entry, place: PoPlace, sources: Mapping[int, str]) -> None:
        segments = {}
        of_text: dict[str, int] = {}
        for index, text in sources.items():
            if text not in of_text:
                of_text[text] = len(self.segments)
                self.segments.append(Segment(entry.line, text))
                self._checks.append((entry, text))
            segments[index] = of_text[text]
        self._units.append(_Unit(entry, place, segments))

    def refuse(self, place: int, text: str) -> str:
        """See `Document`: a translation must have the format directives of its source."""
        entry, source = self._checks[place]
        # A form that leaves a directive out is refused too: other forms may be filled by it.
        if breaks_format(entry.flags, source, text):
            return "the model's output has other format directives than its source"
        try:
            self._encoded(text)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            return f"the file's charset {self._charset} lacks '{letter}'"
        return ""

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. An entry is filled only if all its forms have a translation."""
        expected = {}
        edits: list[tuple[int, int, str]] = []
        end_of_line = "\r\n" if "\r\n" in self._text else "\n"
        for unit in self._units:
            if not all(segment in texts for segment in unit.segments.values()):
                continue
            forms = {index: texts[segment] for index, segment in unit.segments.items()}
            expected[unit.entry.line] = forms
            edits += self._edits(unit, forms, note, end_of_line)
        text = self._text
        for begin, end, replacement in sorted(edits, reverse=True):
            text = text[:begin] + replacement + text[end:]
        if not text.isascii():
            text = _TEMPLATE_CHARSET.sub(r"\1UTF-8", text, count=1)
        content = self._mark + self._encoded(text)
        self._check(content, expected)
        return content

    def _edits(
        self, unit: _Unit, forms: Mapping[int, str], note: str, end_of_line: str
    ) -> list[tuple[int, int, str]]:
        """Returns (begin, end, replacement) of each edit of an entry; they do not overlap."""
        place = unit.place
        edits = [(place.comments, place.comments, f"# {note}{end_of_line}")]
        if "fuzzy" not in unit.entry.flags:
            if place.flags:
                begin = place.flags[0] + len("#,")
                edits.append((begin, begin, " fuzzy,"))
            else:
                line_begin = self._text.rfind("\n", 0, place.keyword) + 1
                edits.append((line_begin, line_begin, f"#, fuzzy{end_of_line}"))
        begin, end = place.last_keyword
        keyword = self._text[begin:end]
        # Forms that the entry lacks stand after its last one.
        missing = "".join(
            f"{end_of_line}{re.sub('[0-9]+', str(index), keyword)} {_quoted(text, end_of_line)}"
            for index, text in sorted(forms.items())
            if index not in place.strings
        )
        last = max(strings[1] for strings in place.strings.values())
        for index, (begin, end) in place.strings.items():
            text = _quoted(forms[index], end_of_line) + (missing if end == last else "")
            edits.append((begin, end, text))
        return edits

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._charset, "surrogateescape")

    def _check(self, content: bytes, expected: Mapping[int, Mapping[int, str]]) -> None:
        """Reads the filled file again, and compares everything that must be the same."""
        entries = read_po(content)
        if len(entries) == len(self._entries):
            for before, after in zip(self._entries, entries):
                forms = expected.get(before.line, before.forms)
                flags = set(before.flags) | ({"fuzzy"} if before.line in expected else set())
                same = (
                    (before.context, before.msgid, before.plural, before.comments, before.problem)
                    == (after.context, after.msgid, after.plural, after.comments, after.problem)
                    and set(after.flags) == flags
                    and (before.header is not None or dict(forms) == after.forms)
                )
                if not same:
                    break
            else:
                return
        raise DocumentError(
            f"{self._path} cannot be filled in place: its syntax is too unusual; rewrite it with "
            "msgcat first."
        )


def _sources_of_forms(singular: str, plural: str, forms: PluralForms) -> dict[int, str]:
    """Returns the text that each form of a plural translates."""
    sources = dict.fromkeys(range(forms.count), plural)
    # "One file" must not stand for 21 files, nor "Delete the page %(title)s".
    names_number = not Counter(_DIRECTIVE.findall(plural)) - Counter(_DIRECTIVE.findall(singular))
    if forms.only_for_one or names_number:
        sources[forms.singular] = singular
    # A language with one form has it for every number.
    if forms.count == 1:
        sources = {0: plural}
    return sources


def _quoted(text: str, end_of_line: str) -> str:
    """Returns a text as the strings of a .po file, one per line of the text."""
    lines = [line.translate(_ESCAPED) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    if len(lines) < 2:
        return f'"{"".join(lines)}"'
    return end_of_line.join(f'"{line}"' for line in ("", *lines))
