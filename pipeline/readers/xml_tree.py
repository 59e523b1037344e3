"""The elements of an XML file with their places, so that it can be edited."""

import dataclasses
import re
from collections.abc import Iterator
from xml.parsers import expat

from pipeline.common.errors import VerbatimError
from pipeline.readers.inline_text import CLOSE, EMPTY, OPEN

_TOKEN = re.compile(
    r"""
    (?P<comment><!--.*?-->|<\?.*?\?>)
    |<!\[CDATA\[(?P<cdata>.*?)\]\]>
    |(?P<doctype><!DOCTYPE\b(?:[^\[>"']|"[^"]*"|'[^']*'
        |\[(?:<!--.*?-->|<\?.*?\?>|"[^"]*"|'[^']*'|[^\]"'])*\])*>)
    |<(?P<close>/?)(?P<name>[^\s/>]+)(?P<attributes>(?:[^>"'/]|"[^"]*"|'[^']*'|/(?!>))*)(?P<empty>/?)>
    |(?P<entity>&[^;]*;)
    |(?P<text>[^<&]+)
    """,
    re.DOTALL | re.VERBOSE,
)
_ENCODING = re.compile(r"<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.-]+)")
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_KNOWN_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class XmlError(VerbatimError, ValueError):
    """XML that cannot be read; its message is one sentence that begins with the file's name."""


@dataclasses.dataclass(frozen=True)
class Token:
    """A part of an XML text.

    Attributes:
        kind: `text`, `cdata`, `entity` (one that the file defines itself), `comment`, or what
            `inline_text` calls a mark.
        begin, end: its place.
        raw: how it is written.
        text: its characters, if it has any.
        name: that of an element.
    """

    kind: str
    begin: int
    end: int
    raw: str
    text: str = ""
    name: str = ""


@dataclasses.dataclass
class Element:
    """An element.

    Attributes:
        name: with its prefix.
        attributes: name to value.
        begin, end: its place.
        inner: the place of what is in it; empty, behind it, if it is `<a/>`.
        tag_end: where its first tag ends.
        children: the elements in it.
    """

    name: str
    attributes: dict[str, str]
    begin: int
    end: int
    inner: tuple[int, int]
    tag_end: int
    children: list["Element"] = dataclasses.field(default_factory=list)

    @property
    def local_name(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]

    @property
    def is_empty(self) -> bool:
        """Whether it is one tag."""
        return self.tag_end == self.end

    def walk(self) -> Iterator["Element"]:
        """Yields it and all elements in it, in the order of the file."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += reversed(one.children)


def unescape(text: str) -> str:
    """Returns characters with XML's own entities, and those by number, resolved."""
    return _KNOWN_ENTITY.sub(lambda match: _character(match[0][1:-1]), text)


def _character(name: str) -> str:
    if name.startswith("#"):
        return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))
    return _ENTITIES[name]


def escape(text: str) -> str:
    """Returns characters as they are written in XML, outside of attributes."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def xml_attribute(text: str) -> str:
    """Returns an attribute's value in quotes."""
    return '"' + escape(text).replace('"', "&quot;") + '"'


def in_xml(text: str) -> str:
    """Returns a text in which U+FFFD replaces what XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def not_in_xml(text: str) -> str:
    """Returns why a text cannot stand in XML; empty if it can."""
    found = _NOT_IN_XML.search(text)
    return f"XML cannot hold the character U+{ord(found[0]):04X}" if found else ""


def tokens(text: str, begin: int, end: int) -> Iterator[Token]:
    """Yields the parts of a well-formed XML text between two places."""
    for match in _TOKEN.finditer(text, begin, end):
        raw, place = match[0], match.span()
        if match["name"]:
            kind = CLOSE if match["close"] else EMPTY if match["empty"] else OPEN
            yield Token(kind, *place, raw, name=match["name"])
        elif match["text"] is not None:
            yield Token("text", *place, raw, _lines(raw))
        elif match["cdata"] is not None:
            yield Token("cdata", *place, raw, _lines(match["cdata"]))
        elif match["entity"] and _KNOWN_ENTITY.fullmatch(raw):
            yield Token("text", *place, raw, _character(raw[1:-1]))
        elif match["entity"]:
            yield Token("entity", *place, raw)
        else:
            yield Token("comment", *place, raw)


def _lines(raw: str) -> str:
    return raw.replace("\r\n", "\n").replace("\r", "\n")


def read_xml(path: str, text: str) -> Element:
    """Returns the root element of an XML file.

    Args:
        path: its name in messages.
        text: its text, without a byte order mark.

    Raises:
        XmlError: it is not well-formed, or says that it is not UTF-8.
    """
    declared = _ENCODING.match(text)
    if declared and declared[1].lower() not in ("utf-8", "utf8"):
        raise XmlError(f"{path} names the encoding {declared[1]}: convert it to UTF-8.")
    parser = expat.ParserCreate("utf-8")
    # Entities that the file defines are not resolved: they stay as they are.
    parser.DefaultHandler = lambda data: None
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise XmlError(
            f"{path} is not well-formed XML: see line {error.lineno} ({reason})."
        ) from None
    except ValueError as error:
        raise XmlError(f"{path} is not well-formed XML: {error}.") from None
    opened: list[Element] = []
    root: Element | None = None
    for match in _TOKEN.finditer(text):
        if not match["name"]:
            continue
        begin, end = match.span()
        if match["close"]:
            element = opened.pop()
            element.inner, element.end = (element.tag_end, begin), end
            continue
        attributes = {
            name: unescape(double or single)
            for name, double, single in _ATTRIBUTE.findall(match["attributes"])
        }
        element = Element(match["name"], attributes, begin, end, (end, end), end)
        if opened:
            opened[-1].children.append(element)
        root = root or element
        if not match["empty"]:
            opened.append(element)
    if root is None or opened:
        raise XmlError(f"{path} has XML that cannot be edited in place.")
    return root
