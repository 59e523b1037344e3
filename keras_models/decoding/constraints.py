"""Which actions a step may choose."""

import typing

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.layers.numerics import LOG_ZERO, first_places, log_add, take_rows

PAD_ID, UNKNOWN_ID, START_ID, END_ID = 0, 1, 2, 3


def constraints(
    vocabulary_size,
    source_length,
    max_length,
    min_length=0,
    allow_unknown=False,
    max_span=1,
    start_id=START_ID,
    end_id=END_ID,
    unknown_id=UNKNOWN_ID,
):
    """Makes the function that bans actions from a step's distribution.

    Padding and the start are never output, `[UNK]` only if allowed; before `min_length` tokens
    nothing ends, after `max_length` tokens everything does, and no span begins that would be longer
    than what is left.

    Args:
        vocabulary_size, source_length: V and S; ints or scalar tensors.
        max_length, min_length: in tokens without the end; ints or scalar tensors.
        allow_unknown: whether `[UNK]` may be output.
        max_span: L, the longest span.

    Returns:
        A function `(log_probs [rows, V + L * S], index) -> log_probs`, `LOG_ZERO` where banned.
    """
    ids = ops.arange(vocabulary_size + max_span * source_length, dtype="int32")
    lengths = action_space.span_lengths(ids, vocabulary_size, source_length)
    banned = ops.logical_or(ops.equal(ids, PAD_ID), ops.equal(ids, start_id))
    if not allow_unknown:
        banned = ops.logical_or(banned, ops.equal(ids, unknown_id))
    is_end = ops.equal(ids, end_id)

    def constrain(log_probs, index):
        too_early = ops.logical_and(is_end, index < min_length)
        too_late = ops.logical_and(ops.logical_not(is_end), index + lengths > max_length)
        forbidden = ops.logical_or(banned, ops.logical_or(too_early, too_late))
        return ops.where(forbidden, LOG_ZERO, log_probs)

    return constrain


# What an owed token has at least, even if the model rules it out: below anything that a model
# means, above what is banned.
LEAST_LOG_PROB = -1e4


