"""Entries picked, added up and replaced by index, against NumPy."""

import hypothesis
import numpy as np
from hypothesis import strategies
from keras import ops

from keras_models.layers.gathering import add_along, put_along, take_along


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


@hypothesis.given(
    strategies.integers(1, 4),
    strategies.integers(0, 5),
    strategies.integers(1, 5),
    strategies.sampled_from(["float64", "int32"]),
)
@hypothesis.settings(max_examples=40)
def test_add_along(batch, number, size, dtype):
    generator = np.random.default_rng(1)
    values = generator.integers(-9, 9, size=(batch, number)).astype(dtype)
    index = generator.integers(0, size, size=(batch, number)).astype("int32")
    expected = np.zeros((batch, size), dtype)
    for row, place in np.ndindex(batch, number):
        expected[row, index[row, place]] += values[row, place]
    sums = add_along(ops.convert_to_tensor(values), ops.convert_to_tensor(index), size)
    np.testing.assert_array_equal(ops.convert_to_numpy(sums), expected)


@hypothesis.given(strategies.integers(1, 4), strategies.integers(0, 5), strategies.integers(1, 5))
@hypothesis.settings(max_examples=20)
def test_put_along(batch, number, size):
    generator = np.random.default_rng(1)
    tensor = generator.normal(size=(batch, size)).astype("float32")
    index = generator.integers(0, size, size=(batch, number)).astype("int32")
    # The same for the same place.
    values = 10.0 + index.astype("float32")
    expected = tensor.copy()
    for row, place in np.ndindex(batch, number):
        expected[row, index[row, place]] = values[row, place]
    result = put_along(*(ops.convert_to_tensor(one) for one in (tensor, index, values)))
    np.testing.assert_array_equal(ops.convert_to_numpy(result), expected)
