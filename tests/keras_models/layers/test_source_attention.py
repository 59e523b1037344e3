import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.layers import SourceAttention
from tests.keras_models import oracles
from tests.keras_models.backends import numpy, randomize, value_and_gradients

KINDS = SourceAttention.SCORES


def make(kind, coverage, query_size=4, memory_size=4, units=5, seed=0, **kwargs):
    layer = SourceAttention(kind, units=units, coverage=coverage, **kwargs)
    layer.build((None, query_size), (None, None, memory_size))
    randomize(layer, seed)
    return layer


def weights_of(layer):
    return {weight.name: numpy(weight.value) for weight in layer.trainable_weights}


@pytest.mark.parametrize("coverage", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    # Few shapes: JAX compiles each operation for each.
    sizes=st.sampled_from([(1, 1, 3, 3), (3, 5, 2, 4)]),
    masked=st.booleans(),
)
def test_agrees_with_the_equations(kind, coverage, seed, sizes, masked):
    rng = np.random.default_rng(seed)
    batch, length, query_size, memory_size = sizes
    memory_size = query_size if kind == "dot" else memory_size
    layer = make(kind, coverage, query_size, memory_size, seed=seed)
    query = rng.normal(size=(batch, query_size)).astype("float32")
    memory = rng.normal(size=(batch, length, memory_size)).astype("float32")
    mask = rng.random((batch, length)) < 0.6 if masked else None
    covered = rng.random((batch, length)).astype("float32") * 2 if coverage else None
    context, log_weights = numpy(layer(query, memory, mask=mask, coverage=covered))
    assert log_weights.dtype == np.float32
    for row in range(batch):
        row_mask = None if mask is None else mask[row]
        row_covered = None if covered is None else covered[row]
        weights, expected = oracles.attention(
            kind, query[row], memory[row], row_mask, weights_of(layer), row_covered
        )
        np.testing.assert_allclose(np.exp(log_weights[row]), weights, rtol=0, atol=1e-5)
        np.testing.assert_allclose(context[row], expected, rtol=0, atol=1e-5)
        if mask is not None:
            assert (np.exp(log_weights[row])[~mask[row]] == 0).all()


@pytest.mark.parametrize("coverage", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_queries_at_once_give_the_same_as_one_by_one(kind, coverage):
    layer = make(kind, coverage)
    rng = np.random.default_rng(2)
    queries, memory = (
        rng.normal(size=(2, 3, 4)).astype("float32"),
        rng.normal(size=(2, 5, 4)).astype("float32"),
    )
    mask = np.array([[True, True, False, True, False], [True] * 5])
    covered = rng.random((2, 3, 5)).astype("float32") if coverage else None
    contexts, log_weights = numpy(layer(queries, memory, mask=mask, coverage=covered))
    assert contexts.shape == (2, 3, 4) and log_weights.shape == (2, 3, 5)
    for t in range(3):
        step = None if covered is None else covered[:, t]
        context, log_weight = numpy(layer(queries[:, t], memory, mask=mask, coverage=step))
        np.testing.assert_allclose(contexts[:, t], context, rtol=0, atol=1e-6)
        np.testing.assert_allclose(log_weights[:, t], log_weight, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_made_once_give_the_same(kind):
    layer = make(kind, False)
    rng = np.random.default_rng(1)
    query, memory = (
        rng.normal(size=(2, 4)).astype("float32"),
        rng.normal(size=(2, 3, 4)).astype("float32"),
    )
    expected = numpy(layer(query, memory))
    actual = numpy(
        layer(query, memory, keys=layer.project_memory(keras.ops.convert_to_tensor(memory)))
    )
    for first, second in zip(expected, actual):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_source_gives_zeros_and_finite_gradients(kind):
    layer = make(kind, True)
    rng = np.random.default_rng(2)
    query, memory = rng.normal(size=(2, 4)), rng.normal(size=(2, 3, 4))
    mask = np.array([[False] * 3, [True, False, False]])

    def total(query, memory, covered):
        context, log_weights = layer(query, memory, mask=mask, coverage=covered)
        return keras.ops.sum(context) + keras.ops.sum(keras.ops.exp(log_weights))

    value, gradients = value_and_gradients(total, [query, memory, np.zeros((2, 3))], layer)
    # The empty source adds nothing; a source of one token gets all the weight.
    np.testing.assert_allclose(value, memory[1, 0].sum() + 1, rtol=1e-5)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert np.abs(gradients[1][1, 0]).sum() > 0


def test_coverage_moves_the_weights():
    layer = make("additive", True)
    query, memory = np.ones((1, 4), "float32"), np.ones((1, 3, 4), "float32")
    _, even = numpy(layer(query, memory, coverage=np.zeros((1, 3), "float32")))
    _, moved = numpy(layer(query, memory, coverage=np.array([[2.0, 0.0, 0.0]], "float32")))
    np.testing.assert_allclose(np.exp(even), 1 / 3, atol=1e-6)
    assert abs(np.exp(moved[0, 0]) - 1 / 3) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_config_round_trip(kind):
    layer = make(kind, True, name="mine")
    copy = SourceAttention.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert (copy.score, copy.units, copy.coverage, copy.name) == (kind, 5, True, "mine")


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="additive, dot, bilinear; got 'cosine'"):
        SourceAttention("cosine")
    with pytest.raises(ValueError, match="the query has 3, the memory 4. Use 'bilinear'"):
        SourceAttention("dot").build((None, 3), (None, None, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision_keeps_weights_in_float32(kind):
    layer = make(kind, True, dtype="mixed_bfloat16")
    rng = np.random.default_rng(3)
    query, memory = (
        rng.normal(size=(2, 4)).astype("float32"),
        rng.normal(size=(2, 3, 4)).astype("float32"),
    )
    context, log_weights = layer(query, memory, coverage=np.zeros((2, 3), "float32"))
    assert keras.backend.standardize_dtype(context.dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(log_weights.dtype) == "float32"
    np.testing.assert_allclose(np.exp(numpy(log_weights)).sum(-1), 1, atol=1e-5)
