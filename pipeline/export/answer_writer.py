"""The last part of a served model: ids to raw text."""

import tensorflow as tf

from pipeline.export.decoder import Hypotheses
from pipeline.recipes.recipe import Recipe
from pipeline.text import tokenization, units
from pipeline.text.keeping_apart import keep_apart

#: The outputs of a signature, by name.
Outputs = dict[str, tf.Tensor]


class AnswerWriter(tf.Module):
    """Writes the answers of a search as strings.

    A text, cut again, holds the protected tokens of its answer and no others.

    Args:
        recipe: the `Recipe`.
        vocabulary: string `[V]`, the target's.
    """

    def __init__(self, recipe: Recipe, vocabulary: tf.Tensor) -> None:
        super().__init__(name="answer_writer")
        self._vocabulary = vocabulary
        self._tokenizer = tokenization.Tokenizer.of(recipe.data)
        self.byte_table = units.byte_table() if recipe.data.units != "words" else None

    def answers(
        self, hypotheses: Hypotheses, source_tokens: tf.Tensor, copy_tokens: tf.Tensor
    ) -> Outputs:
        """Returns the `n_best` answers.

        Args:
            hypotheses: the result of a `Decoder` for N texts.
            source_tokens: string `[N, S]`, the source's tokens that an answer shows.
            copy_tokens: string `[N, S]`, the text that a copy of each source token writes.
        """
        lengths = hypotheses["lengths"]
        longest = tf.reduce_max(lengths)
        inside = tf.range(longest) < lengths[:, :, tf.newaxis]
        surfaces = self._surfaces(hypotheses["tokens"][:, :, :longest], lengths, copy_tokens)
        copy_probability = hypotheses["copy_probability"][:, :, :longest]
        return {
            "text": self._texts(surfaces, lengths),
            "score": hypotheses["scores"],
            "tokens": surfaces,
            "copied_from": tf.where(inside, hypotheses["copied_from"][:, :, :longest], -1),
            "copy_probability": tf.where(inside, copy_probability, 0.0),
            "source_tokens": source_tokens,
        }

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
        return self._texts(self._surfaces(tokens, lengths, copy_tokens), lengths)[:, 0]

    def _surfaces(self, tokens: tf.Tensor, lengths: tf.Tensor, copy_tokens: tf.Tensor) -> tf.Tensor:
        """Returns the strings of extended ids.

        Args:
            tokens: int32 `[N, K, T]`.
            lengths: int32 `[N, K]`.
            copy_tokens: string `[N, S]`.

        Returns:
            String `[N, K, T]`, "" at padding.
        """
        size = tf.size(self._vocabulary)
        known = tf.gather(self._vocabulary, tf.minimum(tokens, size - 1))
        # An additional column, so that a text without tokens fails in its check, not here.
        copy_tokens = tf.pad(copy_tokens, [[0, 0], [0, 1]])
        position = tf.clip_by_value(tokens - size, 0, tf.shape(copy_tokens)[1] - 1)
        surface = tf.where(tokens < size, known, tf.gather(copy_tokens, position, batch_dims=1))
        inside = tf.range(tf.shape(tokens)[2]) < lengths[:, :, tf.newaxis]
        return tf.where(inside, surface, "")

    def _texts(self, surfaces: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(surfaces, [-1, tf.shape(surfaces)[2]])
        ragged = tf.RaggedTensor.from_tensor(flat, lengths=tf.reshape(lengths, [-1]))
        if self.byte_table:
            texts = units.detokenize(ragged, self.byte_table, self._tokenizer)
        else:
            texts = self._tokenizer.detokenize(keep_apart(ragged, self._tokenizer))
        return tf.reshape(texts, tf.shape(lengths))


def best(answers: Outputs) -> Outputs:
    """Returns the first of the `n_best` answers of each text."""
    return {
        name: value if name == "source_tokens" else value[:, 0] for name, value in answers.items()
    }
