"""Formats with one language in a file: keys and texts, of which the texts are replaced."""

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from pipeline.documents import languages
from pipeline.documents.document import Document, Segment
from pipeline.documents.edits import Edit, Place, edited
from pipeline.readers.inline_text import InlineText, Mark, Piece


@dataclasses.dataclass(frozen=True)
class Value:
    """The text of a key.

    Attributes:
        place: where it is written, without what surrounds it, such as quotes that stay.
        parts: the text; several where it holds the forms of a plural itself.
        write: returns what is written at the place for the pieces of each part's translation.
        refuse: returns why a translation cannot be written; empty if it can.
        problem: why the text cannot be translated; empty if it can.
    """

    place: Place
    parts: Sequence[InlineText]
    write: Callable[[Sequence[Sequence[Piece]]], str]
    refuse: Callable[[str], str] = lambda text: ""
    problem: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to translate."""
        return not self.problem and not any(part.text.strip() for part in self.parts)


def one_part(
    place: Place,
    pieces: Sequence[Piece],
    write: Callable[[str], str],
    refuse: Callable[[str], str] = lambda text: "",
) -> Value:
    """Returns the value of a text whose markup is written with the escapes of all characters."""

    def written(parts: Sequence[Sequence[Piece]]) -> str:
        return write("".join(p.raw if isinstance(p, Mark) else p for p in parts[0]))

    return Value(place, [InlineText(pieces)], written, refuse)


@dataclasses.dataclass
class Node:
    """A key of a file, with its text or with the keys in it.

    Attributes:
        key: its name among its neighbours.
        line: counted from 1.
        chunk: the place of all that belongs to it, with the white space and comments before it.
        value: its text; None for a group, and for what is not to be translated.
        children: the keys in it.
        inner: where children can be inserted, for a group.
        is_plural: whether the children's keys are plural categories.
        ordinal: whether these are of ordinal numbers.
        name: the place of the category, of a child of a plural.
        named: returns what is written there for a category.
        separator: what stands between its children.
    """

    key: str
    line: int
    chunk: Place
    value: Value | None = None
    children: list["Node"] = dataclasses.field(default_factory=list)
    inner: Place | None = None
    is_plural: bool = False
    ordinal: bool = False
    name: Place | None = None
    named: Callable[[str], str] = str
    separator: str = ""


@dataclasses.dataclass(frozen=True)
class _Form:
    """A form of a plural: its category, the source's node that it is made of, and its segment."""

    category: str
    template: Node
    segment: int


