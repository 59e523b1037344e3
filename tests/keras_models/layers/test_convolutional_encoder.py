import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.layers import ConvolutionalEncoder
from tests.keras_models.backends import numpy, randomize, value_and_gradients
from tests.keras_models.oracles import affine, sigmoids


def make(units=4, size=3, seed=0, **options):
    layer = ConvolutionalEncoder(units, **options)
    layer.build((None, None, size))
    randomize(layer, seed)
    return layer


def oracle(inputs, layer):
    """Gehring 2017, section 3.1 and 3.2, for one sequence without padding."""
    positions, width = numpy(layer.positions.value), layer.kernel_size
    kernel, bias = numpy(layer.embedding_kernel.value), numpy(layer.embedding_bias.value)
    states = [
        affine(x + positions[min(j, layer.max_positions - 1)], kernel, bias)
        for j, x in enumerate(inputs.astype("float64"))
    ]
    for kernel, bias in zip(layer.kernels, layer.biases):
        new = []
        for j in range(len(states)):
            window = []
            for i in range(j - width // 2, j + width // 2 + 1):
                window.extend(states[i] if 0 <= i < len(states) else np.zeros(layer.units))
            both = affine(np.array(window), numpy(kernel.value), numpy(bias.value))
            gated = both[: layer.units] * sigmoids(both[layer.units :])
            new.append((gated + states[j]) * np.sqrt(0.5))
        states = new
    return np.array(states)


# Layers, kernel size, positions with a vector of their own: few, because JAX compiles each anew.
@pytest.mark.parametrize("layers,kernel_size,max_positions", [(0, 1, 50), (1, 5, 2), (2, 3, 50)])
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), length=st.sampled_from([1, 5]))
def test_agrees_with_the_equations_whatever_the_padding(
    layers, kernel_size, max_positions, seed, length
):
    layer = make(layers=layers, kernel_size=kernel_size, max_positions=max_positions, seed=seed)
    rng = np.random.default_rng(seed)
    lengths = [length, int(rng.integers(1, length + 1)), 0]
    # What stands in padding is nobody's business.
    inputs = rng.normal(size=(3, length + 2, 3)).astype("float32")
    mask = np.arange(length + 2) < np.array(lengths)[:, None]
    states = numpy(layer(inputs, source_mask=mask))
    for row, real in enumerate(lengths):
        expected = oracle(inputs[row, :real], layer).reshape(real, layer.units)
        np.testing.assert_allclose(states[row, :real], expected, rtol=1e-5, atol=1e-5)
        assert (states[row, real:] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_gradients_are_finite(dtype):
    layer = make(layers=2, dtype=dtype)
    inputs, mask = np.ones((2, 4, 3), "float32"), np.array([[True] * 4, [False] * 4])

    def loss(inputs):
        return keras.ops.sum(keras.ops.cast(layer(inputs, source_mask=mask), "float32") ** 2)

    value, gradients = value_and_gradients(loss, [inputs], layer)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert all(np.abs(gradient).sum() > 0 for gradient in gradients)
    assert (gradients[0][1] == 0).all()


def test_dropout_is_for_training_alone():
    layer = make(layers=2, dropout=0.5)
    inputs, mask = np.ones((2, 4, 3), "float32"), np.ones((2, 4), "bool")
    still = numpy(layer(inputs, source_mask=mask))
    np.testing.assert_array_equal(still, numpy(layer(inputs, source_mask=mask)))
    assert not np.array_equal(still, numpy(layer(inputs, source_mask=mask, training=True)))


def test_comes_back_from_its_config():
    layer = make(layers=2, kernel_size=5, dropout=0.1, max_positions=9)
    again = ConvolutionalEncoder.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert (again.units, again.layers, again.kernel_size, again.dropout, again.max_positions) == (
        4,
        2,
        5,
        0.1,
        9,
    )


def test_an_even_kernel_is_refused():
    with pytest.raises(
        ValueError, match="kernel_size must be odd, as many words on either side; got 4"
    ):
        ConvolutionalEncoder(4, kernel_size=4)
