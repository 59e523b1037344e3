"""Whether tags are as well nested as the source's, with no pair emptied."""

import collections
from collections.abc import Sequence
from typing import Any, TypeAlias

from pipeline.metrics.base import DenseMetric, FloatArray, Row, ratio
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.text import token_roles

#: A token, and whether it is protected.
MarkedToken: TypeAlias = tuple[str, bool]

_TAGS = (token_roles.OPENING, token_roles.CLOSING, token_roles.VOID)
# The content of a pair, or of the place between two tags.
_NOTHING, _MARKUP, _TEXT = range(3)


class TagValidity(DenseMetric):
    """Share of the outputs whose tags are as well nested as the source's, with no pair emptied.

    A closing tag closes the tag opened last, and a pair with text in the source has text in the
    output. If the source's own tags are not well nested, or it has statements of a template or
    branches of a message, their order and the text between them must be the source's. Which tags
    there are does not matter: `protected_fidelity` counts them. The share is over the segments
    whose source has tags; `details` has it over all segments too.
    """

    size = 4
    unit = "share"
    needs_sources = True
    always_defined = False

    def __init__(self, options: ScoringOptions) -> None:
        self._cut = options.tokenizer.marked_tokens

    def statistics(self, segment: Segment) -> Row:
        source, output = self._cut(segment.source), self._cut(segment.hypothesis)
        has_tags = any(role in (*_TAGS, token_roles.STRUCTURE) for role in _roles(source))
        is_valid = keeps_tags(source, output)
        return [has_tags and is_valid, has_tags, is_valid, 1]

    def value(self, sums: FloatArray) -> float | None:
        return ratio(sums[0], sums[1])

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {
            "n": int(sums[1]),
            "broken": int(sums[1] - sums[0]),
            "all_segments": ratio(sums[2], sums[3]),
            "all_n": int(sums[3]),
        }

    def own_signature(self) -> str:
        return "tags:nested as the source, pairs not emptied"


def ordered_directives(tokens: Sequence[str]) -> list[str]:
    """Returns the tokens, of protected ones, that must keep their order."""
    roles = [token_roles.role_of(token) for token in tokens]
    if token_roles.DATE in roles:
        return []
    return [token for token, role in zip(tokens, roles) if role == token_roles.DIRECTIVE]


def keeps_tags(source: Sequence[MarkedToken], output: Sequence[MarkedToken]) -> bool:
    """Whether an output's tags are as well nested as the source's, and no pair is emptied."""
    if token_roles.STRUCTURE in _roles(source):
        return _keeps_line(source, output, everything=True)
    pairs = _pairs(source)
    if pairs is None:
        return _keeps_line(source, output, everything=False)
    made = _pairs(output)
    if made is None:
        return False
    # Of pairs that are opened alike, no more hold less than in the source.
    return not any(_poorer(made, least) - _poorer(pairs, least) for least in (_MARKUP, _TEXT))


def _roles(tokens: Sequence[MarkedToken]) -> list[int]:
    return [token_roles.role_of(token) if kept else token_roles.OTHER for token, kept in tokens]


def _contents(tokens: Sequence[MarkedToken]) -> list[int]:
    """Returns the kind of each token in a pair: nothing, markup or text."""
    return [
        _MARKUP
        if role in _TAGS or role == token_roles.STRUCTURE
        else _NOTHING
        if not kept and token_roles.is_blank(token)
        else _TEXT
        for (token, kept), role in zip(tokens, _roles(tokens))
    ]


def _pairs(tokens: Sequence[MarkedToken]) -> list[tuple[str, int]] | None:
    """Returns each pair's opening tag and what it holds; None if tags are not well nested."""
    roles, contents = _roles(tokens), _contents(tokens)
    pairs, stack = [], []
    for position, ((token, _), role) in enumerate(zip(tokens, roles)):
        if role == token_roles.OPENING:
            stack.append(position)
        elif role == token_roles.CLOSING:
            if not stack:
                return None
            begin = stack.pop()
            opening = tokens[begin][0]
            if token_roles.tag_name(opening) != token_roles.tag_name(token):
                return None
            pairs.append((opening, max(contents[begin + 1 : position], default=_NOTHING)))
    return None if stack else pairs


def _poorer(pairs: Sequence[tuple[str, int]], least: int) -> "collections.Counter[str]":
    """Returns how many pairs of each opening tag hold less than `least`."""
    return collections.Counter(opening for opening, content in pairs if content < least)


def _keeps_line(
    source: Sequence[MarkedToken], output: Sequence[MarkedToken], everything: bool
) -> bool:
    """Whether the tags, or all protected tokens, are in the source's order, their text between."""
    line, gaps = _line(source, everything)
    other, other_gaps = _line(output, everything)
    return line == other and all(now or not was for was, now in zip(gaps, other_gaps))


def _line(tokens: Sequence[MarkedToken], everything: bool) -> tuple[list[str], list[bool]]:
    """Returns the tags, or all protected tokens; and whether there is text before each but one."""
    line: list[str] = []
    gaps: list[bool] = []
    text = False
    for (token, kept), role in zip(tokens, _roles(tokens)):
        if kept and (everything or role in _TAGS):
            if line:
                gaps.append(text)
            line.append(token)
            text = False
        elif kept or not token_roles.is_blank(token):
            text = True
    return line, gaps
