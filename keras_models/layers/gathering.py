"""Entries of each row: picked, added up and replaced by index."""

import keras
from keras import ops

from keras_models.layers.axes import merge_axes, product, split_axis


def take_along(tree, index):
    """Picks entries of each row's own axis, the last one of the index.

        result[b, ..., i, j, ...] = tensor[b, ..., index[b, ..., i], j, ...]

    `ops.take_along_axis` also accepts negative indices, and axes of size 1 for any other. For this
    it adds some forty operations to TensorFlow's graph. A search calls it many times a step, and
    every compiled program of an exported model keeps all of its operations in memory.

    Args:
        tree: a tensor `[batch, ..., size, ...]`, or a nest of tensors with the same first axes.
        index: int `[batch, ..., number]`; its leading axes are those of a tensor, its values in
            `0..size - 1`.

    Returns:
        `[batch, ..., number, ...]`, in the nest's structure.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers.gathering import take_along
    >>> np.array(take_along(np.array([[5, 6], [7, 8]]), np.array([[1, 1], [0, 1]]))).tolist()
    [[6, 6], [7, 8]]
    """
    axis = len(index.shape) - 1
    if axis == 0:
        return keras.tree.map_structure(lambda tensor: ops.take(tensor, index, axis=0), tree)
    # Asked for once: TensorFlow's graph keeps some operations for each unknown size.
    *leading, size = ops.shape(keras.tree.flatten(tree)[0])[: axis + 1]
    index = ops.cast(index, "int32")
    places = flat_places(index if axis == 1 else merge_axes(index, axis), size, product(leading))

    def pick(tensor):
        picked = ops.take(merge_axes(tensor, axis + 1), places, axis=0)
        for length in reversed(leading[1:]):
            picked = split_axis(picked, length)
        return picked

    return keras.tree.map_structure(pick, tree)


def add_along(values, index, size):
    """Adds up the values of each row that have the same index: the inverse of `take_along`.

        result[b, i] = sum over j with index[b, j] = i of values[b, j]

    Args:
        values: `[batch, number]`.
        index: int `[batch, number]`, in `0..size - 1`.
        size: an int or a scalar tensor.

    Returns:
        `[batch, size]`, 0 where no value is.
    """
    batch = ops.shape(index)[0]
    sums = ops.segment_sum(
        ops.reshape(values, (-1,)),
        ops.reshape(flat_places(index, size, batch), (-1,)),
        num_segments=batch * size,
    )
    return ops.reshape(sums, (batch, size))


def put_along(tensor, index, values):
    """Replaces entries of each row.

        result[b, index[b, j]] = values[b, j], and tensor[b, i] elsewhere

    Args:
        tensor: `[batch, size]`.
        index: int32 `[batch, number]`, in `0..size - 1`. Where it has a place several times, the
            values for it must be equal.
        values: `[batch, number]`.

    Returns:
        `[batch, size]`.
    """
    shape = ops.shape(index)
    rows = ops.broadcast_to(ops.expand_dims(ops.arange(shape[0], dtype="int32"), 1), shape)
    places = ops.reshape(ops.stack([rows, index], axis=-1), (-1, 2))
    return ops.scatter_update(tensor, places, ops.reshape(values, (-1,)))


def flat_places(index, size, batch=None):
    """Where an index of each row is once the rows stand one after another.

    Args:
        index: int `[batch, number]`, in `0..size - 1`.
        size: the length of a row, an int or a scalar tensor.
        batch: the number of rows, if the caller has it already.

    Returns:
        int32 `[batch, number]`, in `0..batch * size - 1`.
    """
    rows = ops.arange(ops.shape(index)[0] if batch is None else batch, dtype="int32")
    return ops.expand_dims(rows * size, 1) + ops.cast(index, "int32")
