"""The best of many actions."""

import math

from keras import ops

# Actions that are looked at as one, and so few actions that this costs more than it saves.
BLOCK, FEW = 16, 1024


def top_k(values, k, at_least=0):
    """`ops.top_k` of many values: the same values and indices, found block by block.

    The k best lie in the k blocks with the largest maxima, because the best of any other block
    stands behind the best of each of these. So all values are passed over once, for the maxima, and
    what is ranked is few: a selection that ranks them one by one takes some times as long. Of equal
    values the first are taken, of equal blocks too, as `ops.top_k` does; blocks are ranked in their
    own order again, so that this holds between them.

    Args:
        values: float `[..., number]`.
        k: how many.
        at_least: what is known of `number` where its shape does not say it.

    Returns:
        values `[..., k]` and indices int32 `[..., k]`, the best first.
    """
    *leading, number = ops.shape(values)
    if (number if isinstance(number, int) else at_least) < max(FEW, BLOCK * k):
        best, indices = ops.top_k(values, k)
        return best, ops.cast(indices, "int32")
    missing = (BLOCK - number % BLOCK) % BLOCK
    # Below whatever an impossible value adds up to, so that no index is beyond the last.
    padded = ops.pad(values, [[0, 0]] * len(leading) + [[0, missing]], constant_values=-math.inf)
    blocks = ops.reshape(padded, (*leading, (number + missing) // BLOCK, BLOCK))
    _, chosen = ops.top_k(ops.max(blocks, axis=-1), k)
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    candidates = ops.take_along_axis(blocks, ops.expand_dims(chosen, -1), axis=-2)
    best, indices = ops.top_k(ops.reshape(candidates, (*leading, k * BLOCK)), k)
    indices = ops.cast(indices, "int32")
    return best, ops.take_along_axis(chosen, indices // BLOCK, axis=-1) * BLOCK + indices % BLOCK
