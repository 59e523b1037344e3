import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models import losses
from tests.keras_models import oracles
from tests.keras_models.backends import numpy


def test_negative_log_likelihood_is_the_mean_over_real_tokens():
    targets = np.array([[5, 3, 0], [4, 0, 0]])
    log_prob = np.array([[-1.0, -2.0, -50.0], [-6.0, -70.0, -80.0]], "float32")
    np.testing.assert_allclose(
        float(losses.negative_log_likelihood(targets, log_prob)), 3.0, rtol=1e-6
    )


def test_nothing_but_padding_gives_zero():
    assert (
        float(losses.negative_log_likelihood(np.zeros((2, 3)), np.full((2, 3), -5.0, "float32")))
        == 0
    )
    assert (
        float(
            losses.coverage_loss(
                np.ones((1, 2, 3), "float32"), np.ones((1, 2, 3), "float32"), [[False, False]]
            )
        )
        == 0
    )


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 6), length=st.integers(1, 5))
def test_coverage_loss_agrees_with_the_equation(seed, steps, length):
    rng = np.random.default_rng(seed)
    attention = rng.dirichlet(np.ones(length), size=(2, steps)).astype("float32")
    mask = np.arange(steps) < rng.integers(1, steps + 1, size=(2, 1))
    before = np.concatenate(
        [np.zeros((2, 1, length)), np.cumsum(attention, axis=1)[:, :-1]], axis=1
    ).astype("float32")
    total, count = np.sum([oracles.coverage_loss(a, m) for a, m in zip(attention, mask)], axis=0)
    np.testing.assert_allclose(
        numpy(losses.coverage_loss(attention, before, mask)), total / count, atol=1e-5
    )
