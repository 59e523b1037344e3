"""Entries picked by index, against NumPy."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from keras_models.layers.gathering import take, take_along


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take(axis):
    tensor = np.random.default_rng(0).normal(size=(3, 4, 5))
    index = np.array([[2, 0], [1, 1], [0, 2]])
    found = take(ops.convert_to_tensor(tensor), ops.convert_to_tensor(index), axis=axis)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), np.take(tensor, index, axis=axis))


@hypothesis.given(
    strategies.lists(strategies.integers(1, 4), min_size=0, max_size=2),
    strategies.integers(1, 5),
    strategies.integers(0, 4),
    strategies.lists(strategies.integers(1, 3), min_size=0, max_size=2),
    strategies.sampled_from(["float64", "int32", "bool"]),
)
@hypothesis.settings(max_examples=40)
def test_take_along(leading, size, number, rest, dtype):
    generator = np.random.default_rng(1)
    tensor = generator.integers(0, 9, size=(*leading, size, *rest)).astype(dtype)
    index = generator.integers(0, size, size=(*leading, number)).astype("int32")
    expected = np.empty((*leading, number, *rest), dtype)
    for place in np.ndindex(*index.shape):
        expected[place] = tensor[(*place[:-1], index[place])]
    found = take_along(ops.convert_to_tensor(tensor), ops.convert_to_tensor(index))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)
