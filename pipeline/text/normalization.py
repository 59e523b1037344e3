"""Texts in the case and the Unicode form that a recipe asks for, in a graph and in Python.

Unicode's normal form C (NFC) writes a letter and its marks as one character where there is one:
`e` and U+0301 become `é`. It leaves protected tokens and the translations of terms as they are:
they are copied byte for byte.
"""

import unicodedata
from typing import TYPE_CHECKING

from pipeline.text import terms
from pipeline.text.character_cut import BREAK, CONTROL, MARKS
from pipeline.text.placeholders.protected_syntax import MARKED, ProtectedSyntax, compiled

if TYPE_CHECKING:
    import tensorflow as tf


def normalize(text: str, lowercase: bool, nfc: bool, syntax: ProtectedSyntax) -> str:
    """Returns a text in lower case, and in form C, if so."""
    if lowercase:
        text = terms.outside_translations(text, str.lower)
    if nfc:
        text = terms.outside_translations(text, lambda part: _compose(part, syntax))
    return text


def _compose(text: str, syntax: ProtectedSyntax) -> str:
    if unicodedata.is_normalized("NFC", text):
        return text
    parts = compiled(f"({MARKED})").split(syntax.mark(compiled(CONTROL).sub(" ", text)))
    return "".join(
        part[1:-1] if number % 2 else unicodedata.normalize("NFC", part)
        for number, part in enumerate(parts)
    )


def normalize_in_graph(
    texts: "tf.Tensor", lowercase: bool, nfc: bool, syntax: ProtectedSyntax
) -> "tf.Tensor":
    """Returns what `normalize` does, of string `[batch]`; control characters become blanks."""
    import tensorflow as tf

    if lowercase or nfc:
        texts = tf.strings.regex_replace(texts, CONTROL, " ")
    if lowercase:
        # ASCII first: with Unicode's rules alone, a machine set to Turkish would map `I` to another
        # letter.
        texts = terms.outside_translations_in_graph(
            texts, lambda text: tf.strings.lower(tf.strings.lower(text), encoding="utf-8")
        )
    if nfc:
        texts = terms.outside_translations_in_graph(
            texts, lambda text: _compose_in_graph(text, syntax)
        )
    return texts


def _compose_in_graph(texts: "tf.Tensor", syntax: ProtectedSyntax) -> "tf.Tensor":
    import tensorflow as tf
    import tensorflow_text as tf_text

    marked = tf.strings.regex_replace(
        syntax.mark_in_graph(texts), f"({MARKED})", rf"{BREAK}\1{BREAK}"
    )
    parts = tf.strings.split(marked, BREAK)
    flat = parts.flat_values
    protected = tf.strings.regex_full_match(flat, MARKED)
    bare = tf.strings.regex_replace(flat, MARKS, "")
    composed = tf.where(protected, bare, tf_text.normalize_utf8(flat, "NFC"))
    return tf.strings.reduce_join(parts.with_flat_values(composed), axis=-1)
