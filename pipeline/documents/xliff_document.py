"""XLIFF 1.2 and 2.0: units with a source, and a target that is filled where it is missing."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pipeline.documents.document import Document, DocumentError, Segment, decode
from pipeline.documents.edits import Edit, edited
from pipeline.documents.icu_messages import CHOICE
from pipeline.documents.inline_text import CLOSE, EMPTY, OPEN, InlineText, Mark, Piece
from pipeline.documents.options import Options
from pipeline.documents.xml_text import attribute, opaque_mark, tag_id, xml_pieces
from pipeline.documents.xml_tree import (
    Element,
    Token,
    escape,
    not_in_xml,
    read_xml,
    xml_attribute,
)

# Elements that hold code of the original format, or text that is not to be translated.
_CODE = {"bpt", "ept", "ph", "it", "cp"}
# The states of a target that is a copy of its source.
_UNTRANSLATED = {"new", "needs-translation", "initial"}
_STATES = {
    "1": {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"},
    "2": {"state": "translated", "subState": "verbatim:machine"},
}


@dataclasses.dataclass(frozen=True)
class _Unit:
    """A text: its elements, and how it is read.

    Attributes:
        holder: the trans-unit or segment.
        source: the text's element.
        behind: the element that the target follows.
        target: that of the translation, or None.
        text: the text.
    """

    holder: Element
    source: Element
    behind: Element
    target: Element | None
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
        self._text, self._mark = decode(path, content)
        self._root = root = read_xml(path, self._text)
        self._version = root.attributes.get("version", "")[:1]
        if root.local_name != "xliff" or self._version not in _STATES:
            raise DocumentError(
                f"{path} is no XLIFF 1 or 2: its root is {root.name}, version "
                f"'{root.attributes.get('version', '')}'."
            )
        self._language = options.language
        if self._version == "2" and not (self._language or root.attributes.get("trgLang")):
            raise DocumentError(
                f"{path} does not name its target language (trgLang): name it with "
                "--target-language."
            )
        self._prefix = root.name.removesuffix("xliff")
        self._units: list[_Unit] = []
        for file in root.children:
            self._read(file, True)

    def _read(self, element: Element, is_translated: bool) -> None:
        is_translated = (
            element.attributes.get("translate", "yes" if is_translated else "no") != "no"
        )
        if element.local_name in ("trans-unit", "segment"):
            if is_translated:
                self._sort(element)
            return
        if element.local_name in ("file", "body", "group", "unit"):
            for child in element.children:
                self._read(child, is_translated)

    def _sort(self, holder: Element) -> None:
        parts = {child.local_name: child for child in reversed(holder.children)}
        source, target = parts.get("source"), parts.get("target")
        line = self._text.count("\n", 0, holder.begin) + 1
        if source is None:
            self.problems.append((line, "a unit without a source"))
            return
        line = self._text.count("\n", 0, source.begin) + 1
        inner, of_target = self._inner(source), self._inner(target) if target else ""
        state = (target if self._version == "1" and target else holder).attributes.get("state")
        repeats = state in _UNTRANSLATED and of_target == inner
        text = InlineText(xml_pieces(self._text, *source.inner, _is_code, opaque=_mark_of_code))
        if of_target.strip() and not repeats:
            self.translated_before += 1
        elif not inner.strip():
            self.blank.append(line)
        elif text.problem:
            self.problems.append((line, text.problem))
        elif CHOICE.match(text.text.strip()):
            self.problems.append(
                (line, "an ICU plural or select, which is not translated in XLIFF")
            )
        else:
            self._units.append(_Unit(holder, source, parts.get("seg-source", source), target, text))
            self.segments.append(Segment(line, text.text))

    def _inner(self, element: Element) -> str:
        begin, end = element.inner
        return self._text[begin:end]

    def refuse(self, place: int, text: str) -> str:
        """See `Document`."""
        return self._units[place].text.refuse(text) or not_in_xml(text)

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`."""
        edits: list[Edit] = []
        for place, text in texts.items():
            edits += self._edits(self._units[place], self._units[place].text.pieces_of(text))
        if edits:
            edits += self._language_edits()
        return self._mark + edited(self._text, edits).encode("utf-8")

    def _edits(self, unit: _Unit, pieces: Sequence[Piece]) -> list[Edit]:
        inner = "".join(p.raw if isinstance(p, Mark) else escape(p) for p in pieces)
        edits: list[Edit] = []
        states = _STATES[self._version]
        name = f"{self._prefix}target"
        target = unit.target
        if self._version == "2":
            edits.append(self._with_attributes(unit.holder, states))
            states = {}
        if target is None:
            begin = self._text.rfind(">", 0, unit.source.begin) + 1
            before = self._text[begin : unit.source.begin]
            attributes = "".join(f' {key}="{value}"' for key, value in states.items())
            written = f"{before if before.isspace() else ''}<{name}{attributes}>{inner}</{name}>"
            edits.append((unit.behind.end, unit.behind.end, written))
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


def _is_code(tag: Token) -> bool:
    name = tag.name.rpartition(":")[2]
    protected = (
        attribute(tag.raw, "mtype") == "protected" or attribute(tag.raw, "translate") == "no"
    )
    return name in _CODE or (name == "mrk" and protected)


def _mark_of_code(raw: str, tag: Token) -> Mark:
    mark = opaque_mark(raw, tag)
    name = tag.name.rpartition(":")[2]
    kind = {"bpt": OPEN, "ept": CLOSE}.get(name, EMPTY)
    # Code that opens and code that closes what it opened.
    return dataclasses.replace(mark, kind=kind, name=f"code {tag_id(tag.raw)}")
