"""Pairs of texts out of two files that have the same keys in two languages."""

import dataclasses
from collections.abc import Iterator, Sequence

from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, Value
from pipeline.readers.inline_text import InlineText, Mark

_FORMS = ("one", "other")


@dataclasses.dataclass(frozen=True)
class TextPair:
    """A text and its translation.

    Attributes:
        key: the path of their key.
        line: of the text, counted from 1.
        source, target: the texts, as `translate` shows them to a model.
    """

    key: str
    line: int
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A text without a translation: its key, its line, and why it is left out."""

    key: str
    line: int
    reason: str


def pairs_of(source: ResourceDocument, target: ResourceDocument) -> Iterator[TextPair | LeftOut]:
    """Yields the pairs of two files, or why there is none, in the order of the source.

    Of a plural, the forms for one thing and for other numbers are pairs.
    """
    yield from _pairs(source.nodes, target.nodes, "")


def _pairs(
    nodes: Sequence[Node], partners: Sequence[Node], path: str
) -> Iterator[TextPair | LeftOut]:
    by_key = {partner.key: partner for partner in partners}
    for node in nodes:
        key = f"{path}.{node.key}" if path else node.key
        partner = by_key.get(node.key)
        if partner is None or (node.is_translated and not partner.is_translated):
            if node.is_translated:
                yield LeftOut(key, node.line, "untranslated")
            continue
        if node.value and partner.value:
            yield from _texts(node.value, partner.value, key, node.line)
        children = node.children
        if node.is_plural:
            children = [child for child in children if child.key in _FORMS]
        yield from _pairs(children, partner.children, key)


def _texts(source: Value, target: Value, key: str, line: int) -> Iterator[TextPair | LeftOut]:
    if source.is_blank or target.is_blank:
        return
    problem = source.problem or target.problem
    if not problem and len(source.parts) != len(target.parts):
        problem = "a message with other forms than its translation"
    if problem:
        yield LeftOut(key, line, problem)
        return
    seen = set()
    for text, translation in zip(source.parts, target.parts):
        pair = TextPair(key, line, text.text, _shown(translation, text))
        if pair not in seen:
            yield pair
        seen.add(pair)


def _shown(text: InlineText, source: InlineText) -> str:
    """Returns a translation in which the source's markup is shown as it is there."""
    names = {mark.raw: mark.shown for mark in source.marks}
    return "".join(
        names.get(piece.raw, piece.shown) if isinstance(piece, Mark) else piece
        for piece in text.pieces_of(text.text)
    )
