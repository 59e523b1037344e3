"""Texts cut into characters, in a TensorFlow graph and in Python; and marks of such cuts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.text import terms
from pipeline.text.placeholders.protected_syntax import (
    BEGIN_MARK,
    END_MARK,
    MARKED,
    ProtectedSyntax,
    compiled,
)

if TYPE_CHECKING:
    import tensorflow as tf

# A character as a reader takes it: a letter with the marks that belong to it, whatever the script
# (a grapheme cluster, as far as Unicode's categories tell: marks follow their base, and what a
# zero-width joiner joins is one).
CHARACTER = r"\P{M}(?:\p{M}|\x{200D}\P{M})*|\p{M}+"
# Marks the end of a token temporarily; no text contains it.
BREAK = "\x1f"
CONTROL = r"[\x00\x1c-\x1f]"
MARKS = f"[{BEGIN_MARK}{END_MARK}]"


def split_characters(text: str) -> list[str]:
    """Returns the characters of a text."""
    characters: list[str] = compiled(CHARACTER.replace(r"\x{200D}", "\u200d")).findall(text)
    return characters


def cut_in_graph(texts: "tf.Tensor", syntax: ProtectedSyntax) -> "tf.RaggedTensor":
    """Protected tokens and characters of string `[batch]`, without white space."""
    import tensorflow as tf

    texts = tf.strings.regex_replace(texts, CONTROL, " ")
    # White space separates protected tokens; after them it is dropped.
    marked = tf.strings.regex_replace(
        terms.mark_in_graph(texts, syntax, pack=True), f"({MARKED}|{CHARACTER})", rf"\1{BREAK}"
    )
    pieces = tf.strings.split(tf.strings.regex_replace(marked, MARKS, ""), BREAK)
    return tf.ragged.boolean_mask(pieces, (pieces != " ") & (pieces != ""))


def cut(text: str, syntax: ProtectedSyntax) -> Iterator[tuple[str, bool]]:
    """Yields (token, whether it is protected): Python's `cut_in_graph`."""
    pattern = f"{MARKED}|{CHARACTER}".replace(r"\x{200D}", "\u200d")
    text = compiled(CONTROL).sub(" ", text).strip()
    for piece in compiled(pattern).findall(terms.mark(text, syntax, pack=True)):
        if piece[0] == BEGIN_MARK:
            yield piece[1:-1], True
        elif piece != " ":
            yield piece, False
