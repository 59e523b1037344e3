"""The last part of a served model: ids to raw text."""

import tensorflow as tf

from pipeline.export.decoder import Hypotheses
from pipeline.export.long_texts import OF_TEXTS
from pipeline.features.written_ids import IdWriter
from pipeline.recipes.recipe import Recipe
from pipeline.text import terms, tokenization, units

#: The outputs of a signature, by name.
Outputs = dict[str, tf.Tensor]


class AnswerWriter(IdWriter):
    """Writes the answers of a search as strings.

    Args:
        recipe: the `Recipe`.
        vocabulary: string `[V]`, the target's.
    """

    def __init__(self, recipe: Recipe, vocabulary: tf.Tensor) -> None:
        super().__init__(recipe, vocabulary, name="answer_writer")
        self._source_tokenizer = tokenization.Tokenizer.of(recipe.data, "source")

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
        surfaces = self.surfaces(hypotheses["tokens"][:, :, :longest], lengths, copy_tokens)
        copy_probability = hypotheses["copy_probability"][:, :, :longest]
        return {
            "text": self.texts(surfaces, lengths),
            "score": hypotheses["scores"],
            "tokens": terms.written(surfaces),
            "copied_from": tf.where(inside, hypotheses["copied_from"][:, :, :longest], -1),
            "copy_probability": tf.where(inside, copy_probability, 0.0),
            "source_tokens": terms.with_markup(source_tokens),
        }

    def copied_texts(self, source: tf.Tensor, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Returns the texts that pass through: the sources, and the translations of terms.

        Args:
            source: string `[N]`, the texts.
            tokens: ragged string `[N, (tokens)]`, theirs.
        """
        lengths = tokens.row_lengths()
        written = tf.RaggedTensor.from_tensor(terms.written(tokens.to_tensor("")), lengths)
        if self.byte_table:
            joined = units.detokenize(written, self.byte_table)
        else:
            joined = self._source_tokenizer.detokenize(written)
        is_term = tokens.with_flat_values(terms.is_term(tokens.flat_values))
        return tf.where(tf.reduce_any(is_term, axis=1), joined, terms.without_markup(source))


def best(answers: Outputs) -> Outputs:
    """Returns the first of the `n_best` answers of each text."""
    return {name: value if name in OF_TEXTS else value[:, 0] for name, value in answers.items()}