class ResourceDocument(Document):
    """A file with keys and texts in one language.

    A file of the translations' language is made of it: the same file with other texts. Texts that
    a translated file has already stay as they are there.

    Args:
        text: the file's text.
        mark: its byte order mark, or none.
        language: that of the translations, or "".
    """

    #: Whether a plural's form for 0 is for the number 0 in every language.
    zero_is_special = True

    def __init__(self, text: str, mark: bytes, language: str) -> None:
        super().__init__()
        self.text, self.mark, self.language = text, mark, language
        self.nodes = self.read(text)
        # The text and the value of each segment.
        self._parts: list[tuple[InlineText, Value]] = []
        # Each leaf's segments, and each plural's forms, by the identity of the node.
        self._segments: dict[int, list[int]] = {}
        self._forms: dict[int, list[_Form]] = {}
        for node in self.nodes:
            self._sort(node)

    @abc.abstractmethod
    def read(self, text: str) -> list[Node]:
        """Returns the keys of a file's text, in its order."""

    def _sort(self, node: Node) -> None:
        if node.is_plural:
            self._sort_plural(node)
            return
        if value := node.value:
            problem = value.problem or next((p.problem for p in value.parts if p.problem), "")
            if value.is_blank:
                self.blank.append(node.line)
            elif problem:
                self.problems.append((node.line, problem))
            else:
                self._segments[id(node)] = [self._add(node.line, v, value) for v in value.parts]
        for child in node.children:
            self._sort(child)

    def _add(self, line: int, part: InlineText, value: Value) -> int:
        self.segments.append(Segment(line, part.text))
        self._parts.append((part, value))
        return len(self._parts) - 1

    def _sort_plural(self, node: Node) -> None:
        children = {child.key: child for child in node.children}
        values = {child.key: child.value for child in node.children if child.value}
        problem = next((value.problem for value in values.values() if value.problem), "")
        if not problem and any(len(value.parts) != 1 for value in values.values()):
            problem = "a plural in a plural"
        if problem:
            self.problems.append((node.line, problem))
            return
        texts = {key: value.parts[0] for key, value in values.items()}
        wanted = languages.categories(self.language, node.ordinal)
        problem = next((text.problem for text in texts.values() if text.problem), "")
        if not any(text.text.strip() for text in texts.values()):
            self.blank.append(node.line)
            return
        if "other" not in texts:
            problem = "a plural without the form other"
        elif not wanted:
            problem = languages.UNKNOWN
        elif any(
            self.text[one.chunk[1] : two.chunk[0]].strip() != node.separator.strip()
            for one, two in zip(node.children, node.children[1:])
        ):
            problem = "a plural whose forms do not stand together"
        if problem:
            self.problems.append((node.line, problem))
            return
        forms: list[_Form] = []
        added: dict[str, int] = {}
        # Forms for a number itself, such as =0, belong to no language.
        exact = [key for key in texts if key not in languages.CATEGORIES]
        if self.zero_is_special and "zero" in texts and "zero" not in wanted:
            exact.append("zero")
        for category in (*exact, *wanted):
            chosen = languages.source_category(category, texts, self.language, node.ordinal)
            source, text = children[chosen], texts[chosen]
            assert source.value
            if text.text not in added:
                added[text.text] = self._add(source.line, text, source.value)
            template = children[category if category in texts else "other"]
            forms.append(_Form(category, template, added[text.text]))
        self._forms[id(node)] = forms

    def refuse(self, place: int, text: str) -> str:
        """See `Document`."""
        part, value = self._parts[place]
        return part.refuse(text) or value.refuse(text)

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. A text without a translation stays in the source's language."""
        edits = [*self._edits(self.nodes, texts), *self.extra_edits()]
        filled = edited(self.text, edits)
        return self.encoded(filled)

    def extra_edits(self) -> list[Edit]:
        """Returns the edits that a file in another language needs besides its texts."""
        return []

    def encoded(self, text: str) -> bytes:
        """Returns the bytes of a text in the encoding of the file."""
        return self.mark + text.encode("utf-8")

    def _edits(self, nodes: Sequence[Node], texts: Mapping[int, str]) -> Iterator[Edit]:
        """Yields the edits that write translations into the keys of a file."""
        for node in nodes:
            if id(node) in self._forms:
                forms = self._forms[id(node)]
                if all(form.segment in texts for form in forms):
                    place = node.children[0].chunk[0], node.children[-1].chunk[1]
                    rendered = (self._rendered(form, texts) for form in forms)
                    yield *place, node.separator.join(rendered)
            elif node.value and id(node) in self._segments:
                segments = self._segments[id(node)]
                if all(segment in texts for segment in segments):
                    written = [self._pieces(segment, texts) for segment in segments]
                    yield *node.value.place, node.value.write(written)
            if not node.is_plural:
                yield from self._edits(node.children, texts)

    def _pieces(self, segment: int, texts: Mapping[int, str]) -> Sequence[Piece]:
        return self._parts[segment][0].pieces_of(texts[segment])

    def _rendered(self, form: _Form, texts: Mapping[int, str]) -> str:
        """Returns a form of a plural as it is written."""
        node = form.template
        assert node.value and node.name
        written = node.value.write([self._pieces(form.segment, texts)])
        edits = [(*node.name, node.named(form.category)), (*node.value.place, written)]
        return edited(self.text, edits, node.chunk)
