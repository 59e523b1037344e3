import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.decoding.hypotheses import coverage_penalty, length_penalty, provenance
from tests.keras_models import oracles
from tests.keras_models.backends import numpy
from tests.keras_models.decoding.fakes import logs


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_length_penalty_agrees_with_the_equation(alpha):
    lengths = np.arange(1, 60)
    expected = [oracles.length_penalty(int(length), alpha) for length in lengths]
    np.testing.assert_allclose(numpy(length_penalty(lengths, alpha)), expected, rtol=1e-6)
    assert alpha == 0 or expected[1] > expected[0] == 1


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), length=st.integers(1, 5))
def test_coverage_penalty_agrees_with_the_equation(seed, length):
    rng = np.random.default_rng(seed)
    attentions = rng.random((3, 4, length)).astype("float32")
    attentions[rng.random((3, 4, length)) < 0.5] = 0
    mask = rng.random((3, length)) < 0.7
    result = numpy(coverage_penalty(attentions.sum(axis=1), mask, 0.3))
    expected = [oracles.coverage_penalty(a, m, 0.3) for a, m in zip(attentions, mask)]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert (result <= 0).all()


def test_provenance():
    ids = np.tile([9, 4, 9, 10, 4], (5, 1)).astype("int32")
    #                 copied wholly  generated  more copied  more generated  not in the source
    tokens = np.array([9, 4, 4, 4, 5], "int32")
    p = [0.5, 0.4, 0.4, 0.4, 0.7]
    copies = [
        [0.2, 0.3, 0.3, 0.1, 0.1],
        [0.2, 0.0, 0.2, 0.2, 0.0],
        [0.0, 0.1, 0.0, 0.5, 0.2],
        [0.0, 0.1, 0.0, 0.5, 0.05],
        [0.0, 0.1, 0.0, 0.2, 0.0],
    ]
    position, probability = numpy(provenance(tokens, logs(p), logs(copies), ids))
    np.testing.assert_allclose(probability, [1, 0, 0.75, 0.375, 0], atol=1e-6)
    # The likeliest occurrence, not the first, and -1 where generating is likelier.
    assert position.tolist() == [2, -1, 4, -1, -1]
    assert position.dtype == np.int32
    assert probability[1] == probability[4] == 0
