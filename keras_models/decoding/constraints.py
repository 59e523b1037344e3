"""Which tokens a step may choose."""

import typing

from keras import ops

from keras_models.layers.numerics import LOG_ZERO, log_add

PAD_ID, UNKNOWN_ID, START_ID, END_ID = 0, 1, 2, 3


def constraints(
    extended_size,
    max_length,
    min_length=0,
    allow_unknown=False,
    start_id=START_ID,
    end_id=END_ID,
    unknown_id=UNKNOWN_ID,
):
    """Makes the function that bans tokens from a step's distribution.

    Padding and the start are never output, `[UNK]` only if allowed; before `min_length` tokens nothing ends, after
    `max_length` tokens everything does.

    Args:
        extended_size: number of extended ids; int or scalar tensor.
        max_length, min_length: in tokens without the end; ints or scalar tensors.
        allow_unknown: whether `[UNK]` may be output.

    Returns:
        A function `(log_probs [rows, extended_size], index) -> log_probs`, `LOG_ZERO` where banned.
    """
    ids = ops.arange(extended_size, dtype="int32")
    banned = ops.logical_or(ops.equal(ids, PAD_ID), ops.equal(ids, start_id))
    if not allow_unknown:
        banned = ops.logical_or(banned, ops.equal(ids, unknown_id))
    is_end = ops.equal(ids, end_id)

    def constrain(log_probs, index):
        too_early = ops.logical_and(is_end, index < min_length)
        too_late = ops.logical_and(ops.logical_not(is_end), index >= max_length)
        forbidden = ops.logical_or(banned, ops.logical_or(too_early, too_late))
        return ops.where(forbidden, LOG_ZERO, log_probs)

    return constrain


class Protection(typing.NamedTuple):
    """Source tokens that every output must hold exactly as often as its source does: placeholders, tags, …

    A protected token is never output more often than the source still owes it, and one that the source lacks never at all.
    While tokens are owed no output ends: the probability of ending goes to the owed tokens, in proportion to their own,

        p'(w) = p(w) + p(end) p(w) / sum over owed v of p(v)      for owed w

    so that a model that would have stopped too early adds what is missing instead of rambling on. When only as many tokens
    fit as are owed, they alone are possible. Where the model keeps its tokens of its own accord nothing changes.

    vocabulary: bool `[vocabulary_size]`, which target words are of a protected kind.
    source: bool `[batch, source_length]`, which source tokens are; leave out those that the head cannot output.
    """

    vocabulary: typing.Any
    source: typing.Any

    def forbid(self, log_probs, owed, extended_ids, index, max_length, end_id=END_ID):
        """Applies the guarantee to a step's distribution, after `constraints`.

        Args:
            log_probs: float `[rows, extended_size]`.
            owed: bool `[rows, source_length]`, protected source tokens not yet output.
            extended_ids: int `[rows, source_length]`.
            index: tokens output so far, a scalar.
            max_length: the longest output, a scalar.

        Returns:
            Like `log_probs`.
        """
        rows, size = ops.shape(log_probs)
        repeats = rows // ops.shape(self.source)[0]
        copy_ids = ops.repeat(self.source, repeats, axis=0)
        vocabulary = ops.broadcast_to(ops.expand_dims(self.vocabulary, 0), (rows, ops.shape(self.vocabulary)[0]))
        # Ids V + j stand for the token at position j, so the source's mask is theirs too.
        protected = ops.concatenate([vocabulary, copy_ids], axis=1)
        flat = ops.expand_dims(ops.arange(rows, dtype="int32"), -1) * size + extended_ids
        counts = ops.segment_sum(
            ops.reshape(ops.cast(owed, "int32"), (-1,)), ops.reshape(flat, (-1,)), num_segments=rows * size
        )
        is_owed = ops.reshape(counts, (rows, size)) > 0
        is_end = ops.expand_dims(ops.equal(ops.arange(size, dtype="int32"), end_id), 0)
        number = ops.sum(ops.cast(owed, "int32"), axis=-1, keepdims=True)
        room = max_length - index
        unfinished = ops.logical_and(number > 0, room > 0)

        shares = log_probs - ops.logsumexp(ops.where(is_owed, log_probs, LOG_ZERO), axis=-1, keepdims=True)
        with_end = log_add(log_probs, log_probs[:, end_id : end_id + 1] + shares)
        log_probs = ops.where(ops.logical_and(is_owed, unfinished), with_end, log_probs)

        forbidden = ops.logical_and(protected, ops.logical_not(is_owed))
        forbidden = ops.logical_or(forbidden, ops.logical_and(is_end, unfinished))
        only_owed = ops.logical_and(unfinished, number >= room)
        forbidden = ops.logical_or(forbidden, ops.logical_and(only_owed, ops.logical_not(is_owed)))
        return ops.where(forbidden, LOG_ZERO, log_probs)

    @staticmethod
    def pay(owed, tokens, extended_ids):
        """Returns `owed [rows, source_length]` once `tokens [rows]` are output: one occurrence of each is paid."""
        matches = ops.logical_and(owed, ops.equal(extended_ids, ops.expand_dims(tokens, -1)))
        first = ops.expand_dims(ops.cast(ops.argmax(ops.cast(matches, "int32"), axis=-1), "int32"), -1)
        positions = ops.expand_dims(ops.arange(ops.shape(owed)[1], dtype="int32"), 0)
        return ops.logical_and(owed, ops.logical_not(ops.logical_and(matches, ops.equal(positions, first))))
