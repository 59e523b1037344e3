"""gettext catalogues, .po and .mo: one record per entry, or two if it has a plural."""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipeline.readers import DataError
from pipeline.readers.files import Files
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record, judge, reject
from pipeline.recipes.sections import DataConfig
from pipeline.text.placeholders.format_flags import breaks_format

_MO_MAGICS = (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde")
# \b: not msgid_plural.
_MSGID_OR_MSGSTR = re.compile(r"\s*(?:#~\s*)?(msgid|msgstr)\b")
_DEFAULT = re.compile(
    r'^Default:\s*"((?:[^"\\]|\\.)*)"[ \t]*((?:\n\s*"(?:[^"\\]|\\.)*"[ \t]*)*)', re.MULTILINE
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


class _CatalogueText(str):
    """A .po file's text that polib cuts into lines as it would a file: at line feeds alone.

    `str.splitlines` also cuts at U+2028, form feeds and others, which are ordinary characters in a
    message.
    """

    def splitlines(self, keepends: bool = False) -> list[str]:
        """Cuts at line feeds."""
        del keepends
        return self.split("\n")


def _parse_catalogue(path: str, files: Files) -> tuple[Sequence[Any], Callable[[str], str]]:
    """Parses a .po or .mo file, whichever its first bytes show.

    Returns:
        (polib's entries, function that undoes how their strings were decoded). A string that is not
        valid in the catalogue's charset comes out of the function with lone surrogates, so that
        only its entry is rejected.

    Raises:
        DataError: the syntax is broken, or an entry has no msgstr.
    """
    import polib

    with files.open(path) as handle:
        content = handle.read()
    charset = polib.detect_encoding(content, binary_mode=True)
    if content.startswith(_MO_MAGICS):
        try:
            # Latin-1 takes every byte: the real charset is applied string by string, below.
            entries = polib.mofile(content, encoding="latin-1")
        # All of these come out of polib.
        except (OSError, ValueError, IndexError, OverflowError, struct.error):
            raise DataError(
                f"{path} is not a readable .mo file: compile it again with msgfmt."
            ) from None
        return entries, lambda text: text.encode("latin-1").decode(charset, "surrogateescape")
    try:
        text = content.decode(charset, "surrogateescape").replace("\r\n", "\n")
    # A charset that cannot carry bad bytes along, or is none for text.
    except (UnicodeError, LookupError):
        raise DataError(
            f"{path} is not valid in its charset {charset}: convert it to UTF-8 with msgconv."
        ) from None
    _check_entries_complete(text, path)
    try:
        # polib drops the last entry if the file ends in certain comments; a plain comment prevents
        # it.
        entries = polib.pofile(_CatalogueText(text + "\n# end"), encoding=charset)
    except OSError as error:
        line = re.search(r"\(line (\d+)\)", str(error))
        where = f"{path}, line {line.group(1)}" if line else path
        detail = str(error).partition("): ")[2]
        raise DataError(
            f"{where}: this is not valid .po syntax{f' ({detail})' if detail else ''}; msgfmt -c "
            "says more."
        ) from None
    return entries, lambda text: text


def _check_entries_complete(text: str, path: str) -> None:
    """Refuses a msgid without msgstr (a truncated file), which polib would drop silently."""
    pending: int | None = None
    for number, line in enumerate(text.split("\n"), 1):
        keyword = _MSGID_OR_MSGSTR.match(line)
        if keyword and keyword.group(1) == "msgstr":
            pending = None
        elif keyword:
            if pending:
                break
            pending = number
    if pending:
        raise DataError(
            f"{path}, line {pending}: this msgid has no msgstr; complete the entry or take it away."
        )


def _default_text(comment: str) -> str | None:
    """Returns the English text that Plone's tools keep in an extracted comment, or None.

    There the msgid is an identifier, and the comment says `Default: "text"`, perhaps over several
    quoted lines.
    """
    import polib

    match = _DEFAULT.search(comment)
    if not match:
        return None
    parts = [match.group(1), *_QUOTED.findall(match.group(2))]
    text: str = polib.unescape("".join(parts))
    return text


def check_gettext(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if the catalogue's syntax is broken: see `formats`."""
    _parse_catalogue(unit.paths[0], files)


def read_gettext(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a .po or .mo file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    entries, restore = _parse_catalogue(path, files)
    for number, entry in enumerate(entries, 1):
        line = getattr(entry, "linenum", None)
        line = number if line is None else max(1, line)
        source = restore(_default_text(getattr(entry, "comment", "")) or entry.msgid)
        if entry.msgid_plural:
            forms = entry.msgstr_plural
            pairs = [(source, forms.get(0)), (restore(entry.msgid_plural), forms.get(1))]
        else:
            pairs = [(source, entry.msgstr)]
        for source, target in pairs:
            missing = target is None
            target = "" if missing else restore(target)
            if entry.obsolete:
                reason = "obsolete"
            elif "fuzzy" in entry.flags:
                reason = "fuzzy"
            elif missing:
                reason = "no such plural form"
            elif not target.strip():
                reason = "untranslated"
            elif breaks_format(entry.flags, source, target, bool(entry.msgid_plural)):
                reason = "other format directives than its source"
            else:
                yield judge(source, target, name, line, config)
                continue
            yield reject(name, line, reason, f"{source}\t{target}")
