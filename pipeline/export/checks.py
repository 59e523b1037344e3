"""Assertions of a served graph that fail with one sentence.

A server answers INVALID_ARGUMENT with it. There are no conditions in the graph, so that signatures
need no AutoGraph, whose conversion takes longer than tracing.
"""

import tensorflow as tf


def check(condition: tf.Tensor, sentence: str, *values: tf.Tensor) -> None:
    """Asserts a condition; the values replace `{}` in the sentence."""
    tf.debugging.Assert(condition, [tf.strings.format(sentence, values)], summarize=1)


def with_last(values: tf.Tensor, last: int) -> tf.Tensor:
    """Returns a vector with one more element, so that it is never empty."""
    return tf.concat([values, tf.constant([last], values.dtype)], axis=0)


def check_lengths(name: str, unit: str, lengths: tf.Tensor, longest: int, note: str = "") -> None:
    """Asserts that there are texts, that each has tokens, and that none has too many.

    Args:
        name, unit: the names of a text and its tokens, such as `"source text"` and `"token"`.
        lengths: int64 `[N]`, tokens of each text.
        longest: the most tokens that a text may have.
        note: the text after the number of tokens in the sentence.
    """
    check(tf.size(lengths) > 0, f"Give at least one {name}.")
    lengths = with_last(lengths, 1)
    shortest_at, longest_at = tf.argmin(lengths), tf.argmax(lengths)
    check(
        lengths[shortest_at] > 0, f"The {name} {{}} is empty; give at least one word.", shortest_at
    )
    sentence = f"The {name} {{}} has {{}} {unit}s{note}; this model takes at most {longest}."
    check(lengths[longest_at] <= longest, sentence, longest_at, lengths[longest_at])
