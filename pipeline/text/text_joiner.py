"""Tokens to texts without TensorFlow: what `units.detokenize` and `keep_apart` do in a graph."""

from collections.abc import Sequence
from typing import NamedTuple

import regex

from pipeline.text import white_space
from pipeline.text.placeholders.protected_syntax import (
    BEGIN_MARK,
    END_MARK,
    compiled,
    writable_bytes,
)
from pipeline.text.tokenization import JOINER, Tokenizer

# Marks the beginning of each token temporarily; no text contains it.
_PIECE = "\x1e"
_CAN_GO = r"[^\p{L}\p{M}\p{N}]*"
_BYTES = regex.compile(f"({JOINER}?)((?:<0x[0-9A-F]{{2}}>)+)({JOINER}?)")


class _Span(NamedTuple):
    """A protected token of a text, by the places where it begins and ends."""

    begin: int
    end: int


class TextJoiner:
    """Joins tokens into texts.

    A text, cut again, holds the protected tokens of its tokens and no others; see `keeping_apart`.

    Args:
        tokenizer: cuts texts into words.
        has_units: whether words are cut into units, some of which are bytes.
    """

    def __init__(self, tokenizer: Tokenizer, has_units: bool = False) -> None:
        self._tokenizer = tokenizer
        self._syntax = tokenizer.syntax
        self._has_units = has_units
        self._has_joiners = has_units or tokenizer.kind == "text"

    def text(self, tokens: Sequence[str]) -> str:
        """Returns the text of an output's tokens."""
        if self._has_units:
            tokens = _in_characters(tokens)
        if self._tokenizer.kind == "text":
            tokens = self._kept_apart(list(tokens))
        return self._join(tokens)

    def plain_text(self, tokens: Sequence[str]) -> str:
        """Returns the text of tokens that a text had, which are apart already."""
        return self._join(_in_characters(tokens) if self._has_units else tokens)

    def _join(self, tokens: Sequence[str]) -> str:
        joined = " ".join(tokens)
        if not self._has_joiners:
            return joined
        return white_space.to_texts(regex.sub(f" ?{JOINER} ?", "", joined))

    # The following is `keeping_apart`, of one text; its comments say why.

    def _kept_apart(self, tokens: list[str]) -> list[str]:
        protected = [self._syntax.is_protected(token) for token in tokens]
        changed = self._is_unsafe(tokens, protected)
        while changed:
            tokens, protected, changed = self._part(tokens, protected)
            changed = changed and self._is_unsafe(tokens, protected)
        return tokens

    def _marked(self, tokens: Sequence[str], protected: Sequence[bool]) -> str:
        return self._join(
            [
                f"{BEGIN_MARK}{token}{END_MARK}" if is_protected else token
                for token, is_protected in zip(tokens, protected)
            ]
        )

    def _is_unsafe(self, tokens: Sequence[str], protected: Sequence[bool]) -> bool:
        if self._syntax.mark(self._join(tokens)) != self._marked(tokens, protected):
            return True
        stray = _stray(tokens, protected)
        return any(
            is_stray and (token.endswith(JOINER) or behind.startswith(JOINER))
            for is_stray, token, behind in zip(stray, tokens, tokens[1:])
        )

    def _part(
        self, tokens: Sequence[str], protected: Sequence[bool]
    ) -> tuple[list[str], list[bool], bool]:
        """Separates tokens once; returns them, which are protected, and whether any changed."""
        pieces = [token != JOINER and not white_space.is_white_space(token) for token in tokens]
        begun = [
            regex.sub(f"^({JOINER}?)", rf"\1{_PIECE}", token) if is_piece else token
            for token, is_piece in zip(tokens, pieces)
        ]
        text = self._join(begun)
        starts = _places(text, _PIECE)
        found = _spans(self._syntax.mark(text.replace(_PIECE, "")))
        meant = _spans(self._marked(tokens, protected))
        foreign, lost = found - meant, meant - found
        apart = [
            any(span.begin < start < span.end for span in foreign)
            or any(start in span for span in lost)
            for start in starts
        ]
        apart.append(False)
        inside = [any(span.begin <= start < span.end for span in foreign) for start in starts]
        number = 0
        numbers = []
        for is_piece, is_stray in zip(pieces, _stray(tokens, protected)):
            numbers.append(number)
            number += is_piece
            if is_piece and is_stray:
                apart[number] = True

        new, removed = [], []
        for token, is_piece, place in zip(tokens, pieces, numbers):
            before = apart[place] and place > 0
            behind = is_piece and apart[min(place + 1, len(starts))]
            removed.append(token == JOINER and before)
            if is_piece and before:
                token = token.removeprefix(JOINER)
            if behind:
                token = token.removesuffix(JOINER)
            new.append(token)
        parted = any(removed) or new != list(tokens)
        if not parted:
            # No tokens touch any more: drop the punctuation inside what is read as one token.
            removed = [
                is_piece
                and inside[place]
                and not is_protected
                and compiled(_CAN_GO).fullmatch(token.replace(JOINER, "").removeprefix(" "))
                is not None
                for token, is_piece, place, is_protected in zip(tokens, pieces, numbers, protected)
            ]
        kept = [not is_removed for is_removed in removed]
        return (
            [token for token, keep in zip(new, kept) if keep],
            [is_protected for is_protected, keep in zip(protected, kept) if keep],
            parted or any(removed),
        )


def _in_characters(tokens: Sequence[str]) -> list[str]:
    """Returns tokens with characters in the place of the bytes that spell them.

    Bytes that spell no character become U+FFFD.
    """
    made: list[str] = []
    waiting: list[tuple[str, bytes, str]] = []

    def write() -> None:
        text = b"".join(raw for _, raw, _ in waiting).decode("utf-8", errors="replace")
        marks = [waiting[0][0], *([JOINER] * (len(text) - 1))]
        characters = [mark + character for mark, character in zip(marks, text)]
        characters[-1] += waiting[-1][2]
        made.extend(characters)
        waiting.clear()

    for token in tokens:
        match = _BYTES.fullmatch(token)
        touches = bool(match and match[1]) or bool(waiting and waiting[-1][2])
        if waiting and not (match and touches):
            write()
        if match:
            raw = writable_bytes(int(number, 16) for number in match[2][1:-1].split("><"))
            waiting.append((match[1], raw, match[3]))
        else:
            made.append(token)
    if waiting:
        write()
    return made


def _stray(tokens: Sequence[str], protected: Sequence[bool]) -> list[bool]:
    """Returns which tokens are a `<` outside of tags, if there are tags."""
    has_tags = any(flag and token.startswith("<") for token, flag in zip(tokens, protected))
    return [
        has_tags and not flag and token.removesuffix(JOINER).endswith("<")
        for token, flag in zip(tokens, protected)
    ]


def _places(text: str, mark: str) -> list[int]:
    """Returns the places of a mark in a text, without counting other marks."""
    others = "".join({BEGIN_MARK, END_MARK, _PIECE} - {mark})
    places, place = [], 0
    for character in text:
        if character == mark:
            places.append(place)
        elif character not in others:
            place += 1
    return places


def _spans(marked: str) -> set[_Span]:
    return set(map(_Span, _places(marked, BEGIN_MARK), _places(marked, END_MARK)))
