import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.layers.numerics import (
    LOG_ZERO,
    add_copies,
    copy_mass,
    first_places,
    log_add,
    masked_log_softmax,
    target_log_softmax,
)
from tests.keras_models.backends import numpy, value_and_gradients

NO_LAYER = keras.layers.Identity()


def test_log_zero_is_exactly_zero_in_every_float_type():
    for dtype in ("float32", "float16", "bfloat16"):
        log_zero = keras.ops.cast(keras.ops.convert_to_tensor(LOG_ZERO, dtype="float32"), dtype)
        assert float(keras.ops.exp(log_zero)) == 0


@pytest.mark.parametrize(
    "first,second", [(-1.0, -2.0), (-1e4, -1e4), (LOG_ZERO, LOG_ZERO), (LOG_ZERO, -3.0), (0.0, -90.0)]
)
def test_log_add(first, second):
    value, (d_first, d_second) = value_and_gradients(log_add, [first, second], NO_LAYER)
    np.testing.assert_allclose(value, np.logaddexp(first, second), rtol=1e-6, atol=1e-7)
    # The gradient is each term's share of the sum: a half where both are equal.
    np.testing.assert_allclose(d_first, np.exp(first - np.logaddexp(first, second)), atol=1e-6)
    np.testing.assert_allclose(d_first + d_second, 1, atol=1e-6)


def test_masked_log_softmax():
    scores = np.array([[1.0, 2.0, 50.0], [1.0, 1.0, 1.0], [3.0, 4.0, 5.0]], "float32")
    mask = np.array([[True, True, False], [False] * 3, [True] * 3])
    result = np.exp(numpy(masked_log_softmax(scores, mask)))
    np.testing.assert_allclose(result[0], [1 / (1 + np.e), np.e / (1 + np.e), 0], rtol=1e-6)
    assert (result[1] == 0).all() and result[0, 2] == 0
    np.testing.assert_allclose(result[2], np.exp(numpy(masked_log_softmax(scores, None)))[2], rtol=1e-6)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_target_log_softmax(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(2, 3, 5), scale=3).astype("float32")
    targets = rng.integers(0, 8, size=(2, 3))
    result = numpy(target_log_softmax(logits, targets))
    for b in range(2):
        for t in range(3):
            powers = np.exp(logits[b, t].astype("float64"))
            if targets[b, t] < 5:
                np.testing.assert_allclose(result[b, t], np.log(powers[targets[b, t]] / powers.sum()), atol=1e-5)
            else:
                assert result[b, t] <= LOG_ZERO


def random_copies(seed, batch, length):
    """Extended ids of a vocabulary of 6, the weights of their positions, some 0, their logarithms, and the sum for each id."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 6 + length, size=(batch, length))
    weights = rng.dirichlet(np.ones(length), size=batch)
    weights[rng.random(weights.shape) < 0.3] = 0
    logs = np.where(weights > 0, np.log(np.maximum(weights, 1e-30)), LOG_ZERO).astype("float32")
    sums = np.zeros((batch, 6 + length))
    for row in range(batch):
        for j in range(length):
            sums[row, ids[row, j]] += weights[row, j]
    return ids, logs, sums


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 3), length=st.integers(1, 7))
def test_copy_mass_adds_all_positions_of_a_word(seed, batch, length):
    ids, logs, expected = random_copies(seed, batch, length)
    result = numpy(copy_mass(logs, ids, 6 + length))
    np.testing.assert_allclose(np.exp(result), expected, atol=1e-6)
    assert (result[expected == 0] == np.float32(LOG_ZERO)).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 3), length=st.integers(1, 7), shift=st.sampled_from([0, -60]))
def test_add_copies_adds_all_positions_of_a_word(seed, batch, length, shift):
    """However little is copied of the whole; a row without any copy keeps its words."""
    ids, logs, sums = random_copies(seed, batch, length)
    words = np.log(np.random.default_rng(seed).dirichlet(np.ones(6), size=batch)).astype("float32")
    logs = np.where(logs > LOG_ZERO, logs + shift, LOG_ZERO).astype("float32")
    generated = np.pad(np.exp(words.astype("float64")), [(0, 0), (0, length)])
    expected = generated + sums * np.exp(float(shift))
    result = numpy(add_copies(words, logs, ids))
    known = expected > 0
    np.testing.assert_allclose(result[known], np.log(expected[known]), rtol=1e-5, atol=1e-5)
    assert (np.exp(result[~known]) == 0).all()
    np.testing.assert_array_equal(numpy(add_copies(words, logs, ids, numpy(first_places(ids)))), result)
