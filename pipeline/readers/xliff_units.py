"""The units of an XLIFF file: what training reads, and what is filled."""

import dataclasses
from collections.abc import Iterator

from pipeline.readers.inline_text import CLOSE, EMPTY, OPEN, Mark
from pipeline.readers.line_numbers import line_of
from pipeline.readers.xml_text import attribute, opaque_mark, tag_id
from pipeline.readers.xml_tree import Element, Token, XmlError, read_xml

# Elements that hold code of the original format, or text that is not to be translated.
_CODE = frozenset({"bpt", "ept", "ph", "it", "cp", "ut"})
_VERSIONS = ("1", "2")


@dataclasses.dataclass(frozen=True)
class XliffUnit:
    """A text.

    Attributes:
        line: of its source, counted from 1.
        holder: the trans-unit or segment.
        source, target: the elements of the text and its translation; None if there is none.
        behind: the element that a target follows.
        is_translatable: whether it is to be translated at all.
        state: what the file says about the translation, or "".
    """

    line: int
    holder: Element
    source: Element | None
    target: Element | None
    behind: Element | None
    is_translatable: bool
    state: str


@dataclasses.dataclass(frozen=True)
class XliffFile:
    """An XLIFF file: its text, root element, and version, which is 1 or 2."""

    text: str
    root: Element
    version: str

    def languages(self) -> tuple[str, str]:
        """Returns (source language, target language), each "" if the file does not name it."""
        if self.version == "2":
            names = self.root.attributes
            return names.get("srcLang", ""), names.get("trgLang", "")
        names = next((one.attributes for one in self.root.children), {})
        return names.get("source-language", ""), names.get("target-language", "")

    def units(self) -> Iterator[XliffUnit]:
        """Yields the units in the order of the file."""
        waiting = [(file, True) for file in reversed(self.root.children)]
        while waiting:
            element, is_translatable = waiting.pop()
            default = "yes" if is_translatable else "no"
            is_translatable = element.attributes.get("translate", default) != "no"
            if element.local_name in ("trans-unit", "segment"):
                yield self._unit(element, is_translatable)
            elif element.local_name in ("file", "body", "group", "unit"):
                waiting += ((child, is_translatable) for child in reversed(element.children))

    def _unit(self, holder: Element, is_translatable: bool) -> XliffUnit:
        parts = {child.local_name: child for child in reversed(holder.children)}
        source, target = parts.get("source"), parts.get("target")
        line = line_of(self.text, (source or holder).begin)
        with_state = target if self.version == "1" else holder
        state = with_state.attributes.get("state", "") if with_state else ""
        behind = parts.get("seg-source", source)
        return XliffUnit(line, holder, source, target, behind, is_translatable, state)

    def inner(self, element: Element | None) -> str:
        """Returns what is written in an element."""
        return self.text[slice(*element.inner)] if element else ""


def read_xliff_file(path: str, text: str) -> XliffFile:
    """Returns an XLIFF file.

    Raises:
        XmlError: it is not well-formed, or no XLIFF.
    """
    root = read_xml(path, text)
    version = root.attributes.get("version", "")
    if root.local_name != "xliff" or version[:1] not in _VERSIONS:
        raise XmlError(f"{path} is not XLIFF 1 or 2: its root is {root.name}, version '{version}'.")
    return XliffFile(text, root, version[:1])


def is_code(tag: Token) -> bool:
    """Whether the content of an element in a text is not to be translated, by its first tag."""
    name = tag.name.rpartition(":")[2]
    is_protected = (
        attribute(tag.raw, "mtype") == "protected" or attribute(tag.raw, "translate") == "no"
    )
    return name in _CODE or (name == "mrk" and is_protected)


def mark_of_code(raw: str, tag: Token) -> Mark:
    """Returns the mark of such an element; code can open, and close what it opened."""
    kind = {"bpt": OPEN, "ept": CLOSE}.get(tag.name.rpartition(":")[2], EMPTY)
    return dataclasses.replace(opaque_mark(raw, tag), kind=kind, name=f"code {tag_id(tag.raw)}")
