"""gettext catalogues, .po and .mo: one record per entry, or one per form if it has a plural."""

import re
from collections.abc import Iterator, Sequence

from pipeline.readers import UnreadableFile
from pipeline.readers.catalogue_entries import Entry
from pipeline.readers.files import Files, starts_as_utf16
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.mo_files import MAGICS, MoError, read_mo
from pipeline.readers.plural_forms import PluralForms, plural_forms_of
from pipeline.readers.po_files import PoError, read_po, unescape
from pipeline.readers.records import LEFT_OUT, Pair, Record, judge, reject
from pipeline.recipes.sections import DataConfig
from pipeline.text.placeholders.format_flags import breaks_format

_COMPILED = ".mo"
_DEFAULT = re.compile(
    r'^Default:\s*"((?:[^"\\]|\\.)*)"[ \t]*((?:\n\s*"(?:[^"\\]|\\.)*"[ \t]*)*)', re.MULTILINE
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Fields that Zope's and Plone's tools write, and no others, or what names one of the two.
_ZOPE = re.compile(
    r"^(?:(?:Language-Code|Preferred-Encodings|X-Is-Fallback-For):"
    r"|(?:Project-Id-Version|Generated-By|X-Generator):.*\b(?:zope|plone)\b)",
    re.IGNORECASE | re.MULTILINE,
)


def _load(path: str, files: Files) -> tuple[str, list[Entry]]:
    """Reads a .po or .mo file, whichever its first bytes show.

    Returns:
        (header of a .mo file, entries). The headers of a .po file are among its entries.

    Raises:
        UnreadableFile: the file is empty, no catalogue at all, or in an unknown charset.
    """
    with files.open(path) as handle:
        content = handle.read()
    if not content:
        raise UnreadableFile(f"{path} is empty: fill it or take it away.")
    if content.startswith(tuple(MAGICS)) or path.lower().endswith(_COMPILED):
        try:
            return read_mo(content)
        except MoError as error:
            raise UnreadableFile(
                f"{path} is not a readable .mo file, {error}: compile it again with msgfmt."
            ) from None
    if starts_as_utf16(content):
        raise UnreadableFile(f"{path} is UTF-16 text: convert it to UTF-8.")
    try:
        return "", read_po(content)
    except PoError as error:
        raise UnreadableFile(f"{path} {error}.") from None


def is_zope_header(header: str) -> bool:
    """Whether Zope's or Plone's tools wrote a catalogue, by its header."""
    return bool(_ZOPE.search(header))


def default_text(comment: str) -> str | None:
    """Returns the English text that Plone's tools keep in an extracted comment, or None.

    There the msgid is an identifier, and the comment says `Default: "text"`, perhaps over several
    quoted lines.
    """
    match = _DEFAULT.search(comment)
    if not match:
        return None
    try:
        return unescape("".join([match.group(1), *_QUOTED.findall(match.group(2))]))
    except ValueError:
        return None


def check_gettext(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `UnreadableFile` if the file cannot be read, or nothing in it: see `formats`."""
    _, entries = _load(unit.paths[0], files)
    if entries and all(entry.problem for entry in entries):
        first = entries[0]
        raise UnreadableFile(
            f"{unit.paths[0]}, line {first.line}: this is not valid gettext syntax, "
            f"{first.problem}; msgfmt -c says more."
        )


def read_gettext(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a .po or .mo file: see `formats`.

    A model does not see the context of an entry (`msgctxt`). Of two entries that translate the same
    text differently, one is read: that without a context, or else the first.
    """
    (name,), (path,) = unit.names, unit.paths
    try:
        header, entries = _load(path, files)
    except UnreadableFile as error:
        yield reject(name, 1, f"not a readable catalogue: {error}", "")
        return
    headers = (entry.header for entry in entries if entry.header is not None)
    header = header or next(headers, "")
    forms, is_zope = plural_forms_of(header), is_zope_header(header)
    records: list[tuple[bool, Record]] = []
    for entry in entries:
        # Catalogues can be joined, and a header holds for what follows it.
        if entry.header is not None:
            forms, is_zope = plural_forms_of(entry.header), is_zope_header(entry.header)
            if not entry.problem:
                continue
        default = default_text("\n".join(entry.comments)) if is_zope else None
        source = default or entry.msgid
        has_context = entry.context is not None
        for record in _records_of(entry, source, forms, name, config):
            records.append((has_context, record))
    yield from _reject_contradictions(records)


def _records_of(
    entry: Entry, source: str, forms: PluralForms | None, name: str, config: DataConfig
) -> Iterator[Record]:
    """Yields the records of one entry."""
    if entry.problem:
        reason = f"not valid gettext syntax: {entry.problem} (msgfmt -c says more)"
        yield reject(name, entry.line, reason, entry.text)
        return
    flags = tuple(flag for flag in entry.flags if flag != "fuzzy")
    general = _general_reason(entry, forms)
    for text, index in _uses(entry, source, forms):
        target = entry.forms.get(index)
        reason = general
        if not reason and target is None:
            reason = "no such plural form"
        elif not reason and not (target or "").strip():
            reason = "untranslated"
        elif not reason and text is None:
            reason = f"{LEFT_OUT}: msgstr[{index}]"
        elif not reason and breaks_format(
            entry.flags, text or "", target or "", entry.plural is not None
        ):
            reason = "other format directives than its source"
        if reason:
            label = entry.plural if text is None else text
            yield reject(name, entry.line, reason, f"{label}\t{target or ''}")
        else:
            yield judge(text or "", target or "", name, entry.line, config, flags=flags)


def _general_reason(entry: Entry, forms: PluralForms | None) -> str:
    """Returns why all of an entry is rejected, or an empty text."""
    if entry.is_obsolete:
        return "obsolete"
    if "fuzzy" in entry.flags:
        return "fuzzy"
    if entry.plural is None:
        return ""
    if forms is None:
        return "plural rule that cannot be read: correct Plural-Forms in the catalogue's header"
    if max(entry.forms) >= forms.count:
        return (
            f"more plural forms than the header has: it says or implies nplurals={forms.count} "
            "(Plural-Forms)"
        )
    return ""


def _uses(entry: Entry, source: str, forms: PluralForms | None) -> Sequence[tuple[str | None, int]]:
    """Returns (text, index) for each text and the form that translates it.

    The text is None for each form that is left out.
    """
    if entry.plural is None:
        return [(source, 0)]
    singular, plural = (forms.singular, forms.plural) if forms else (0, 1)
    others = [(None, index) for index in sorted(entry.forms) if index not in (singular, plural)]
    return [(source, singular), (entry.plural, plural), *others]


def _reject_contradictions(records: Sequence[tuple[bool, Record]]) -> Iterator[Record]:
    """Yields the records of a file, with one translation of each source.

    Args:
        records: (whether the entry has a context, record) in the order of the file.
    """
    first: dict[str, Pair] = {}
    # False sorts before True.
    for _, record in sorted(records, key=lambda item: item[0]):
        if isinstance(record, Pair):
            first.setdefault(record.source, record)
    for _, record in records:
        if isinstance(record, Pair) and record.target != first[record.source].target:
            yield reject(
                record.file,
                record.line,
                f"another translation of the same text: see line {first[record.source].line}",
                f"{record.source}\t{record.target}",
            )
        else:
            yield record
