import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.layers.numerics import (
    LOG_ZERO,
    add_at,
    add_copies,
    copy_mass,
    first_places,
    log_add,
    log_normaliser,
    log_shares,
    masked_log_softmax,
    project_parts,
)
from tests.keras_models.backends import numpy, shared, value_and_gradients

NO_LAYER = keras.layers.Identity()


def test_log_zero_is_exactly_zero_in_every_float_type():
    for dtype in ("float32", "float16", "bfloat16"):
        log_zero = keras.ops.cast(keras.ops.convert_to_tensor(LOG_ZERO, dtype="float32"), dtype)
        assert float(keras.ops.exp(log_zero)) == 0


@pytest.mark.parametrize(
    "first,second",
    [(-1.0, -2.0), (-1e4, -1e4), (LOG_ZERO, LOG_ZERO), (LOG_ZERO, -3.0), (0.0, -90.0)],
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
    np.testing.assert_allclose(
        result[2], np.exp(numpy(masked_log_softmax(scores, None)))[2], rtol=1e-6
    )


def log_softmax(logits):
    """Float64, by NumPy."""
    logits = np.asarray(logits, "float64")
    return logits - np.logaddexp.reduce(logits, axis=-1)[..., np.newaxis]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    number=st.sampled_from([1, 3, 4, 129, 132, 512, 1001, 2048]),
    scale=st.sampled_from([0.0, 1.0, 30.0, 1e4]),
)
def test_log_shares_are_a_log_softmax_of_a_total(seed, number, scale):
    rng = np.random.default_rng(seed)
    logits = (scale * rng.normal(size=(2, 3, number))).astype("float32")
    logits[0, 0, 0], logits[1, 1, -1] = scale * 8, -scale * 8
    log_total = np.log(rng.uniform(size=(2, 3, 1))).astype("float32")
    log_total[0, 0] = LOG_ZERO
    for total in (log_total, 0.0):
        value = numpy(shared("log_shares", log_shares, logits, total))
        assert value.dtype == np.float32
        # Exact where anything is likely, however large the logits are: what is small beside them
        # may be off by their last bit.
        np.testing.assert_allclose(value, total + log_softmax(logits), rtol=1e-6, atol=3e-6)
    np.testing.assert_allclose(np.exp(value.astype("float64")).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("number", [5, 132])
def test_the_gradient_of_log_shares_is_that_of_a_softmax(number):
    logits = np.random.default_rng(0).normal(size=(2, number)).astype("float32")
    # Two that are the largest.
    logits[:, :2] = 4.0
    log_total = np.array([[-1.0], [-2.0]], "float32")
    chosen = np.arange(number) == 3
    _, (d_logits, d_total) = value_and_gradients(
        lambda x, total: keras.ops.sum(keras.ops.where(chosen, log_shares(x, total), 0.0)),
        [logits, log_total],
        NO_LAYER,
    )
    np.testing.assert_allclose(d_logits, chosen - np.exp(log_softmax(logits)), atol=1e-6)
    np.testing.assert_allclose(d_total, [[1.0], [1.0]], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("leading", [(4,), (2, 3)])
def test_parts_are_projected_as_if_they_lay_side_by_side(dtype, leading):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(*leading, size)).astype("float32") for size in (3, 1, 5)]
    layer = keras.layers.Dense(2, bias_initializer="random_normal", dtype=dtype)
    layer.build((None, 9))
    value = project_parts(layer, parts)
    assert keras.backend.standardize_dtype(value.dtype) == layer.compute_dtype
    kernel, bias = (np.asarray(weight, "float64") for weight in layer.get_weights())
    tolerance = 1e-5 if dtype == "float32" else 0.1
    expected = np.concatenate(parts, axis=-1) @ kernel + bias
    np.testing.assert_allclose(numpy(keras.ops.cast(value, "float32")), expected, atol=tolerance)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.0, 1.0, 30.0, 3e3]))
def test_log_normaliser(seed, scale):
    rng = np.random.default_rng(seed)
    hidden, columns = rng.normal(size=(2, 3, 4)) * scale, rng.normal(size=(5, 4))
    bias, weights = rng.normal(size=5), rng.normal(size=(2, 3))
    hidden, columns, bias, weights = (x.astype("float32") for x in (hidden, columns, bias, weights))

    def of(hidden, columns, bias):
        logits = keras.ops.matmul(hidden, keras.ops.transpose(columns)) + bias
        return log_normaliser(logits, hidden, columns, bias)

    logits = hidden.astype("float64") @ columns.T.astype("float64") + bias
    largest = logits.max(axis=-1, keepdims=True)
    powers = np.exp(logits - largest)
    sums = powers.sum(axis=-1, keepdims=True)
    value = numpy(of(*map(keras.ops.convert_to_tensor, (hidden, columns, bias))))
    np.testing.assert_allclose(value, (largest + np.log(sums))[..., 0], rtol=1e-5, atol=1e-5)

    _, gradients = value_and_gradients(
        lambda *inputs: keras.ops.sum(weights * of(*inputs)), [hidden, columns, bias], NO_LAYER
    )
    shares = weights[..., None] * powers / sums
    expected = (shares @ columns, np.einsum("btv,bth->vh", shares, hidden), shares.sum((0, 1)))
    for found, right in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-3 * max(scale, 1.0))


def random_copies(seed, batch, length):
    """Extended ids of a vocabulary of 6, log-weights of their positions, and the sum for each id.

    Some weights are 0.
    """
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


# Few shapes: JAX compiles each operation for each.
SHAPES = st.sampled_from([(1, 1), (2, 7), (3, 4)])


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_copy_mass_adds_all_positions_of_a_word(seed, shape):
    batch, length = shape
    ids, logs, expected = random_copies(seed, batch, length)
    result = numpy(copy_mass(logs, ids, 6 + length))
    np.testing.assert_allclose(np.exp(result), expected, atol=1e-6)
    assert (result[expected == 0] == np.float32(LOG_ZERO)).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), shape=SHAPES, shift=st.sampled_from([0, -60]))
def test_add_at_adds_all_places_of_a_word(seed, shape, shift):
    batch, length = shape
    ids, logs, sums = random_copies(seed, batch, length)
    size = 6 + length
    words = np.log(np.random.default_rng(seed).dirichlet(np.ones(size), size=batch))
    logs = np.where(logs > LOG_ZERO, logs + shift, LOG_ZERO).astype("float32")
    expected = np.exp(words) + sums * np.exp(float(shift))
    result = numpy(add_at(words.astype("float32"), logs, ids))
    np.testing.assert_allclose(result, np.log(expected), rtol=1e-5, atol=1e-5)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), shape=SHAPES, shift=st.sampled_from([0, -60]))
def test_add_copies_adds_all_positions_of_a_word(seed, shape, shift):
    """However little is copied of the whole; a row without any copy keeps its words."""
    batch, length = shape
    ids, logs, sums = random_copies(seed, batch, length)
    words = np.log(np.random.default_rng(seed).dirichlet(np.ones(6), size=batch)).astype("float32")
    logs = np.where(logs > LOG_ZERO, logs + shift, LOG_ZERO).astype("float32")
    generated = np.pad(np.exp(words.astype("float64")), [(0, 0), (0, length)])
    expected = generated + sums * np.exp(float(shift))
    result = numpy(add_copies(words, logs, ids))
    known = expected > 0
    np.testing.assert_allclose(result[known], np.log(expected[known]), rtol=1e-5, atol=1e-5)
    assert (np.exp(result[~known]) == 0).all()
    np.testing.assert_array_equal(
        numpy(add_copies(words, logs, ids, numpy(first_places(ids)))), result
    )
