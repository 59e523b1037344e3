"""Axes merged into one, and split again.

A graph keeps each operation that computes a size: where a reshape can infer the only one that is
unknown, none is computed. Static sizes are multiplied out, so that they stay static and loop shapes
hold.
"""

import math

from keras import ops


def merge_axes(tensor, number):
    """Makes one axis of the first `number` axes of a tensor."""
    leading, rest = tensor.shape[:number], tensor.shape[number:]
    if _inferable(rest):
        return ops.reshape(tensor, (-1 if None in leading else math.prod(leading), *rest))
    sizes = ops.shape(tensor)
    return ops.reshape(tensor, (product(sizes[:number]), *sizes[number:]))


def split_axis(tensor, size):
    """Makes two axes, `[n, size, ...]`, of the first one of a tensor, `[n * size, ...]`."""
    rows, *rest = tensor.shape
    if _inferable(rest) and isinstance(size, int):
        return ops.reshape(tensor, (-1 if rows is None else rows // size, size, *rest))
    rows, *rest = ops.shape(tensor)
    return ops.reshape(tensor, (rows // size, size, *rest))


def product(sizes):
    """Returns the product of sizes, which are ints or scalar tensors."""
    result = 1
    for size in sizes:
        result = result * size
    return result


def _inferable(rest):
    """Whether a reshape finds out an axis before others of these sizes."""
    return None not in rest and 0 not in rest
