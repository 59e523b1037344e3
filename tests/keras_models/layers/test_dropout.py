"""Dropout by bytes, against the equation for bytes that are known."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from keras_models.layers import Dropout
from tests.keras_models.backends import numpy, value_and_gradients


def oracle(inputs, rate, drawn):
    """Dropout of the bytes that were drawn: the first decides the threshold, the fifth on units."""
    low = int(np.floor(256 * rate))
    threshold = low + (drawn[0] / 256 < 256 * rate - low)
    flat = inputs.reshape(-1).astype("float64")
    kept = [byte >= threshold for byte in drawn[4 : 4 + flat.size]]
    return np.where(kept, flat / (1 - rate), 0.0).reshape(inputs.shape)


@pytest.fixture
def drawn(monkeypatch):
    """The bytes of 64 draws, which every layer gets the first of."""
    draws = np.random.default_rng(0).integers(-(2**31), 2**31 - 1, size=(64, 1), dtype="int32")

    def randint(shape, low, high, dtype, seed):
        assert (low, high, dtype) == (-(2**31), 2**31 - 1, "int32")
        return ops.convert_to_tensor(draws[: shape[0]])

    monkeypatch.setattr(keras.random, "randint", randint)
    return draws.view("uint8").reshape(-1)


@pytest.mark.parametrize("rate", [0.003, 0.1, 0.25, 0.5, 0.99])
@pytest.mark.parametrize("shape", [(1,), (2, 3), (3, 2, 5, 7)])
def test_units_are_dropped_by_their_bytes(rate, shape, drawn):
    inputs = np.random.default_rng(1).normal(size=shape).astype("float32")
    found = numpy(Dropout(rate)(inputs, training=True))
    np.testing.assert_allclose(found, oracle(inputs, rate, drawn), rtol=1e-6)


def test_gradients_are_dropped_with_their_units(drawn):
    layer, inputs = Dropout(0.4), np.ones((5, 30), "float32")
    _, (gradient,) = value_and_gradients(
        lambda values: ops.sum(layer(values, training=True)), [inputs], layer
    )
    np.testing.assert_allclose(gradient, oracle(inputs, 0.4, drawn), rtol=1e-6)


@given(st.floats(0.0, 0.999), st.integers(0, 1000))
def test_the_share_that_is_dropped_is_the_rate(rate, seed):
    layer = Dropout(rate, seed=seed)
    ones = np.ones((8, 500), "float32")
    found = np.stack([numpy(layer(ones, training=True)) for _ in range(3)])
    kept = found[found != 0]
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=1e-5)
    # One threshold in 256 between two calls, and five standard deviations of the units.
    bound = 1 / 256 + 5 * np.sqrt(rate * (1 - rate) / found.size)
    assert abs((found == 0).mean() - rate) <= bound


def test_a_rate_between_two_bytes_is_met_on_average():
    rate, layer = 0.1, Dropout(0.1, seed=3)
    ones = np.ones((100, 100), "float32")
    shares = [(numpy(layer(ones, training=True)) == 0).mean() for _ in range(300)]
    # 26 of 256 in six of ten calls, else 25.
    assert abs(np.mean(shares) - rate) < 0.0005
    assert min(shares) < 25.5 / 256 < 0.1 < max(shares)


def test_draws_follow_the_seed_and_change_from_call_to_call():
    ones = np.ones((7, 11), "float32")
    first, again = Dropout(0.5, seed=4), Dropout(0.5, seed=4)
    one, two = (numpy(first(ones, training=True)) for _ in range(2))
    assert (one != two).any()
    np.testing.assert_array_equal(one, numpy(again(ones, training=True)))


def test_without_training_nothing_is_dropped_nor_drawn():
    layer, inputs = Dropout(0.9, seed=2), np.ones((3, 4), "float32")
    state = numpy(layer.seed_generator.state)
    np.testing.assert_array_equal(numpy(layer(inputs)), inputs)
    np.testing.assert_array_equal(numpy(Dropout(0.0)(inputs, training=True)), inputs)
    np.testing.assert_array_equal(numpy(layer.seed_generator.state), state)


def test_no_units_and_whole_rows():
    assert numpy(Dropout(0.5)(np.ones((0, 3), "float32"), training=True)).shape == (0, 3)
    rows = numpy(Dropout(0.5, noise_shape=(None, 1), seed=1)(np.ones((50, 3)), training=True))
    assert (rows == rows[:, :1]).all() and set(np.unique(rows)) == {0.0, 2.0}


def test_dtype_config_and_refusals():
    layer = Dropout(0.25, seed=5, dtype="mixed_bfloat16", name="drop")
    found = layer(np.ones((4, 4), "float32"), training=True)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is Dropout and again.get_config() == layer.get_config()
    with pytest.raises(ValueError):
        Dropout(1.5)
