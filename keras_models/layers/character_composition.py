"""A word's vector composed of its characters (Arthur 2018, chapter 4)."""

import keras
from keras import ops

from keras_models import hashing
from keras_models.layers.axes import product
from keras_models.layers.numerics import rowwise
from keras_models.layers.recurrent import LSTM, bidirectional

DEFAULT_BUCKETS = 50_021  # a prime
# The characters of an average word in running text; the first vectors are scaled by it.
_TYPICAL_LENGTH = 6


def ngram_buckets(characters, length, buckets):
    """Buckets of the n-grams of words.

    The n-gram (x_1, ..., x_n) is in the bucket h_n + 1, with h_0 = n and h_k = (1009 h_{k-1} + x_k)
    mod buckets.

    Args:
        characters: int32 `[..., word_length]`, ids, 0 behind the word.
        length: n.
        buckets: how many there are, at most 2,000,000.

    Returns:
        int32 `[..., word_length - n + 1]`, 0 where an n-gram would reach beyond the word.
    """
    places = characters.shape[-1] - length + 1
    value = ops.full_like(characters[..., :places], length)
    inside = ops.ones_like(value, dtype="bool")
    for offset in range(length):
        here = characters[..., offset : offset + places]
        value = hashing.extend(value, here, buckets)
        inside = ops.logical_and(inside, here > 0)
    return ops.where(inside, value + 1, 0)


