"""XLIFF 1.2 and 2.0: units with a source, and a target that is filled where it is missing."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pipeline.documents.document import Document, DocumentError, Segment, decode
from pipeline.documents.edits import Edit, edited
from pipeline.documents.icu_messages import CHOICE
from pipeline.documents.options import Options
from pipeline.readers.inline_text import InlineText, Mark, Piece
from pipeline.readers.xliff_units import XliffUnit, is_code, mark_of_code, read_xliff_file
from pipeline.readers.xml_text import xml_pieces
from pipeline.readers.xml_tree import Element, XmlError, escape, not_in_xml, xml_attribute

# The states of a target that is a copy of its source.
_UNTRANSLATED = {"new", "needs-translation", "initial"}
#: The attributes of a target of XLIFF 1.2 that a machine wrote.
MACHINE_STATES = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
_STATES = {
    "1": MACHINE_STATES,
    "2": {"state": "translated", "subState": "verbatim:machine"},
}


@dataclasses.dataclass(frozen=True)
class _Unit:
    """A unit to fill, and its text."""

    unit: XliffUnit
    text: InlineText


class XliffDocument(Document):
    """A file of XLIFF.

    A unit is untranslated if it has no target, an empty one, or one that repeats its source and
    says that it is new. The state of a filled target says that a machine translated it.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, if the file does not name it.

    Raises:
        DocumentError: it is not well-formed, no XLIFF, or names no target language where it must.
    """

    def __init__(self, path: str, content: bytes, options: Options) -> None:
        super().__init__()
        self._path = path
        self._text, self._mark = decode(path, content)
        try:
            self._file = read_xliff_file(path, self._text)
        except XmlError as error:
            raise DocumentError(str(error)) from None
        self._root, self._version = self._file.root, self._file.version
        self._language = options.language
        if self._version == "2" and not (self._language or self._root.attributes.get("trgLang")):
            raise DocumentError(
                f"{path} does not name its target language (trgLang): name it with "
                "--target-language."
            )
        self._prefix = self._root.name.removesuffix("xliff")
        self._units: list[_Unit] = []
        for unit in self._file.units():
            if unit.is_translatable:
                self._sort(unit)

    def _sort(self, unit: XliffUnit) -> None:
        if unit.source is None:
            self.problems.append((unit.line, "a unit without a source"))
            return
        inner, of_target = self._file.inner(unit.source), self._file.inner(unit.target)
        repeats = unit.state in _UNTRANSLATED and of_target == inner
        text = InlineText(xml_pieces(self._text, *unit.source.inner, is_code, opaque=mark_of_code))
        if of_target.strip() and not repeats:
            self.translated_before += 1
        elif not inner.strip():
            self.blank.append(unit.line)
        elif text.problem:
            self.problems.append((unit.line, text.problem))
        elif CHOICE.match(text.text.strip()):
            self.problems.append(
                (unit.line, "an ICU plural or select, which is not translated in XLIFF")
            )
        else:
            self._units.append(_Unit(unit, text))
            self.segments.append(Segment(unit.line, text.text))

    def refuse(self, place: int, text: str) -> str:
        """See `Document`."""
        return self._units[place].text.refuse(text) or not_in_xml(text)

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`."""
        edits: list[Edit] = []
        for place, text in texts.items():
            one = self._units[place]
            edits += self._edits(one.unit, one.text.pieces_of(text))
        if edits:
            edits += self._language_edits()
        filled = edited(self._text, edits)
        try:
            read_xliff_file(self._path, filled)
        except XmlError as error:
            raise DocumentError(f"The translations would make a file not valid: {error}") from None
        return self._mark + filled.encode("utf-8")

    def _edits(self, unit: XliffUnit, pieces: Sequence[Piece]) -> list[Edit]:
        inner = "".join(p.raw if isinstance(p, Mark) else escape(p) for p in pieces)
        edits: list[Edit] = []
        states = _STATES[self._version]
        name = f"{self._prefix}target"
        target, source, behind = unit.target, unit.source, unit.behind
        assert source and behind
        if self._version == "2":
            edits.append(self._with_attributes(unit.holder, states))
            states = {}
        if target is None:
            begin = self._text.rfind(">", 0, source.begin) + 1
            before = self._text[begin : source.begin]
            attributes = "".join(f' {key}="{value}"' for key, value in states.items())
            written = f"{before if before.isspace() else ''}<{name}{attributes}>{inner}</{name}>"
            edits.append((behind.end, behind.end, written))
        elif target.is_empty:
            _, _, tag = self._with_attributes(target, states)
            opening = tag.removesuffix(">").rstrip().removesuffix("/").rstrip()
            edits.append((target.begin, target.end, f"{opening}>{inner}</{target.name}>"))
        else:
            edits += [self._with_attributes(target, states), (*target.inner, inner)]
        return edits

    def _with_attributes(self, element: Element, values: Mapping[str, str]) -> Edit:
        """Returns the edit that sets attributes of an element."""
        tag = self._text[element.begin : element.tag_end]
        for name, value in values.items():
            new = f"{name}={xml_attribute(value)}"
            old = re.search(rf"(?<=\s){name}\s*=\s*(?:\"[^\"]*\"|'[^']*')", tag)
            end = re.search(r"\s*/?>$", tag)
            assert end
            if old:
                tag = tag[: old.start()] + new + tag[old.end() :]
            else:
                tag = f"{tag[: end.start()]} {new}{end[0]}"
        return element.begin, element.tag_end, tag

    def _language_edits(self) -> list[Edit]:
        """Returns the edits that name the target's language where the file does not."""
        name = "target-language" if self._version == "1" else "trgLang"
        files = [e for e in self._root.children if e.local_name == "file"]
        return [
            self._with_attributes(element, {name: self._language})
            for element in (files if self._version == "1" else [self._root])
            if self._language and not element.attributes.get(name)
        ]
