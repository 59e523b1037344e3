"""Which tokens a step may choose."""

from keras import ops

from keras_models.layers.numerics import LOG_ZERO

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
