import keras
import numpy as np
import pytest

from keras_models.layers import NoisyTanh
from keras_models.layers.activations import make_activation, maxout
from tests.keras_models import recurrent_oracles
from tests.keras_models.backends import numpy, randomize, value_and_gradients

X = np.random.default_rng(0).normal(scale=3.0, size=(2, 3, 6)).astype("float32")


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_maxout_agrees_with_the_equation(pieces):
    got = numpy(maxout(keras.ops.convert_to_tensor(X), pieces))
    assert got.shape == (2, 3, 6 // pieces)
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(
            got[place], recurrent_oracles.maxout(X[place], pieces).astype("float32")
        )


def test_maxout_needs_whole_groups():
    with pytest.raises(
        ValueError, match="maxout over 4 pieces needs a last axis that is a multiple of it; got 6."
    ):
        maxout(X, 4)


@pytest.mark.parametrize("alpha", [0.9, 1.0, 1.15])
def test_noisy_tanh_agrees_with_the_equation(alpha):
    layer = NoisyTanh(alpha=alpha, scale=0.7)
    layer.build(X.shape)
    randomize(layer)
    got = numpy(layer(X))
    steepness = numpy(layer.steepness.value)
    for place in np.ndindex(2, 3):
        expected = recurrent_oracles.noisy_tanh(X[place], alpha, 0.7, steepness)
        np.testing.assert_allclose(got[place], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(got, numpy(layer(X)))


def test_the_noise_of_training():
    """Half-normal, only where the function saturates; its mean is what inference uses."""
    layer = NoisyTanh()
    x = np.tile(np.array([[-3.0, -0.4, 0.0, 0.7, 2.0]], "float32"), (20000, 1))
    noisy, quiet = numpy(layer(x, training=True)).astype("float64"), numpy(layer(x))
    saturated = [0, 4]
    assert (noisy[:, 1:4] == quiet[:, 1:4]).all() and (noisy[:, saturated].std(axis=0) > 1e-3).all()
    # Five standard errors.
    error = 5 * noisy.std(axis=0) / np.sqrt(len(x)) + 1e-6
    np.testing.assert_array_less(np.abs(noisy.mean(axis=0) - quiet[0]), error)
    for unit in saturated:
        # The noise is one-sided: none of it lies beyond e = 0.
        zero = recurrent_oracles.noisy_tanh(x[0, [unit]], 1.15, 0.5, 1.0, noise=[0.0])[0]
        assert np.abs(np.sign(noisy[:, unit] - zero).mean()) > 0.999
    assert (numpy(layer(x, training=True)) != noisy).any()


def test_gradients_and_mixed_precision():
    layer = NoisyTanh(dtype="mixed_bfloat16")
    layer.build(X.shape)
    _, gradients = value_and_gradients(lambda x: keras.ops.sum(layer(x, training=True)), [X], layer)
    assert all(np.isfinite(gradient).all() and np.abs(gradient).sum() > 0 for gradient in gradients)
    assert keras.backend.standardize_dtype(layer(X).dtype) == "bfloat16"


def test_from_its_config_and_by_name():
    layer = NoisyTanh.from_config(NoisyTanh(alpha=0.9, scale=0.1, name="mine").get_config())
    assert (layer.alpha, layer.scale, layer.name) == (0.9, 0.1, "mine")
    assert isinstance(make_activation("noisy_tanh"), NoisyTanh)
    np.testing.assert_allclose(
        numpy(make_activation("tanh")(X, training=True)), np.tanh(X), rtol=1e-5
    )
