"""Picking entries of each row."""

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
    rows = ops.arange(product(leading), dtype="int32")
    places = ops.expand_dims(rows * size, 1) + (index if axis == 1 else merge_axes(index, axis))

    def pick(tensor):
        picked = ops.take(merge_axes(tensor, axis + 1), places, axis=0)
        for length in reversed(leading[1:]):
            picked = split_axis(picked, length)
        return picked

    return keras.tree.map_structure(pick, tree)
