"""Texts to tokens without TensorFlow: what a tokenizer of `units.tokenizer_of` makes in a graph."""

from typing import Any

import regex

from pipeline.text import white_space
from pipeline.text.tokenization import JOINER, JOINER_IN_TEXT, Tokenizer


class TextCutter:
    """Cuts texts into words, or into the units of a sentencepiece model.

    Args:
        tokenizer: cuts texts into words.
        model: the bytes of a sentencepiece model; None if words stay whole.
    """

    def __init__(self, tokenizer: Tokenizer, model: bytes | None = None) -> None:
        self._tokenizer = tokenizer
        self._pieces: Any = None
        if model is not None:
            import sentencepiece

            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, with joiners where they touch."""
        if self._pieces is None:
            return self._words(text)
        if self._tokenizer.kind != "text":
            text = text.replace(JOINER, JOINER_IN_TEXT)
        return [unit for word in self._words(text) for unit in self._cut(word)]

    def _words(self, text: str) -> list[str]:
        """Returns the tokens before they are cut into units; as `Tokenizer.tokenize` makes them."""
        text = self._tokenizer.normalize(text)
        if self._tokenizer.kind != "text":
            return self._tokenizer.tokens(text)
        tokens: list[str] = []
        clean_before = False
        for piece in self._tokenizer.pieces(text):
            token = piece.token
            if piece.touches and not piece.is_clean:
                token = JOINER + token
            elif piece.touches and clean_before:
                # Between two clean tokens the joiner is a token.
                tokens.append(JOINER)
            elif piece.touches:
                tokens[-1] += JOINER
            tokens.append(token)
            clean_before = piece.is_clean
        return tokens

    def _cut(self, token: str) -> list[str]:
        """Returns the units of a token; as `SegmentingTokenizer` cuts it."""
        is_whole = self._tokenizer.syntax.is_protected(token) or white_space.is_white_space(token)
        if token == JOINER or is_whole:
            return [token]
        bare = regex.sub(f"^{JOINER}|{JOINER}$", "", token)
        units: list[str] = self._pieces.encode(bare, out_type=str) or [bare]
        before = JOINER if token.startswith(JOINER) else ""
        behind = JOINER if token.endswith(JOINER) else ""
        units = [before + units[0], *(JOINER + unit for unit in units[1:])]
        units[-1] += behind
        return units
