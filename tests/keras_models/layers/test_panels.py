"""Products by panels, against NumPy: whatever the sizes, the numbers are those of the product."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from keras_models.layers import VocabularySoftmax, panels


@pytest.fixture
def smallest(monkeypatch):
    """Panels of kernels however small."""
    monkeypatch.setattr(panels, "SMALLEST", 0)


def _matrix(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


@hypothesis.given(strategies.integers(1, 5), strategies.integers(1, 700))
@hypothesis.settings(max_examples=30)
def test_the_parts_are_the_columns(size, units):
    kernel = _matrix(size, units)
    parts = [ops.convert_to_numpy(part) for part in panels.lay_out(kernel)]
    assert len(parts) <= panels.PARTS + 1
    assert all(part.shape[2] == panels.WIDTH for part in parts[:-1])
    columns = [part.transpose(1, 0, 2).reshape(size, -1) for part in parts]
    np.testing.assert_array_equal(np.concatenate(columns, axis=1), kernel)


@pytest.mark.parametrize("rows", [1, 2, 5, 20, 21])
@pytest.mark.parametrize("units", [3, 64, 300])
def test_a_product_is_that_of_the_kernel(rows, units, smallest):
    kernel, inputs = _matrix(7, units), _matrix(rows, 7)
    kernels = [(kernel, kernel)]
    tables = panels.tables_of(kernels, "float32")
    # Numbers of its own, so that it shows which of the two is read.
    doubled = {name: 2 * table for name, table in tables.items()}
    with panels.in_use(kernels, doubled):
        results = ops.convert_to_numpy(panels.product(ops.convert_to_tensor(inputs), kernel))
    factor = 2 if 2 <= rows <= 20 else 1
    np.testing.assert_allclose(results, factor * (inputs @ kernel), rtol=1e-5, atol=1e-5)


def test_another_kernel_has_no_panels(smallest):
    kernel, other, inputs = _matrix(7, 70), _matrix(7, 60), _matrix(3, 7)
    kernels = [(kernel, kernel)]
    with panels.in_use(kernels, panels.tables_of(kernels, "float32")):
        results = ops.convert_to_numpy(panels.product(ops.convert_to_tensor(inputs), other))
    np.testing.assert_allclose(results, inputs @ other, rtol=1e-5, atol=1e-5)
    with panels.in_use([], {}):
        results = ops.convert_to_numpy(panels.product(ops.convert_to_tensor(inputs), kernel))
    np.testing.assert_allclose(results, inputs @ kernel, rtol=1e-5, atol=1e-5)


def test_small_kernels_have_none():
    large, small = _matrix(256, 256), _matrix(256, 255)
    names = panels.tables_of([(small, small), (large, large)], "float32")
    assert sorted(names) == [f"panels_1_{place}" for place in range(panels.PARTS)]


@pytest.mark.parametrize("size", [None, 6, 9])
def test_a_softmax_tied_or_not(size, smallest):
    import keras

    layer = VocabularySoftmax(70)
    if size is not None:
        embedding = keras.layers.Embedding(70, size)
        embedding.build(None)
        layer.tie(embedding)
    layer.build((None, 6))
    layer.bias.assign(_matrix(70))
    kernels = [layer.step_kernel()]
    hidden = ops.convert_to_tensor(_matrix(3, 6))
    expected = ops.convert_to_numpy(layer.logits(hidden))
    tables = panels.tables_of(kernels, "float32")
    with panels.in_use(kernels, tables):
        results = ops.convert_to_numpy(layer.logits(hidden))
    np.testing.assert_allclose(results, expected, rtol=1e-5, atol=1e-5)
    with panels.in_use(kernels, {name: 0 * table for name, table in tables.items()}):
        results = ops.convert_to_numpy(layer.logits(hidden))
    np.testing.assert_allclose(results, np.tile(_matrix(70), (3, 1)), rtol=1e-5)