@keras.saving.register_keras_serializable("verbatim")
class CharacterComposition(keras.layers.Layer):
    """Composes a word's vector of its characters, for words that training never saw too.

    With the embedded characters f_1 .. f_n of a word:

        sum:      sum_k f_k                                                        (eq. 4.5)
        average:  sum_k f_k / n                                                    (eq. 4.6)
        max:      max_k f_k, for each dimension                                    (eq. 4.7)
        bilstm:   tanh(W [forward_n; backward_1] + b)                              (eq. 4.8)
        cnn:      max_j (tanh(sum_{l < window} W_l f_{j+l}) + b)                   (eq. 4.9)
        ngram:    tanh(W c + b)                                                    (eq. 4.10)

    For the convolution zeros follow the word; c are the counts of its n-grams of 1 to `ngram`
    characters.

    Before training, the vector of a word of six characters has a variance near 1, or what tanh
    leaves of it, like that of a looked-up word. So neither dominates their sum, and later kernels
    get enough signal (see `layers/embeddings.py`).

    The thesis numbers the n-grams of the training text; here each falls into one of `buckets`
    (Bojanowski et al. 2017), so that no table of them is needed and those of unseen words count
    too.

    Args:
        function: `"sum"`, `"average"`, `"max"`, `"bilstm"`, `"cnn"` or `"ngram"`.
        characters: number of character ids, id 0 padding.
        units: size of the vectors, and of the characters' embeddings; even for `"bilstm"`.
        window: width of the convolution.
        ngram: longest n-gram.
        buckets: of n-grams.

    Call arguments:
        characters: int `[..., word_length]`, ids, 0 behind the word; the last axis has a static
            size.

    Returns:
        `[..., units]`; of a word without characters 0 for sum, average and max, else the value of
        the bias.

    Raises:
        ValueError: an unknown function, or sizes that do not fit it.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import CharacterComposition
    >>> compose = CharacterComposition("average", characters=30, units=8)
    >>> tuple(compose(np.array([[[5, 6, 0, 0], [7, 8, 9, 4]]])).shape)
    (1, 2, 8)

    References:
        Arthur 2018, "Learning Lexical Representations for Neural Machine Translation", section 4.5;
        Bojanowski, Grave, Joulin, Mikolov 2017, "Enriching Word Vectors with Subword Information",
        https://arxiv.org/abs/1607.04606
    """

    FUNCTIONS = ("sum", "average", "max", "bilstm", "cnn", "ngram")

    def __init__(
        self, function, characters, units, window=4, ngram=4, buckets=DEFAULT_BUCKETS, **kwargs
    ):
        super().__init__(**kwargs)
        if function not in self.FUNCTIONS:
            raise ValueError(
                f"function must be one of {', '.join(self.FUNCTIONS)}; got {function!r}."
            )
        if function == "bilstm" and units % 2:
            raise ValueError(
                f"units must be even for 'bilstm', one half for each direction; got {units}."
            )
        if not 1 <= buckets <= hashing.MOST_BUCKETS:
            raise ValueError(f"buckets must be between 1 and 2,000,000; got {buckets}.")
        self.function = function
        self.characters = characters
        self.units = units
        self.window = window
        self.ngram = ngram
        self.buckets = buckets
        self.lstm = None
        if function == "bilstm":
            cell = LSTM(units // 2, dtype=self.dtype_policy)
            self.lstm = bidirectional(cell, dtype=self.dtype_policy, name="lstm")

    def build(self, characters_shape=None):
        rows = self.buckets + 1 if self.function == "ngram" else self.characters
        initializer = keras.initializers.RandomNormal(stddev=self._stddev())
        self.embeddings = self.add_weight(
            shape=(rows, self.units), initializer=initializer, name="embeddings"
        )
        if self.lstm is not None:
            self.lstm.build((None, None, self.units))
        taps = {"bilstm": 1, "cnn": self.window}.get(self.function, 0)
        if taps:
            self.kernel = self.add_weight(shape=(taps * self.units, self.units), name="kernel")
        if taps or self.function == "ngram":
            self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def _stddev(self):
        """The deviation of the embeddings by which a composed vector has a variance near 1."""
        if self.function == "average":
            return _TYPICAL_LENGTH**0.5
        summed = {
            "sum": _TYPICAL_LENGTH,
            "ngram": sum(max(_TYPICAL_LENGTH - n, 0) for n in range(self.ngram)),
        }
        return summed.get(self.function, 1) ** -0.5

    def call(self, characters):
        characters = ops.cast(characters, "int32")
        if self.function == "ngram":
            return self._ngrams(characters)
        real = ops.expand_dims(characters > 0, -1)
        embedded = ops.cast(ops.take(self.embeddings, characters, axis=0), self.compute_dtype)
        embedded = ops.where(real, embedded, ops.zeros_like(embedded))
        if self.function in ("sum", "average"):
            total = ops.sum(embedded, axis=-2)
            if self.function == "sum":
                return total
            return total / ops.maximum(ops.sum(ops.cast(real, total.dtype), axis=-2), 1)
        if self.function == "max":
            return self._largest(embedded, real)
        if self.function == "cnn":
            return self._convolve(embedded, real)
        *leading, length, units = ops.shape(embedded)
        rows = product(leading)
        last = self.lstm(
            ops.reshape(embedded, (rows, length, units)),
            mask=ops.reshape(characters > 0, (rows, length)),
        )
        last = ops.tanh(
            ops.matmul(last, ops.cast(self.kernel, last.dtype)) + ops.cast(self.bias, last.dtype)
        )
        return ops.reshape(last, (*leading, self.units))

    def _largest(self, values, real):
        """The largest value of each dimension over a word's places, 0 for a word without any."""
        # Far below any value, in float16 and bfloat16 too.
        largest = ops.max(ops.where(real, values, -1e4), axis=-2)
        return ops.where(ops.any(real, axis=-2), largest, ops.zeros_like(largest))

    def _convolve(self, embedded, real):
        length = embedded.shape[-2]
        behind = [[0, 0]] * (len(embedded.shape) - 2) + [[0, self.window - 1], [0, 0]]
        padded = ops.pad(embedded, behind)
        windows = ops.concatenate(
            [padded[..., tap : tap + length, :] for tap in range(self.window)], axis=-1
        )
        kernel = ops.cast(self.kernel, embedded.dtype)
        values = ops.tanh(rowwise(lambda rows: ops.matmul(rows, kernel), windows))
        return self._largest(values + ops.cast(self.bias, values.dtype), real)

    def _ngrams(self, characters):
        total = ops.cast(self.bias, self.compute_dtype)
        for length in range(1, min(self.ngram, characters.shape[-1]) + 1):
            ids = ngram_buckets(characters, length, self.buckets)
            embedded = ops.cast(ops.take(self.embeddings, ids, axis=0), self.compute_dtype)
            counted = ops.cast(ops.expand_dims(ids > 0, -1), embedded.dtype)
            total = total + ops.sum(embedded * counted, axis=-2)
        return ops.tanh(total)

    def compute_output_shape(self, characters_shape):
        return (*characters_shape[:-1], self.units)

    def get_config(self):
        config = super().get_config()
        config.update(
            function=self.function,
            characters=self.characters,
            units=self.units,
            window=self.window,
            ngram=self.ngram,
            buckets=self.buckets,
        )
        return config
