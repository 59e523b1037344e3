"""Training data of translation tools: TMX memories and XLIFF files."""

import codecs
import io
import re
from collections.abc import Iterator

from pipeline.readers import UnreadableFile
from pipeline.readers.files import BYTE_ORDER_MARK, Files
from pipeline.readers.inline_text import InlineText, Mark
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import (
    NOT_TRANSLATABLE,
    OTHER_LANGUAGES,
    Record,
    judge,
    reject,
)
from pipeline.readers.xliff_units import XliffFile, is_code, mark_of_code, read_xliff_file
from pipeline.readers.xml_text import xml_pieces
from pipeline.readers.xml_tree import Element, XmlError, read_xml
from pipeline.recipes.sections import DataConfig

_BLOCK = 1 << 20
_UNIT = re.compile(r"<tu(?=[\s>]).*?</tu\s*>", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SEGMENT = re.compile(r"<tu(?=[\s>])")
# A longer unit has lost its end.
_LONGEST = 1 << 24
_ENDLESS = "a unit that does not end"
_LANGUAGES = ("xml:lang", "lang")
# A state that says that a person has not agreed yet, or that a machine translated.
_UNSURE = re.compile(r"new|needs-.*|initial")
_MACHINE = "verbatim:machine"


def check_xliff(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `UnreadableFile` if the file is no XLIFF: see `formats`."""
    _load(unit.paths[0], files)


def _load(path: str, files: Files) -> XliffFile:
    with files.open(path) as handle:
        content = handle.read().removeprefix(BYTE_ORDER_MARK)
    try:
        return read_xliff_file(path, content.decode("utf-8"))
    except XmlError as error:
        raise UnreadableFile(str(error)) from None
    except UnicodeDecodeError:
        raise UnreadableFile(f"{path} is not valid UTF-8: convert it to UTF-8.") from None


def read_xliff(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of an XLIFF file: see `formats`.

    A file from the recipe's target language to its source language is read the other way round.
    """
    (name,), (path,) = unit.names, unit.paths
    try:
        file = _load(path, files)
    except UnreadableFile as error:
        yield reject(name, 1, f"not a readable catalogue: {error}", "")
        return
    source_language, target_language = file.languages()
    is_reversed = _is(source_language, config.target_language) and _is(
        target_language, config.source_language
    )
    for one in file.units():
        inner = f"{file.inner(one.source)}\t{file.inner(one.target)}"
        reason = ""
        if not one.is_translatable:
            reason = NOT_TRANSLATABLE
        elif not file.inner(one.target).strip():
            reason = "untranslated"
        elif _UNSURE.fullmatch(one.state) or one.holder.attributes.get("subState") == _MACHINE:
            reason = "fuzzy"
        if reason or not one.source or not one.target:
            yield reject(name, one.line, reason or "empty source", inner)
            continue
        texts = _texts(file.text, one.source, one.target)
        source, target = reversed(texts) if is_reversed else texts
        yield judge(source, target, name, one.line, config)


def _is(language: str, wanted: str) -> bool:
    """Whether a language tag is of a language, whatever its region: `en-GB` is of `en`."""
    tag, wanted = language.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return tag == wanted or tag.startswith(f"{wanted}-") or tag == wanted.partition("-")[0]


def _texts(text: str, source: Element, target: Element) -> tuple[str, str]:
    """Returns the texts of two elements, in which the same markup is shown alike."""
    sides = [xml_pieces(text, *one.inner, is_code, opaque=mark_of_code) for one in (source, target)]
    shown = InlineText(sides[0])
    names = {mark.raw: mark.shown for mark in shown.marks}
    of_target = "".join(
        names.get(piece.raw, piece.shown) if isinstance(piece, Mark) else piece
        for piece in sides[1]
    )
    return shown.text, of_target


def check_tmx(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `UnreadableFile` if the file is no TMX: see `formats`."""
    path = unit.paths[0]
    with files.open(path) as handle:
        head = handle.read(_BLOCK)
    text = codecs.getincrementaldecoder(_charset(head))("replace").decode(head)
    if not re.search(r"<tmx(?=[\s>])", text):
        raise UnreadableFile(f"{path} is no TMX: it has no element tmx.")


def _charset(head: bytes) -> str:
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if is_utf16 else "utf-8-sig"


def read_tmx(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a TMX memory, one per unit: see `formats`.

    The memory is read unit by unit, so it may be larger than memory.
    """
    (name,), (path,) = unit.names, unit.paths
    with files.open(path) as handle:
        charset = _charset(handle.read(2))
    with files.open(path) as handle:
        stream = io.TextIOWrapper(handle, charset, "surrogateescape", newline="")
        rest, line, is_last = "", 1, False
        while not is_last:
            block = stream.read(_BLOCK)
            is_last = not block
            rest += block
            place = 0
            for match in _UNIT.finditer(rest):
                line += rest.count("\n", place, match.start())
                yield _record(match[0], name, line, config)
                line += match[0].count("\n")
                place = match.end()
            # What follows the last unit may be the begin of the next.
            begin = _SEGMENT.search(rest, place)
            if begin and len(rest) - begin.start() > _LONGEST:
                begin_line = line + rest.count("\n", place, begin.start())
                yield reject(name, begin_line, _ENDLESS, rest[begin.start() :])
                begin = _SEGMENT.search(rest, begin.end())
            end = begin.start() if begin else max(place, len(rest) - len("<tu "))
            line += rest.count("\n", place, end)
            rest = rest[end:]
        if _SEGMENT.match(rest):
            yield reject(name, line, _ENDLESS, rest)


def _record(raw: str, name: str, line: int, config: DataConfig) -> Record:
    if _SURROGATE.search(raw):
        return reject(name, line, "not valid UTF-8", raw)
    try:
        unit = read_xml(name, raw)
    except XmlError:
        return reject(name, line, "not well-formed XML", raw)
    segments: dict[str, Element] = {}
    for variant in unit.children:
        language = next((variant.attributes[a] for a in _LANGUAGES if a in variant.attributes), "")
        segment = next((one for one in variant.children if one.local_name == "seg"), None)
        for wanted in (config.source_language, config.target_language):
            if variant.local_name == "tuv" and segment and _is(language, wanted):
                segments.setdefault(wanted, segment)
    for wanted in (config.source_language, config.target_language):
        if wanted not in segments:
            return reject(name, line, f"{OTHER_LANGUAGES}: {wanted}", raw)
    source, target = (segments[one] for one in (config.source_language, config.target_language))
    return judge(*_texts(raw, source, target), name, line, config)
