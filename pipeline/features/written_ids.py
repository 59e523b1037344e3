"""Ids that a search found, written as text."""

import tensorflow as tf

from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DecodingConfig
from pipeline.text import preset_units, terms, tokenization, units
from pipeline.text.keeping_apart import keep_apart


def longest_output(source_length: tf.Tensor, config: DecodingConfig) -> tf.Tensor:
    """Returns the longest output, in tokens, of a source padded to `source_length`.

    It is factor * length + offset.
    """
    scaled = tf.cast(tf.cast(source_length, tf.float32) * config.max_length_factor, tf.int32)
    return scaled + config.max_length_offset


class IdWriter(tf.Module):
    """Writes extended ids as text.

    A text, cut again, holds the protected tokens of its ids and no others.

    Args:
        recipe: the `Recipe`.
        vocabulary: string `[V]`, the target's.
        name: TensorFlow's name of it.

    Attributes:
        vocabulary: the same.
    """

    def __init__(self, recipe: Recipe, vocabulary: tf.Tensor, name: str = "id_writer") -> None:
        super().__init__(name=name)
        self.vocabulary = vocabulary
        self._tokenizer = tokenization.Tokenizer.of(recipe.data)
        self._has_marks = recipe.data.units == "preset"
        self.byte_table = units.byte_table() if recipe.data.units != "words" else None

    def texts_of(self, tokens: tf.Tensor, lengths: tf.Tensor, copy_tokens: tf.Tensor) -> tf.Tensor:
        """Returns the texts of extended ids.

        Args:
            tokens: int32 `[N, T]`.
            lengths: int32 `[N]`.
            copy_tokens: string `[N, S]`, the text that a copy of each source token writes.

        Returns:
            String `[N]`.
        """
        tokens, lengths = tokens[:, tf.newaxis], lengths[:, tf.newaxis]
        return self.texts(self.surfaces(tokens, lengths, copy_tokens), lengths)[:, 0]

    def surfaces(self, tokens: tf.Tensor, lengths: tf.Tensor, copy_tokens: tf.Tensor) -> tf.Tensor:
        """Returns the strings of extended ids.

        Args:
            tokens: int32 `[N, K, T]`.
            lengths: int32 `[N, K]`.
            copy_tokens: string `[N, S]`.

        Returns:
            String `[N, K, T]`, "" at padding.
        """
        size = tf.size(self.vocabulary)
        known = tf.gather(self.vocabulary, tf.minimum(tokens, size - 1))
        # An additional column, so that a text without tokens fails in its check, not here.
        copy_tokens = tf.pad(copy_tokens, [[0, 0], [0, 1]])
        position = tf.clip_by_value(tokens - size, 0, tf.shape(copy_tokens)[1] - 1)
        surface = tf.where(tokens < size, known, tf.gather(copy_tokens, position, batch_dims=1))
        inside = tf.range(tf.shape(tokens)[2]) < lengths[:, :, tf.newaxis]
        return tf.where(inside, surface, "")

    def texts(self, surfaces: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Returns the texts of what `surfaces` returned, string `[N, K]`; terms are written."""
        shape = [-1, tf.shape(surfaces)[2]]
        lengths_of_rows = tf.reshape(lengths, [-1])

        def ragged(values: tf.Tensor) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_tensor(tf.reshape(values, shape), lengths=lengths_of_rows)

        tokens = ragged(terms.written(surfaces))
        fixed = ragged(terms.is_term(surfaces)).flat_values
        if self._has_marks:
            fixed = tf.boolean_mask(fixed, tokens.flat_values != preset_units.MARK)
            tokens = preset_units.drop_marks(tokens)
        if self.byte_table:
            texts = units.detokenize(tokens, self.byte_table, self._tokenizer, fixed)
        else:
            texts = self._tokenizer.detokenize(keep_apart(tokens, self._tokenizer, fixed))
        return tf.reshape(texts, tf.shape(lengths))
