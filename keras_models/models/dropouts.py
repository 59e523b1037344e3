"""Dropout of the encoder-decoder bodies, with rates of its own for words and outputs."""

import keras
from keras import ops

from keras_models.layers.dropout import Dropout


class Dropouts(keras.Model):
    """Base of `WordVectors` that drops units of words' vectors and of the decoder's outputs.

    `Seq2Seq` calls `set_dropouts` with the rates; a body calls `make_dropouts` with its own.
    """

    def set_dropouts(self, embedding_dropout, word_dropout, output_dropout):
        """Keeps the rates. See `Seq2Seq` for the arguments.

        Raises:
            ValueError: a rate that is none.
        """
        self.embedding_dropout = embedding_dropout
        self.word_dropout = word_dropout
        self.output_dropout = output_dropout
        for name in ("embedding_dropout", "word_dropout", "output_dropout"):
            check_rate(name, getattr(self, name))

    def make_dropouts(self, dropout, output_dropout):
        """Makes the layers.

        Args:
            dropout: the body's rate, for what has none of its own.
            output_dropout: the rate of the decoder's outputs, if it has none of its own.
        """
        if self.output_dropout is not None:
            output_dropout = self.output_dropout

        def layer(rate, name):
            return Dropout(rate, dtype=self.dtype_policy, name=name)

        self.drop = layer(dropout, "dropout")
        # None: the same layer as for the rest. Keras would save one layer of two names twice.
        self.embedding_drop = (
            None
            if self.embedding_dropout is None
            else layer(self.embedding_dropout, "embedding_dropout")
        )
        self.output_drop = (
            None if output_dropout == dropout else layer(output_dropout, "output_dropout")
        )
        self.word_seed = keras.random.SeedGenerator() if self.word_dropout else None

    def drop_words(self, embedded, training):
        """Drops whole words of `[batch, length, size]`, in training."""
        if not training or not self.word_dropout:
            return embedded
        ones = ops.ones_like(embedded[:, :, :1])
        return embedded * keras.random.dropout(ones, self.word_dropout, seed=self.word_seed)

    def drop_embedded(self, embedded, training):
        """Drops units of words' vectors, in training."""
        layer = self.drop if self.embedding_drop is None else self.embedding_drop
        return layer(embedded, training=training)

    def drop_outputs(self, outputs, training):
        """Drops units of the decoder's outputs, in training."""
        layer = self.drop if self.output_drop is None else self.output_drop
        return layer(outputs, training=training)


def check_rate(name, rate):
    """Checks a rate of dropout; None stands for another rate.

    Raises:
        ValueError: it is not from 0 to below 1.
    """
    if rate is not None and not 0.0 <= rate < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1; got {rate}.")
