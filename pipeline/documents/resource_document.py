"""Formats with one language in a file: keys and texts, of which the texts are replaced."""

import abc
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from pipeline.documents import languages
from pipeline.documents.document import Document, DocumentError, Segment, decode
from pipeline.documents.edits import Edit, Place, edited
from pipeline.documents.options import Options
from pipeline.documents.resource_nodes import Node, Value, own_begin
from pipeline.readers.inline_text import InlineText, Piece


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
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: the file cannot be read, or the translated file has no keys.
    """

    #: Whether a plural's form for 0 is for the number 0 in every language.
    zero_is_special = True
    #: What stands between the keys of the file.
    separator = ""

    def __init__(self, path: str, content: bytes, options: Options) -> None:
        super().__init__()
        self._path = path
        self.text, self.mark = self.decoded(content)
        self.language = options.language
        self.nodes = self.read(self.text)
        # The text and the value of each segment.
        self._parts: list[tuple[InlineText, Value]] = []
        # Each leaf's segments, and each plural's forms, by the identity of the node.
        self._segments: dict[int, list[int]] = {}
        self._forms: dict[int, list[_Form]] = {}
        # The file that has some translations, and its node for each node that it has, too.
        self._existing: ResourceDocument | None = None
        self._partners: dict[int, Node] = {}
        if options.existing:
            path, content = options.existing
            self._existing = existing = type(self)(path, content, Options(language=self.language))
            if not existing.nodes:
                raise DocumentError(f"{path} has no keys yet: replace it with --force.")
            self._match(self.nodes, existing.nodes, self.separator == existing.separator)
            return
        for node in self.nodes:
            self._sort(node)

    @abc.abstractmethod
    def read(self, text: str) -> list[Node]:
        """Returns the keys of a file's text, in its order."""

    def _match(self, nodes: Sequence[Node], existing: Sequence[Node], in_same_style: bool) -> None:
        """Sorts the keys that the translated file lacks, or has without a text."""
        by_key = {node.key: node for node in existing}
        for node in nodes:
            aliases = (by_key[alias] for alias in node.aliases if alias in by_key)
            partner = by_key.get(node.key) or next(aliases, None)
            if partner is None and in_same_style:
                self._sort(node)
            elif partner is None and node.is_translated:
                reason = "the translated file writes what is beside it in another style"
                self.problems.append((node.line, reason))
            elif partner:
                self._partners[id(node)] = partner
                if node.is_plural or partner.is_plural or partner.value:
                    self.translated_before += partner.is_translated
                if partner.value and partner.value.is_blank and not node.is_plural:
                    self._sort_value(node)
                if not node.is_plural and not partner.is_plural:
                    same = node.separator == partner.separator
                    self._match(node.children, partner.children, same)

    def _sort(self, node: Node) -> None:
        if node.is_plural:
            self._sort_plural(node)
            return
        self._sort_value(node)
        for child in node.children:
            self._sort(child)

    def _sort_value(self, node: Node) -> None:
        if value := node.value:
            problem = value.problem or next((p.problem for p in value.parts if p.problem), "")
            if value.is_blank:
                self.blank.append(node.line)
            elif problem:
                self.problems.append((node.line, problem))
            else:
                self._segments[id(node)] = [self._add(node.line, v, value) for v in value.parts]

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
        if any(child.name is None for child in node.children):
            problem = "a plural with a form that names no quantity"
        elif "other" not in texts:
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
        """See `Document`. A text without a translation stays in the source's language.

        If there is a translated file, it stays, and gets the texts that it lacks; those without a
        translation are left out.
        """
        if existing := self._existing:
            joined: dict[Place, str] = {}
            for begin, end, added in self._additions(
                self.nodes, existing.nodes, None, self.separator, texts
            ):
                joined[begin, end] = joined.get((begin, end), "") + added
            edits = [(*place, added) for place, added in joined.items()]
            return existing.checked(edited(existing.text, edits))
        edits = [*self._edits(self.nodes, texts), *self.extra_edits()]
        return self.checked(edited(self.text, edits))

    def checked(self, text: str) -> bytes:
        """Returns the bytes of a filled file's text, if it can be read again.

        Raises:
            DocumentError: it cannot.
        """
        try:
            self.read(text)
        except DocumentError as error:
            raise DocumentError(f"The translations would make a file not valid: {error}") from None
        return self.encoded(text)

    def _additions(
        self,
        nodes: Sequence[Node],
        existing: Sequence[Node],
        inner: Place | None,
        separator: str,
        texts: Mapping[int, str],
    ) -> Iterator[Edit]:
        """Yields the edits that add what the translated file lacks, in the order of the source.

        Args:
            nodes: neighbours in the source.
            existing: those in the translated file.
            inner: where the first neighbour can be inserted, or None.
            separator: what stands between neighbours.
            texts: the translations.
        """
        assert self._existing
        previous: Node | None = None
        for node in nodes:
            partner = self._partners.get(id(node))
            if partner is None:
                if not self._is_whole(node, texts):
                    continue
                begin = own_begin(self.text, node, separator)
                added = edited(self.text, self._edits([node], texts), (begin, node.chunk[1]))
                added = self.adapted(added, node, existing[0] if existing else None)
                if not separator and not added.startswith(("\n", "\r\n")):
                    added = "\n" + added
                if previous:
                    yield previous.chunk[1], previous.chunk[1], separator + added
                elif existing:
                    place = own_begin(self._existing.text, existing[0], separator)
                    yield place, place, added + separator
                elif inner:
                    yield inner[0], inner[0], added
                continue
            previous = partner
            segments = self._segments.get(id(node), ())
            if node.value and partner.value and segments and all(s in texts for s in segments):
                value = partner.value if len(segments) == 1 else node.value
                written = value.write([self._pieces(segment, texts) for segment in segments])
                yield *partner.value.place, written
            if not node.is_plural:
                yield from self._additions(
                    node.children, partner.children, partner.inner, node.separator, texts
                )

    def _is_whole(self, node: Node, texts: Mapping[int, str]) -> bool:
        """Whether a key has a text, and all texts of it are translated."""
        if node.is_plural:
            forms = self._forms.get(id(node), ())
            return bool(forms) and all(form.segment in texts for form in forms)
        if node.value and not node.value.is_blank:
            segments = self._segments.get(id(node), ())
            if not segments or not all(segment in texts for segment in segments):
                return False
        return node.is_translated and all(
            self._is_whole(child, texts) for child in node.children if child.is_translated
        )

    def adapted(self, added: str, node: Node, neighbour: Node | None) -> str:
        """Returns a key's lines as they are written beside a neighbour in the translated file."""
        return added

    def extra_edits(self) -> list[Edit]:
        """Returns the edits that a file in another language needs besides its texts."""
        return []

    def decoded(self, content: bytes) -> tuple[str, bytes]:
        """Returns the file's text, and its byte order mark or none.

        Raises:
            DocumentError: it is not in the format's encoding.
        """
        return decode(self._path, content)

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
