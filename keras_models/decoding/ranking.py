"""The best of many actions."""

import math

from keras import ops

from keras_models.layers.gathering import take_along

# The size of a block, and the number of actions below which blocks cost more than they save.
BLOCK, FEW = 16, 1024


def top_k(values, k, at_least=0):
    """`ops.top_k` of many values: the same values and indices, found block by block.

    The k best are in the k blocks with the largest maxima, because the best of any other block is
    below the best of each of these. So one pass over all values finds the maxima, and only a few
    values are ranked; ranking all of them takes several times as long. Of equal values the first
    are taken, of equal blocks too, as `ops.top_k` does; blocks are ranked in their own order again,
    so that this holds between them.

    Args:
        values: float `[..., number]`.
        k: how many.
        at_least: a lower bound of `number`, if its shape does not tell it.

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
    candidates = take_along(blocks, chosen)
    best, indices = ops.top_k(ops.reshape(candidates, (*leading, k * BLOCK)), k)
    indices = ops.cast(indices, "int32")
    return best, take_along(chosen, indices // BLOCK) * BLOCK + indices % BLOCK
