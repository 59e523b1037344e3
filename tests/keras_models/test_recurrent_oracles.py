"""The recurrent layers' oracles against hand-computed cases."""

import math

import numpy as np
import pytest

from tests.keras_models import (
    oracles,
    recurrent_oracles,
)


def test_maxout():
    np.testing.assert_array_equal(
        recurrent_oracles.maxout(np.array([1, 4, -3, -5, 2, 2.0])), [4, -3, 2]
    )
    np.testing.assert_array_equal(
        recurrent_oracles.maxout(np.array([1, 4, -3, -5, 2, 2.0]), 3), [4, 2]
    )
    with pytest.raises(ValueError):
        recurrent_oracles.maxout(np.zeros(3))


def test_noisy_tanh_by_hand():
    # x = 3: h = 1, Delta = -2. sigma = 0.5 (sigmoid(-2) - 0.5)^2; alpha > 1 pushes along the sign
    # of x.
    sigma = 0.5 * (1 / (1 + math.exp(2)) - 0.5) ** 2
    x = np.array([3.0, -3.0, 0.5, 0.0])
    noise = np.array([2.0, 2.0, 2.0, 2.0])
    expected = 1.15 - 0.15 * 3 + sigma * 2
    got = recurrent_oracles.noisy_tanh(x, 1.15, 0.5, 1.0, noise)
    np.testing.assert_allclose(got, [expected, -expected, 0.5, 0], atol=1e-12)
    # alpha < 1 pushes back; p is one for each unit.
    got = recurrent_oracles.noisy_tanh(x, 0.9, 0.5, [1.0, 3.0, 7.0, 7.0], noise)
    sigmas = [sigma, 0.5 * (1 / (1 + math.exp(6)) - 0.5) ** 2]
    expected = [0.9 + 0.1 * 3 - s * 2 for s in sigmas]
    np.testing.assert_allclose(got, [expected[0], -expected[1], 0.5, 0], atol=1e-12)


def test_noisy_tanh_at_inference_is_the_mean_of_training():
    x, draws = np.array([2.5, -1.7, 0.4]), np.abs(np.random.default_rng(0).normal(size=(4000, 3)))
    mean = np.mean([recurrent_oracles.noisy_tanh(x, 1.15, 3.0, 2.0, e) for e in draws], axis=0)
    np.testing.assert_allclose(recurrent_oracles.noisy_tanh(x, 1.15, 3.0, 2.0), mean, atol=0.02)
    np.testing.assert_allclose(
        recurrent_oracles.noisy_tanh(x, 1.0, 3.0, 2.0), np.clip(x, -1, 1), atol=1e-12
    )
    np.testing.assert_allclose(
        recurrent_oracles.noisy_tanh(x, 0.3, 0.0, 2.0), 0.3 * np.clip(x, -1, 1) + 0.7 * x
    )


def recurrent_weights(rng, gates):
    return {
        "kernel": rng.normal(size=(2, 3 * gates)),
        "recurrent_kernel": rng.normal(size=(3, 3 * gates)),
    }


def test_zoneout_lstm():
    rng = np.random.default_rng(1)
    weights = {**recurrent_weights(rng, 4), "bias": rng.normal(size=12)}
    x, h, c = rng.normal(size=2), rng.normal(size=3), rng.normal(size=3)
    new_h, new_c = oracles.lstm(x, h, c, **weights)
    got = recurrent_oracles.zoneout_lstm(x, h, c, **weights, keep_output=0.0, keep_cell=0.0)
    np.testing.assert_allclose(got, (new_h, new_c), atol=1e-12)
    got = recurrent_oracles.zoneout_lstm(x, h, c, **weights, keep_output=1.0, keep_cell=1.0)
    np.testing.assert_allclose(got, (h, c), atol=1e-12)
    got = recurrent_oracles.zoneout_lstm(x, h, c, **weights, keep_output=0.05, keep_cell=0.5)
    np.testing.assert_allclose(got, (0.05 * h + 0.95 * new_h, 0.5 * (c + new_c)), atol=1e-12)
    masks = np.array([1.0, 0, 0]), np.array([0, 1.0, 1.0])
    got = recurrent_oracles.zoneout_lstm(
        x, h, c, **weights, keep_output=masks[0], keep_cell=masks[1]
    )
    np.testing.assert_allclose(got, ([h[0], *new_h[1:]], [new_c[0], *c[1:]]), atol=1e-12)


def test_zoneout_gru():
    rng = np.random.default_rng(2)
    weights = {**recurrent_weights(rng, 3), "bias": rng.normal(size=(2, 9))}
    x, h = rng.normal(size=2), rng.normal(size=3)
    got = recurrent_oracles.zoneout_gru(x, h, **weights, keep=0.25)
    np.testing.assert_allclose(got, 0.25 * h + 0.75 * oracles.gru(x, h, **weights), atol=1e-12)


def test_variational_dropout_drops_rows_of_the_kernels():
    rng = np.random.default_rng(3)
    inputs, h, c = rng.normal(size=(4, 2)), rng.normal(size=3), rng.normal(size=3)
    input_mask = recurrent_oracles.dropout_mask([True, False], 0.5)
    state_mask = recurrent_oracles.dropout_mask([False, True, True], 0.2)
    np.testing.assert_allclose(input_mask, [2, 0])
    np.testing.assert_allclose(state_mask, [0, 1.25, 1.25])
    for gates, bias in ((4, rng.normal(size=12)), (3, rng.normal(size=(2, 9)))):
        weights = recurrent_weights(rng, gates)
        dropped = {
            "kernel": input_mask[:, None] * weights["kernel"],
            "recurrent_kernel": state_mask[:, None] * weights["recurrent_kernel"],
        }
        first = [h, c] if gates == 4 else [h]
        state, expected = first, []
        for x in inputs:
            state = oracles.recur(
                "lstm" if gates == 4 else "gru", x, state, {**dropped, "bias": bias}
            )
            expected.append(state[0])
        function = (
            recurrent_oracles.variational_lstm if gates == 4 else recurrent_oracles.variational_gru
        )
        outputs, *last = function(
            inputs, *first, **weights, bias=bias, input_mask=input_mask, state_mask=state_mask
        )
        np.testing.assert_allclose(outputs, expected, atol=1e-12)
        np.testing.assert_allclose(last, state, atol=1e-12)


def test_scheduled_sampling_decays():
    linear = [recurrent_oracles.linear_decay(i, 1.0, 0.25, 0.1) for i in range(6)]
    np.testing.assert_allclose(linear, [1, 0.75, 0.5, 0.25, 0.1, 0.1])
    np.testing.assert_allclose(
        [recurrent_oracles.exponential_decay(i, 0.5) for i in range(4)], [1, 0.5, 0.25, 0.125]
    )
    for i in range(0, 60, 7):
        expected = 10 / (10 + math.exp(i / 10))
        np.testing.assert_allclose(
            recurrent_oracles.inverse_sigmoid_decay(i, 10), expected, rtol=1e-12
        )
    assert recurrent_oracles.inverse_sigmoid_decay(10**6, 10) == 0
