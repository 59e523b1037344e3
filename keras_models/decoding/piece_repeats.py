"""Prevents a word from repeating its pieces without end."""

import typing

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.layers.gathering import take_along

#: The longest run of pieces whose repetition is counted.
LONGEST_RUN = 2


class PieceRepeats(typing.NamedTuple):
    """Inside a word no continuing piece, and no pair of them, stands more than N times in a row.

    This is the rule of `no_repeat_ngram_size` and `block_ngram_repeat` of other toolkits, for what
    follows itself at once inside a word alone. A text whose source has a longer repetition inside a
    word is exempt.

    Attributes:
        vocabulary: bool `[V]` or `[batch, V]`, target words that are continuing pieces.
        source: bool `[batch, source_length]`, source tokens that are.
        most: N, an int above 0.
    """

    vocabulary: typing.Any
    source: typing.Any
    most: int

    def map_rows(self, function):
        """The same for other rows, which `function` makes of each tensor."""
        shared = len(self.vocabulary.shape) == 1
        return self._replace(
            vocabulary=self.vocabulary if shared else function(self.vocabulary),
            source=function(self.source),
        )

    def exempt(self, extended_ids):
        """Whether the source repeats more often, bool `[batch]`.

        Args:
            extended_ids: int32 `[batch, source_length]`.
        """
        found = ops.zeros((ops.shape(extended_ids)[0],), dtype="bool")
        for run in range(1, LONGEST_RUN + 1):
            repeats = self.source
            for place in range(run * (self.most + 1)):
                repeats = ops.logical_and(repeats, action_space.shifted(self.source, place, False))
                if place >= run:
                    here = action_space.shifted(extended_ids, place, 0)
                    before = action_space.shifted(extended_ids, place - run, 0)
                    repeats = ops.logical_and(repeats, ops.equal(here, before))
            found = ops.logical_or(found, ops.any(repeats, axis=-1))
        return found

    def repeating_actions(self, tokens, index, extended_ids, exempt, max_span=1):
        """Tells which actions would complete one repetition too many.

        A word is the same generated or copied, and from any position. Of a span the first token is
        looked at: the others stand in the source like this.

        Args:
            tokens: int32 `[rows, max_length]`, extended ids output so far, the first `index` of
                them.
            index: how many these are, a scalar.
            extended_ids: int32 `[rows, source_length]`.
            exempt: bool `[rows]`, what `exempt` returned.
            max_span: L, the longest span that is one action.

        Returns:
            bool `[rows, V + L * source_length]`.
        """
        rows, source_length = ops.shape(extended_ids)
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        said = action_space.surfaces(tokens, extended_ids, vocabulary_size)

        def before(places):
            """int32 `[rows]`: the token said `places` before the next one."""
            return ops.take(said, ops.maximum(index - places, 0), axis=1)

        ids = ops.arange(vocabulary_size + source_length, dtype="int32")
        banned = ops.zeros((rows, 1), dtype="bool")
        for run in range(1, LONGEST_RUN + 1):
            number = run * (self.most + 1) - 1
            repeats = ops.logical_and(index >= number, ops.logical_not(exempt))
            for place in range(1, number - run + 1):
                repeats = ops.logical_and(repeats, ops.equal(before(place), before(place + run)))
            for place in range(1, run + 1):
                repeats = ops.logical_and(repeats, self._is_piece(before(place), vocabulary_size))
            is_next = ops.equal(ids, ops.expand_dims(before(run), -1))
            banned = ops.logical_or(banned, ops.logical_and(is_next, ops.expand_dims(repeats, -1)))
        copies = take_along(banned, extended_ids)
        return ops.concatenate([banned[:, :vocabulary_size]] + [copies] * max_span, axis=1)

    def _is_piece(self, words, vocabulary_size):
        """Whether words, int32 `[rows]`, are continuing pieces."""
        known = ops.minimum(words, vocabulary_size - 1)
        if len(self.vocabulary.shape) == 1:
            in_vocabulary = ops.take(self.vocabulary, known)
        else:
            in_vocabulary = take_along(self.vocabulary, ops.expand_dims(known, -1))[:, 0]
        position = ops.expand_dims(ops.maximum(words - vocabulary_size, 0), -1)
        in_source = take_along(self.source, position)[:, 0]
        return ops.where(words < vocabulary_size, in_vocabulary, in_source)
