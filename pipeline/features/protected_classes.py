"""The classes of protected tokens in the graph: placeholders, tags, URLs and options."""

import tensorflow as tf

from pipeline.text import tokenization
from pipeline.text.placeholders import ProtectedSyntax, syntax_of


def protected_class_ids(tokens: tf.Tensor, syntax: ProtectedSyntax | None = None) -> tf.Tensor:
    """Returns the class id of each protected token (`[PLACEHOLDER]`, …), else the id of `[UNK]`.

    Args:
        tokens: strings of any shape.
        syntax: what is protected, by default what recipes protect by default.
    """
    syntax = syntax or syntax_of()
    ids = tf.fill(tf.shape(tokens), tf.constant(tokenization.UNK_ID, tf.int64))
    for name, pattern in reversed(syntax.classes):
        class_id = tf.constant(tokenization.CLASS_TOKENS.index(name), tf.int64)
        ids = tf.where(tf.strings.regex_full_match(tokens, pattern), class_id, ids)
    return ids


def is_protected(tokens: tf.Tensor, syntax: ProtectedSyntax | None = None) -> tf.Tensor:
    """Returns which tokens are placeholders, tags, URLs or options; bool like `tokens`."""
    return tf.not_equal(protected_class_ids(tokens, syntax), tokenization.UNK_ID)
