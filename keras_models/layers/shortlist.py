"""The shortlist of decoding: for each source, the few words that the softmax runs over."""

import typing

from keras import ops

from keras_models.layers.gathering import flat_places, take_along


class Shortlist(typing.NamedTuple):
    """A set of N words for each source, and what the softmax needs of them.

    In a decoding with a shortlist all ids are of its own space: 0 to N - 1 are the words of the
    list, N + j is the source's position j. So all that a step does, the search included, is as fast
    as with a vocabulary of N words. `rows` is any multiple of `batch`: the hypotheses of a source
    stand side by side.

    words: int32 `[batch, N]`, ids of the vocabulary, rising; so the special ids keep their places.
    columns: `[batch, N, hidden_size]`, the softmax' weights of these words, each word's side by
    side: so they are gathered whole, and no step
        moves them.
    bias: `[batch, N]`.
    """

    words: typing.Any
    columns: typing.Any
    bias: typing.Any

    @property
    def size(self):
        """N."""
        return self.words.shape[-1]

    def logits(self, hidden):
        """The logits of the words: `hidden [rows, hidden_size]` to `[rows, N]`."""
        rows, units = ops.shape(hidden)
        batch = ops.shape(self.columns)[0]
        grouped = ops.reshape(ops.cast(hidden, self.columns.dtype), (batch, rows // batch, units))
        # The few hypotheses are turned round, twice, rather than the many words.
        logits = ops.transpose(
            ops.matmul(self.columns, ops.transpose(grouped, (0, 2, 1))), (0, 2, 1)
        )
        return ops.reshape(logits + ops.expand_dims(self.bias, 1), (rows, self.size))

    def restore(self, ids, vocabulary_size):
        """Returns the extended ids that ids of the list's space stand for.

        Args:
            ids: int32 `[rows, ...]`.
            vocabulary_size: V.

        Returns:
            Like `ids`.
        """
        batch = ops.shape(self.words)[0]
        shape = ops.shape(ids)
        number = 1
        for length in shape:
            number = number * length
        flat = ops.reshape(ids, (batch, number // batch))
        words = take_along(self.words, ops.minimum(flat, self.size - 1))
        return ops.reshape(
            ops.where(flat < self.size, words, flat - self.size + vocabulary_size), shape
        )


def choose_words(extended_ids, vocabulary_size, size, lexicon_ids=None, lexicon_probabilities=None):
    """Chooses the words that a source's output may need.

    A quarter of them are the most frequent of all; then the words of the source that are words of
    the target, then its translations in the lexicon by their probability, then again the most
    frequent. Ids are by falling frequency.

    Args:
        extended_ids: int `[batch, source_length]`.
        vocabulary_size: V.
        size: N, at most V.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`, target ids of the source
            words' translations and p(translation | word), 0 where there is none; or None.

    Returns:
        int32 `[batch, N]`, distinct ids in rising order.

    References:
        Jean et al. 2014, https://arxiv.org/abs/1412.2007, section 3.2.1; L'Hostis et al. 2016,
        https://arxiv.org/abs/1610.00072
    """
    batch = ops.shape(extended_ids)[0]

    def largest(ids, values):
        """The largest of the values at each word, `[batch, V]`; 0 at most where there is none."""
        ids = ops.reshape(ops.cast(ids, "int32"), (batch, -1))
        known = ids < vocabulary_size
        values = ops.where(known, ops.reshape(ops.cast(values, "float32"), (batch, -1)), 0.0)
        places = flat_places(ops.where(known, ids, 0), vocabulary_size, batch)
        maxima = ops.segment_max(
            ops.reshape(values, (-1,)),
            ops.reshape(places, (-1,)),
            num_segments=batch * vocabulary_size,
        )
        return ops.reshape(maxima, (batch, vocabulary_size))

    # float32 holds whole numbers up to 2^24 exactly: vocabularies stay far below.
    ids = ops.arange(vocabulary_size, dtype="float32")
    priority = ops.expand_dims(-ids, 0)
    if lexicon_ids is not None:
        probabilities = largest(lexicon_ids, lexicon_probabilities)
        priority = ops.where(probabilities > 0, probabilities, priority)
    priority = ops.where(largest(extended_ids, ops.ones_like(extended_ids)) > 0, 2.0, priority)
    priority = ops.where(ids < max(size // 4, 4), 3.0, priority)  # the special ids at least
    return ops.sort(ops.cast(ops.top_k(priority, size)[1], "int32"), axis=-1)


def find(ids, words):
    """Finds ids in a list.

    Args:
        ids: int `[batch, length]`.
        words: int `[batch, N]`, the list.

    Returns:
        Their places, int32, and whether they are in it, both like `ids`.
    """
    same = ops.equal(ops.expand_dims(ops.cast(ids, "int32"), -1), ops.expand_dims(words, 1))
    return ops.cast(ops.argmax(same, axis=-1), "int32"), ops.any(same, axis=-1)
