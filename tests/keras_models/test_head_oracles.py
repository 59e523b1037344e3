"""The heads' oracles against hand-computed cases and known limits."""

import math

import numpy as np
import pytest

from tests.keras_models import (
    head_oracles,
    oracles,
    recurrent_oracles,
)
from tests.keras_models.oracle_case import V, assert_distribution, case

# Pointer network.


def pointer_network(c, mask=None, end_key=None):
    rng = np.random.default_rng(9)
    W1, W2, v = rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), rng.normal(size=(2, 1))
    end_key = rng.normal(size=4) if end_key is None else end_key
    mask = c["mask"] if mask is None else mask
    p, copies = head_oracles.pointer_network(
        c["state"], c["memory"], mask, W1, W2, v, end_key, c["ids"], V
    )
    return p, copies, (W1, W2, v, end_key)


def test_pointer_network_is_a_softmax_over_positions_and_end():
    c = case(0)
    p, copies, (W1, W2, v, end_key) = pointer_network(c)
    keys = np.concatenate([c["memory"][:4], end_key[None]])
    powers = np.exp(np.tanh(keys @ W1 + c["state"] @ W2) @ v)[:, 0]
    expected = powers / powers.sum()
    np.testing.assert_allclose(copies, [*expected[:4], 0], atol=1e-12)
    np.testing.assert_allclose(p[[3, 4, 5]], [expected[4], expected[2], expected[0]], atol=1e-12)
    np.testing.assert_allclose(p[V + 1], expected[1] + expected[3], atol=1e-12)
    assert_distribution(p, copies, c["mask"])
    assert np.flatnonzero(p).tolist() == [3, 4, 5, V + 1]


def test_pointer_network_of_nothing_ends():
    p, copies, _ = pointer_network(case(1), mask=[False] * 5)
    assert p[3] == 1 and p.sum() == 1 and not copies.any()


def test_pointer_network_counts_each_occurrence_of_a_word():
    c = case(2)
    c["memory"][:] = c["memory"][0]
    p, copies, _ = pointer_network(c, end_key=c["memory"][0])
    np.testing.assert_allclose(copies, [0.2, 0.2, 0.2, 0.2, 0], atol=1e-12)
    np.testing.assert_allclose(p[[3, 4, 5, V + 1]], [0.2, 0.2, 0.2, 0.4], atol=1e-12)


# Pointer softmax.


def test_switch_has_a_residual_connection_around_its_upper_layer():
    # c = 2, s = -1, one unit: h1 = tanh(2 * 0.5 - 1 * 1 + 0.3), h2 = tanh(-2 h1 + 0.1) + h1, f = 3
    # h2 - 1
    f = head_oracles.pointer_softmax_switch(
        np.array([2.0]),
        np.array([-1.0]),
        np.array([[0.5], [1.0]]),
        np.array([0.3]),
        np.array([[-2.0]]),
        np.array([0.1]),
        np.array([[3.0]]),
        np.array([-1.0]),
        (np.tanh, np.tanh),
    )
    h1 = math.tanh(0.3)
    np.testing.assert_allclose(f, 3 * (math.tanh(-2 * h1 + 0.1) + h1) - 1, atol=1e-12)


def test_switch_with_a_dead_upper_layer_reads_the_lower_one():
    c, zeros = case(3), np.zeros((2, 2))
    W1, b1, w = c["rng"].normal(size=(7, 2)), c["rng"].normal(size=2), c["rng"].normal(size=2)
    activations = (recurrent_oracles.relu, recurrent_oracles.relu)
    f = head_oracles.pointer_softmax_switch(
        c["context"], c["state"], W1, b1, zeros, np.zeros(2), w, 0.5, activations
    )
    h1 = np.maximum(np.concatenate([c["context"], c["state"]]) @ W1 + b1, 0)
    np.testing.assert_allclose(f, h1 @ w + 0.5, atol=1e-12)


def test_pointer_softmax_concatenates_and_does_not_merge():
    location = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    shortlist = np.full(V, 1 / V)
    p, copies, d = head_oracles.pointer_softmax(shortlist, location, math.log(3))
    np.testing.assert_allclose(d, 0.75, atol=1e-12)
    np.testing.assert_allclose(p, [*[0.125] * V, 0.025, 0.05, 0.075, 0.1, 0], atol=1e-12)
    assert_distribution(p, copies, [True] * 4 + [False])
    # The inverse temperature sharpens: odds of 3 become odds of 9.
    np.testing.assert_allclose(
        head_oracles.pointer_softmax(shortlist, location, math.log(3), 2)[2], 0.9, atol=1e-12
    )


