"""Picking entries of tensors by index.

`keras.ops.take` and `take_along_axis` accept negative indices and axes of size 1 for any other, for
which they add dozens of operations to TensorFlow's graph. A search calls them many times a step,
and every compiled program of an exported model keeps all of its operations in memory.
"""

import keras
from keras import ops


def take(tensor, index, axis=0):
    """Picks entries of one axis, the same ones everywhere.

        result[i, ..., j, ...] = tensor[index[i, ...], j, ...]

    Args:
        tensor: `[size, ...]`, or with `size` at `axis`.
        index: int, any shape; values in `0..size - 1`.
        axis: from 0.

    Returns:
        Like `tensor`, with the axes of the index in the place of `axis`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers.gathering import take
    >>> np.array(take(np.array([5, 6, 7]), np.array([[2], [0]]))).tolist()
    [[7], [5]]
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(tensor, index, axis=axis)
    return ops.take(tensor, index, axis=axis)


def take_along(tensor, index):
    """Picks entries of each row's own axis, the last one of the index.

        result[b, ..., i, j, ...] = tensor[b, ..., index[b, ..., i], j, ...]

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
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(tensor, index, axis=axis, batch_dims=axis)
    for _ in range(len(tensor.shape) - len(index.shape)):
        index = ops.expand_dims(index, -1)
    return ops.take_along_axis(tensor, index, axis=axis)