class Protection(typing.NamedTuple):
    """Source tokens that every output must hold exactly as often as its source does.

    Such are placeholders, tags, …

    A protected token is never output more often than the source still owes it, and one that the
    source lacks never at all. While tokens are owed no output ends: the probability of ending goes
    to the actions that pay, in proportion to their own,

        p'(a) = p(a) + p(end) p(a) / sum over paying b of p(b)      for paying a

    so that a model that would have stopped too early adds what is missing instead of rambling on.
    When only as many tokens fit as are owed, only what pays is possible. Where the model keeps its
    tokens of its own accord nothing changes; where it gives all that is owed a probability of 0,
    the owed tokens share that of ending equally.

    Attributes:
        vocabulary: bool `[vocabulary_size]`, which target words are of a protected kind; or
            `[batch, vocabulary_size]`, where each source has words of its own.
        source: bool `[batch, source_length]`, which source tokens are; leave out those that the
            head cannot output.
        max_span: L, the longest span that is one action.
    """

    vocabulary: typing.Any
    source: typing.Any
    max_span: int = 1

    def of(self, sources):
        """The same for some of the sources, int32 `[n]`."""
        shared = len(self.vocabulary.shape) == 1
        vocabulary = self.vocabulary if shared else take_rows(self.vocabulary, sources)
        return self._replace(vocabulary=vocabulary, source=take_rows(self.source, sources))

    def forbid(self, log_probs, owed, extended_ids, index, max_length, end_id=END_ID, places=None):
        """Applies the guarantee to a step's distribution, after `constraints`.

        Args:
            log_probs: float `[rows, V + L * source_length]`, over actions.
            owed: bool `[rows, source_length]`, protected source tokens not yet output.
            extended_ids: int `[rows, source_length]`.
            index: tokens output so far, a scalar.
            max_length: the longest output, a scalar.
            places: what `first_places(extended_ids)` gives, if it is known already.

        Returns:
            Like `log_probs`.
        """
        pays, breaks, lengths, owed_ids = self._consequences(log_probs, owed, extended_ids)
        is_end = ops.expand_dims(
            ops.equal(ops.arange(ops.shape(log_probs)[1], dtype="int32"), end_id), 0
        )
        number = ops.sum(ops.cast(owed, "int32"), axis=-1, keepdims=True)
        room = max_length - index
        unfinished = ops.logical_and(number > 0, room > 0)

        paying = ops.logical_and(pays > 0, ops.logical_not(breaks))
        payments, count = self._payments(log_probs, paying, owed_ids, extended_ids, places)
        log_end = log_probs[:, end_id : end_id + 1]
        # p + p(end) p / sum is p (1 + p(end) / sum): the same for all that pay.
        share = log_end - ops.logsumexp(payments, axis=-1, keepdims=True)
        with_end = log_probs + log_add(share, ops.zeros_like(share))
        # A word that can be said by several ids is said by its own.
        own = ops.pad(
            owed_ids,
            [[0, 0], [0, ops.shape(log_probs)[1] - ops.shape(owed_ids)[1]]],
            constant_values=False,
        )
        ruled_out = ops.max(payments, axis=-1, keepdims=True) <= LEAST_LOG_PROB
        least = ops.maximum(log_end - ops.log(ops.maximum(count, 1.0)), LEAST_LOG_PROB)
        with_end = ops.where(ruled_out, ops.where(own, least, LOG_ZERO), with_end)
        log_probs = ops.where(ops.logical_and(paying, unfinished), with_end, log_probs)

        # What an action outputs without paying must leave room for what is owed.
        wasteful = lengths - pays > ops.maximum(room - number, 0)
        forbidden = ops.logical_or(
            breaks, ops.logical_and(ops.logical_or(is_end, wasteful), unfinished)
        )
        return ops.where(forbidden, LOG_ZERO, log_probs)

    def _payments(self, log_probs, paying, owed_ids, extended_ids, places):
        """The log-probabilities of all actions that pay, among `LOG_ZERO`s.

        Also returns how many ids are owed, float `[rows, 1]`.

        What pays stands in the source: looked up there, it takes no pass over all words.

        Returns:
            float `[rows, source_length + L * source_length]`: of words, at the first position that
            holds them, and of spans.
        """
        ids = ops.cast(extended_ids, "int32")
        places = first_places(ids) if places is None else places
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        is_first = ops.equal(
            places, ops.expand_dims(ops.arange(ops.shape(ids)[1], dtype="int32"), 0)
        )
        is_owed = ops.logical_and(is_first, ops.take_along_axis(owed_ids, ids, axis=1))
        words = ops.take_along_axis(log_probs, ops.minimum(ids, vocabulary_size - 1), axis=1)
        words = ops.where(ops.logical_and(is_owed, ids < vocabulary_size), words, LOG_ZERO)
        spans = ops.where(paying[:, vocabulary_size:], log_probs[:, vocabulary_size:], LOG_ZERO)
        count = ops.sum(ops.cast(is_owed, "float32"), axis=-1, keepdims=True)
        return ops.concatenate([words, spans], axis=1), count

    def _consequences(self, log_probs, owed, extended_ids):
        """What each action does.

        Returns the owed tokens that it pays (int), whether it breaks the promise (bool), and its
        number of tokens (int).

        Each `[rows, actions]`, or `[1, actions]` for the last. And the ids that are owed, bool
        `[rows, V + source_length]`.
        """
        rows = ops.shape(log_probs)[0]
        source_length = ops.shape(owed)[1]
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        vocabulary = self.vocabulary
        if len(vocabulary.shape) == 1:
            vocabulary = ops.expand_dims(vocabulary, 0)
        else:
            vocabulary = ops.repeat(vocabulary, rows // ops.shape(vocabulary)[0], axis=0)
        ids = ops.cast(extended_ids, "int32")
        source = ops.repeat(self.source, rows // ops.shape(self.source)[0], axis=0)
        # Which ids are owed: a surface form's occurrences share one id.
        is_owed = action_space.flagged_ids(owed, ids, vocabulary_size + source_length)
        word_owed = is_owed[:, :vocabulary_size]
        # Position j holds the word extended_ids[j], by whatever id it is copied.
        here_owed = ops.take_along_axis(is_owed, ids, axis=1)
        pays = [ops.cast(word_owed, "int32")]
        breaks = [ops.logical_and(vocabulary, ops.logical_not(word_owed))]
        lengths = [ops.ones((1, vocabulary_size), dtype="int32")]

        paid = ops.zeros((rows, source_length), dtype="int32")
        broken = ops.zeros((rows, source_length), dtype="bool")
        for length in range(1, self.max_span + 1):
            there_owed, there, protected = here_owed, ids, source
            if length > 1:
                there_owed = action_space.shifted(here_owed, length - 1, False)
                there = action_space.shifted(ids, length - 1, 0)
                protected = action_space.shifted(source, length - 1, False)
            bad = ops.logical_and(protected, ops.logical_not(there_owed))
            for before in range(length - 1):
                # The same protected token twice in one span: allow what is owed once no more than
                # once.
                earlier = action_space.shifted(ids, before, 0) if before else ids
                bad = ops.logical_or(bad, ops.logical_and(protected, ops.equal(earlier, there)))
            paid = paid + ops.cast(there_owed, "int32")
            broken = ops.logical_or(broken, bad)
            pays.append(paid)
            breaks.append(broken)
            lengths.append(ops.full((1, source_length), length, dtype="int32"))
        return (*(ops.concatenate(parts, axis=1) for parts in (pays, breaks, lengths)), is_owed)

    @staticmethod
    def pay(owed, tokens, extended_ids, vocabulary_size):
        """Returns `owed [rows, source_length]` after `tokens [rows]` are output.

        One occurrence of each is paid.
        """
        ids = ops.cast(extended_ids, "int32")
        surface = action_space.surfaces(ops.expand_dims(tokens, -1), ids, vocabulary_size)
        matches = ops.logical_and(owed, ops.equal(ids, surface))
        first = ops.expand_dims(
            ops.cast(ops.argmax(ops.cast(matches, "int32"), axis=-1), "int32"), -1
        )
        places = ops.expand_dims(ops.arange(ops.shape(owed)[1], dtype="int32"), 0)
        return ops.logical_and(
            owed, ops.logical_not(ops.logical_and(matches, ops.equal(places, first)))
        )
