"""The best of many values, found block by block: what ranking all of them gives, ties included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding.ranking import BLOCK, FEW, top_k
from keras_models.layers.numerics import LOG_ZERO
from tests.keras_models.backends import TENSORFLOW, compiled, numpy, shared


def oracle(values, k):
    """Plain sorting: the largest first, of equal ones the first."""
    order = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(values, order, axis=-1), order


@settings(max_examples=40 if TENSORFLOW else 20)
@given(
    seed=st.integers(0, 10**6),
    # Whole blocks, one value more, one less.
    number=st.sampled_from([FEW, FEW + 1, FEW + BLOCK - 1, FEW + 2 * BLOCK]),
    k=st.sampled_from([1, 3, 8]),
    kinds=st.sampled_from([2, 5, 10**6]),
    banned=st.sampled_from([0.0, 0.5, 0.999, 1.0]),
)
def test_equals_sorting(seed, number, k, kinds, banned):
    rng = np.random.default_rng(seed)
    # Few kinds of values: ties within blocks and between them. Some rows have fewer possible values
    # than are asked for.
    values = -rng.integers(0, kinds, (2, 3, number)).astype("float32")
    values = np.where(rng.random(values.shape) < banned, np.float32(LOG_ZERO), values)
    found = shared((top_k, k), lambda values: top_k(values, k), ops.convert_to_tensor(values))
    best, indices = numpy(found)
    expected, order = oracle(values, k)
    np.testing.assert_array_equal(best, expected)
    np.testing.assert_array_equal(indices, order)


def test_what_is_less_than_impossible_has_its_own_index():
    """The log-probabilities of hypotheses that were impossible before, and are again, add up."""
    values = np.full((2, FEW + 5), 3 * LOG_ZERO, "float32")
    values[:, 3] = 2 * LOG_ZERO
    for found, wanted in zip(numpy(top_k(ops.convert_to_tensor(values), 5)), oracle(values, 5)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("number", [3, FEW - 1, FEW, 5000])
def test_compiled_equals_uncompiled(number):
    values = np.random.default_rng(0).normal(size=(4, number)).astype("float32")
    expected = oracle(values, 3)
    for function in (top_k, compiled(lambda values, k: top_k(values, 3))):
        for found, wanted in zip(numpy(function(ops.convert_to_tensor(values), 3)), expected):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(not TENSORFLOW, reason="JAX knows every shape")
def test_a_number_that_is_not_known_until_it_runs():
    import tensorflow as tf

    spec = [tf.TensorSpec([None, None], tf.float32)]
    values = np.random.default_rng(0).normal(size=(4, FEW + 5)).astype("float32")
    ranked = {}
    for at_least in (0, FEW):
        graph = tf.function(
            lambda values, at_least=at_least: top_k(values, 3, at_least), input_signature=spec
        )
        ranked[at_least] = [
            op.name
            for op in graph.get_concrete_function().graph.get_operations()
            if "TopK" in op.type
        ]
        for found, wanted in zip(numpy(graph(values)), oracle(values, 3)):
            np.testing.assert_array_equal(found, wanted)
    # All values are ranked, or maxima, the chosen blocks (by their places) and then the candidates.
    assert len(ranked[0]) == 1 and len(ranked[FEW]) == 3
