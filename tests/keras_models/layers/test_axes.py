"""Axes merged and split, against NumPy."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from keras_models.layers.axes import merge_axes, split_axis
from tests.keras_models.backends import TENSORFLOW

SIZES = strategies.lists(strategies.integers(0, 3), min_size=1, max_size=4)


@hypothesis.given(SIZES, strategies.data())
@hypothesis.settings(max_examples=40)
def test_merging_and_splitting(sizes, data):
    number = data.draw(strategies.integers(1, len(sizes)))
    tensor = np.arange(np.prod(sizes)).reshape(sizes)
    merged = merge_axes(ops.convert_to_tensor(tensor), number)
    expected = tensor.reshape(np.prod(sizes[:number]), *sizes[number:])
    np.testing.assert_array_equal(ops.convert_to_numpy(merged), expected)
    if number == 2 and sizes[1]:
        again = split_axis(merged, sizes[1])
        np.testing.assert_array_equal(ops.convert_to_numpy(again), tensor)


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow traces unknown sizes")
@pytest.mark.parametrize("sizes", [(2, 3, 4), (0, 3, 4), (2, 3, 0), (0, 3, 0)])
@pytest.mark.parametrize("unknown", [(0,), (2,), (0, 2), (0, 1, 2)])
def test_sizes_unknown_when_a_graph_is_made(sizes, unknown):
    import tensorflow as tf

    known = [None if axis in unknown else size for axis, size in enumerate(sizes)]

    @tf.function(input_signature=[tf.TensorSpec(known, tf.int64)], autograph=False)
    def there_and_back(tensor):
        merged = merge_axes(tensor, 2)
        return merged, split_axis(merged, sizes[1])

    tensor = np.arange(np.prod(sizes)).reshape(sizes)
    merged, again = there_and_back(tf.constant(tensor))
    np.testing.assert_array_equal(merged, tensor.reshape(sizes[0] * sizes[1], sizes[2]))
    np.testing.assert_array_equal(again, tensor)
