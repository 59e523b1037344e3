"""Formats with one language in a file: keys and texts, of which the texts are replaced."""

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from pipeline.documents import languages
from pipeline.documents.document import Document, Segment
from pipeline.documents.edits import Edit, Place, edited
from pipeline.documents.inline_text import InlineText, Piece


@dataclasses.dataclass(frozen=True)
class Value:
    """The text of a key.

    Attributes:
        place: where it is written, without what surrounds it, such as quotes that stay.
        inline: the text.
        write: returns how pieces of a translation are written at the place.
        refuse: returns why a translation cannot be written; empty if it can.
    """

    place: Place
    inline: InlineText
    write: Callable[[Sequence[Piece]], str]
    refuse: Callable[[str], str] = lambda text: ""


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

    #: What stands between two keys.
    separator = ""

    def __init__(self, text: str, mark: bytes, language: str) -> None:
        super().__init__()
        self.text, self.mark, self.language = text, mark, language
        self.nodes = self.read(text)
        self._values: list[Value] = []
        # Each leaf's segment, and each plural's forms, by the identity of the node.
        self._segments: dict[int, int] = {}
        self._forms: dict[int, list[_Form]] = {}
        for node in self.nodes:
            self._sort(node)

    @abc.abstractmethod
    def read(self, text: str) -> list[Node]:
        """Returns the keys of a file's text, in its order."""

    def _sort(self, node: Node) -> None:
        if node.is_plural:
            self._sort_plural(node)
        elif node.value:
            if not node.value.inline.text.strip():
                self.blank.append(node.line)
            elif problem := node.value.inline.problem:
                self.problems.append((node.line, problem))
            else:
                self._segments[id(node)] = self._add(node.line, node.value)
        for child in () if node.is_plural else node.children:
            self._sort(child)

    def _add(self, line: int, value: Value) -> int:
        self.segments.append(Segment(line, value.inline.text))
        self._values.append(value)
        return len(self._values) - 1

    def _sort_plural(self, node: Node) -> None:
        of_category = {child.key: child for child in node.children if child.value}
        values = [child.value for child in of_category.values() if child.value]
        if not values or not any(value.inline.text.strip() for value in values):
            self.blank.append(node.line)
            return
        other = of_category.get("other")
        wanted = languages.categories(self.language, node.ordinal)
        problem = next((v.inline.problem for v in values if v.inline.problem), "")
        if other is None:
            problem = "a plural without the form other"
        elif not wanted:
            problem = (
                "the plural forms of the translations' language are unknown: name it with "
                "--target-language"
            )
        if problem or other is None:
            self.problems.append((node.line, problem))
            return
        forms: list[_Form] = []
        added: dict[str, int] = {}
        # Forms for a number itself, such as =0, belong to no language.
        exact = [key for key in of_category if key not in languages.CATEGORIES]
        for category in (*exact, *wanted):
            source = self._source_of(category, of_category, other, node.ordinal)
            assert source.value
            text = source.value.inline.text
            if text not in added:
                added[text] = self._add(source.line, source.value)
            forms.append(_Form(category, of_category.get(category, other), added[text]))
        self._forms[id(node)] = forms

    def _source_of(
        self, category: str, of_category: Mapping[str, Node], other: Node, ordinal: bool
    ) -> Node:
        """Returns the form of the source that a category of the target's language translates."""
        one = of_category.get("one")
        if category not in languages.CATEGORIES or category == "other":
            return of_category[category]
        serves_one, only_one = languages.serves_one(self.language, category, ordinal)
        if one and serves_one:
            assert one.value and other.value
            # "One file" must not stand for 21 files.
            names_number = one.value.inline.placeholders >= other.value.inline.placeholders
            return one if only_one or names_number else other
        return of_category.get(category, other) if category != "one" else other

    def refuse(self, place: int, text: str) -> str:
        """See `Document`."""
        value = self._values[place]
        return value.inline.refuse(text) or value.refuse(text)

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. A text without a translation stays in the source's language."""
        filled = edited(self.text, self._edits(self.nodes, texts))
        return self.encoded(filled)

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
                    rendered = (self._rendered(form, texts[form.segment]) for form in forms)
                    yield *place, self.separator.join(rendered)
            elif id(node) in self._segments:
                segment = self._segments[id(node)]
                if node.value and segment in texts:
                    yield self._edit(node.value, texts[segment])
            if not node.is_plural:
                yield from self._edits(node.children, texts)

    def _edit(self, value: Value, text: str) -> Edit:
        return *value.place, value.write(value.inline.pieces_of(text))

    def _rendered(self, form: _Form, text: str) -> str:
        """Returns a form of a plural as it is written."""
        node = form.template
        assert node.value and node.name
        source = self._values[form.segment].inline
        edits = [
            (*node.name, form.category),
            (*node.value.place, node.value.write(source.pieces_of(text))),
        ]
        return edited(self.text, edits, node.chunk)