@pytest.mark.parametrize(("switch", "d"), [(1000, 1), (-1000, 0)])
def test_saturated_switch_leaves_one_softmax(switch, d):
    shortlist, location = np.full(V, 1 / V), np.array([0.25, 0.75])
    p, _, gate = head_oracles.pointer_softmax(shortlist, location, switch)
    assert gate == d
    np.testing.assert_array_equal(p, [*d * shortlist, *(1 - d) * location])


def test_pointer_softmax_without_source_generates():
    p, copies, d = head_oracles.pointer_softmax(np.full(V, 1 / V), np.zeros(2), -5)
    assert d == 1 and not copies.any() and p[V:].tolist() == [0, 0]
    likelihood = head_oracles.pointer_softmax_log_likelihood(np.full(V, 1 / V), np.zeros(2), -5, 2)
    np.testing.assert_allclose(likelihood, -math.log(V))
    assert (
        head_oracles.pointer_softmax_log_likelihood(np.full(V, 1 / V), np.zeros(2), -5, V)
        == -math.inf
    )


@pytest.mark.parametrize("temperature", [1, 2])
def test_observed_switch_takes_one_entry_of_the_output(temperature):
    shortlist, location = np.random.default_rng(4).dirichlet(np.ones(V)), np.array([0.3, 0.6, 0.1])
    p, _, _ = head_oracles.pointer_softmax(shortlist, location, 0.7, temperature)
    for target in range(V + 3):
        got = head_oracles.pointer_softmax_log_likelihood(
            shortlist, location, 0.7, target, temperature
        )
        np.testing.assert_allclose(got, math.log(p[target]), atol=1e-12)
    # A saturated switch stays finite.
    got = head_oracles.pointer_softmax_log_likelihood(shortlist, location, 2000.0, V, temperature)
    np.testing.assert_allclose(got, -2000 * temperature + math.log(0.3), rtol=1e-12)


# Joint softmax.


def test_copy_scores():
    memory, state, kernel = (
        np.array([[1.0, 2.0], [0.0, -1.0]]),
        np.array([3.0, -1.0]),
        np.array([[1.0, 0.0], [2.0, 1.0]]),
    )
    # h_1 K = [5, 2], h_2 K = [-2, -1]
    np.testing.assert_allclose(head_oracles.copy_scores(memory, state, kernel), [13, -5])
    expected = [3 * math.tanh(5) - math.tanh(2), 3 * math.tanh(-2) - math.tanh(-1)]
    np.testing.assert_allclose(
        head_oracles.copy_scores(memory, state, kernel, tanh=True), expected, atol=1e-12
    )


def test_joint_copy_of_equal_scores_counts_words():
    c = case(5)
    p, copies = head_oracles.joint_copy(np.zeros(V), np.zeros(5), c["mask"], c["ids"])
    assert_distribution(p, copies, c["mask"])
    # Ten equal shares: six words, four positions; word 5 stands at one position, V + 1 at two.
    np.testing.assert_allclose(copies, [0.1, 0.1, 0.1, 0.1, 0], atol=1e-12)
    np.testing.assert_allclose(p, [0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0, 0.2, 0, 0, 0], atol=1e-12)


def test_joint_copy_limits():
    c, scores = case(6), np.random.default_rng(6).normal(size=V)
    nothing_to_copy, copies = head_oracles.joint_copy(scores, np.zeros(5), [False] * 5, c["ids"])
    np.testing.assert_allclose(nothing_to_copy[:V], oracles.softmax(scores), atol=1e-12)
    assert not copies.any() and not nothing_to_copy[V:].any()
    p, copies = head_oracles.joint_copy(
        scores, np.array([0, 800.0, 0, 0, 900.0]), c["mask"], c["ids"]
    )
    assert copies.tolist() == [0, 1, 0, 0, 0] and p[V + 1] == 1


