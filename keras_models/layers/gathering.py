"""Picking entries of each row."""

from keras import ops


def take_along(tensor, index):
    """Picks entries of each row's own axis, the last one of the index.

        result[b, ..., i, j, ...] = tensor[b, ..., index[b, ..., i], j, ...]

    `ops.take_along_axis` also accepts negative indices, and axes of size 1 for any other. For this
    it adds some forty operations to TensorFlow's graph. A search calls it many times a step, and
    every compiled program of an exported model keeps all of its operations in memory.

    Args:
        tensor: `[batch, ..., size, ...]`.
        index: int `[batch, ..., number]`; its leading axes are those of `tensor`, its values in
            `0..size - 1`.

    Returns:
        `[batch, ..., number, ...]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers.gathering import take_along
    >>> np.array(take_along(np.array([[5, 6], [7, 8]]), np.array([[1, 1], [0, 1]]))).tolist()
    [[6, 6], [7, 8]]
    """
    axis = len(index.shape) - 1
    if axis == 0:
        return ops.take(tensor, index, axis=0)
    # Asked for once: TensorFlow's graph keeps some operations for each unknown size.
    sizes = ops.shape(tensor)
    leading, size, rest = sizes[:axis], sizes[axis], sizes[axis + 1 :]
    rows = leading[0]
    for length in leading[1:]:
        rows = rows * length
    index = ops.cast(index, "int32")
    if axis > 1:
        number = ops.shape(index)[-1]
        index = ops.reshape(index, (rows, number))
    first = ops.expand_dims(ops.arange(rows, dtype="int32") * size, 1)
    picked = ops.take(ops.reshape(tensor, (rows * size, *rest)), first + index, axis=0)
    return ops.reshape(picked, (*leading, number, *rest)) if axis > 1 else picked
