"""Replacements that a copy of a source token writes: entities of phrases, translations."""

from collections.abc import Callable

import tensorflow as tf


def phrase_surfaces(
    tokens: tf.RaggedTensor, lookup: Callable[[tf.Tensor], tf.Tensor], longest: int
) -> tf.RaggedTensor:
    """Looks up, at each position, the longest phrase that starts there.

    Args:
        tokens: ragged string `[batch, (length)]`.
        lookup: function from string `[tokens]`, phrases of tokens separated by spaces, to string
            `[tokens]`, "" for none.
        longest: tokens of the longest phrase that is looked up.

    Returns:
        Like `tokens`: the phrase's entity, or the token itself if no phrase starts there.
    """
    flat = tokens.flat_values
    places = tf.range(tf.size(flat, out_type=tf.int64))
    ends = tf.gather(tokens.row_limits(), tokens.value_rowids())
    surfaces, phrases = flat, tf.fill(tf.shape(flat), "")
    for length in range(1, longest + 1):
        last = places + length - 1
        inside = last < ends
        token = tf.gather(flat, tf.where(inside, last, places))
        phrases = token if length == 1 else tf.strings.join([phrases, token], " ")
        # A phrase longer than the rest of the text does not count.
        entities = lookup(tf.where(inside, phrases, ""))
        surfaces = tf.where(entities != "", entities, surfaces)
    return tokens.with_flat_values(surfaces)


def translated_surfaces(
    tokens: tf.RaggedTensor,
    surfaces: tf.RaggedTensor,
    lookup: Callable[[tf.Tensor], tf.Tensor],
    keep: tf.Tensor,
) -> tf.RaggedTensor:
    """Replaces a word by its translation where a copy would write the word.

    Args:
        tokens: ragged string `[batch, (length)]`.
        surfaces: like `tokens`: what a copy would write; if that is not the token, it stays.
        lookup: function from string `[tokens]` to string `[tokens]`, "" for none.
        keep: bool, over the flat values: tokens that are written as they are.

    Returns:
        Like `tokens`.
    """
    translations = lookup(tokens.flat_values)
    translate = (translations != "") & tf.equal(tokens.flat_values, surfaces.flat_values) & ~keep
    return tokens.with_flat_values(tf.where(translate, translations, surfaces.flat_values))