def test_selective_read_averages_the_positions_of_the_last_word():
    c, copies = case(7), np.array([0.1, 0.3, 0.2, 0.1, 0])
    zeta, rho = head_oracles.selective_read(V + 1, copies, c["memory"], c["ids"])
    np.testing.assert_allclose(rho, [0, 0.75, 0, 0.25, 0], atol=1e-12)
    np.testing.assert_allclose(zeta, 0.75 * c["memory"][1] + 0.25 * c["memory"][3], atol=1e-12)
    for previous, p in ((2, copies), (V + 1, np.zeros(5))):
        zeta, rho = head_oracles.selective_read(previous, p, c["memory"], c["ids"])
        assert not zeta.any() and not rho.any()


# Pointer sentinel.


def sentinel_step(c, mask, scale=1.0):
    rng = np.random.default_rng(8)
    W, b, sentinel = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=4)
    query = np.tanh(c["state"] @ W + b)
    sentinel = scale * query if scale != 1.0 else sentinel
    step = head_oracles.pointer_sentinel(
        c["p_vocabulary"], c["state"], c["memory"], mask, c["ids"], W, b, sentinel
    )
    return *step, query, sentinel


def test_pointer_sentinel_agrees_with_its_equations_uncancelled():
    c = case(8)
    p, copies, gate, query, sentinel = sentinel_step(c, c["mask"])
    powers = np.exp([*c["memory"][:4] @ query, sentinel @ query])
    a = powers / powers.sum()
    np.testing.assert_allclose(gate, a[4], atol=1e-12)
    expected = np.zeros(V + 5)
    expected[:V] = gate * c["p_vocabulary"]
    for j in range(4):
        expected[c["ids"][j]] += (1 - gate) * (a[j] / (1 - gate))
    np.testing.assert_allclose(p, expected, atol=1e-12)
    assert_distribution(p, copies, c["mask"])
    loss = head_oracles.pointer_sentinel_auxiliary_loss(copies, gate, c["ids"], V + 1)
    np.testing.assert_allclose(loss, -math.log(a[4] + a[1] + a[3]), atol=1e-12)


def test_pointer_sentinel_limits():
    c = case(9)
    plain = [*c["p_vocabulary"], *np.zeros(5)]
    p, _, gate, *_ = sentinel_step(c, [False] * 5)
    assert gate == 1
    np.testing.assert_array_equal(p, plain)
    p, _, gate, *_ = sentinel_step(c, c["mask"], scale=1e4)
    np.testing.assert_allclose(p, plain, atol=1e-12)
    p, copies, gate, *_ = sentinel_step(c, c["mask"], scale=-1e4)
    assert gate == 0
    np.testing.assert_allclose(copies.sum(), 1, atol=1e-12)


def test_pointer_sentinel_projects_its_keys():
    c = case(10)
    W, b, sentinel = c["rng"].normal(size=(3, 2)), c["rng"].normal(size=2), c["rng"].normal(size=2)
    kernel = c["rng"].normal(size=(4, 2))
    arguments = (W, b, sentinel)
    got = head_oracles.pointer_sentinel(
        c["p_vocabulary"],
        c["state"],
        c["memory"],
        c["mask"],
        c["ids"],
        *arguments,
        key_kernel=kernel,
    )
    same = head_oracles.pointer_sentinel(
        c["p_vocabulary"], c["state"], c["memory"] @ kernel, c["mask"], c["ids"], *arguments
    )
    np.testing.assert_allclose(got[0], same[0], atol=1e-12)


# Candidates.


def test_candidate_softmax():
    scores = np.array([50.0, math.log(2), -40.0, math.log(6), 90.0])
    p = head_oracles.candidate_softmax(scores, [3, 1, 3])
    np.testing.assert_allclose(p, [0, 0.25, 0, 0.75, 0], atol=1e-12)
    np.testing.assert_allclose(
        head_oracles.candidate_softmax(scores, range(5)), oracles.softmax(scores), atol=1e-12
    )


def test_candidate_words_keep_the_batch_and_fill_with_frequent_ones():
    assert head_oracles.candidate_words([9, 7, 9], [3, 1, 7, 5, 4], 5) == [1, 3, 5, 7, 9]
    assert head_oracles.candidate_words([9, 7, 8], [3, 1], 2) == [7, 8, 9]
    assert head_oracles.candidate_words([], [3, 1], 9) == [1, 3]
