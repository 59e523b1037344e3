"""The oracles against hand-computed cases and known limits:
what judges the layers must itself be right.
"""

import math

import numpy as np
import pytest

from tests.keras_models import (
    decoding_oracles,
    head_oracles,
    label_oracles,
    oracles,
    recurrent_oracles,
)

V = 6


def case(seed, length=5, padding=1, memory_size=4, state_size=3):
    """A source with a known word twice, an unknown one twice, and padding."""
    rng = np.random.default_rng(seed)
    ids = [5, V + 1, 4, V + 1, 5, V + 5, V + 6][: length - padding] + [0] * padding
    return {
        "rng": rng,
        "memory": rng.normal(size=(length, memory_size)),
        "mask": [j < length - padding for j in range(length)],
        "ids": ids,
        "state": rng.normal(size=state_size),
        "context": rng.normal(size=memory_size),
        "p_vocabulary": rng.dirichlet(np.ones(V)),
    }


def assert_distribution(p, copies, mask):
    assert np.all(p >= 0)
    np.testing.assert_allclose(p.sum(), 1, atol=1e-12)
    assert np.all(copies[~np.array(mask)] == 0)


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


# Span copy.


def span_weights(rng, inputs=2, state=3, memory=4, size=2):
    m = inputs + state + memory

    def pointer():
        return (
            rng.normal(size=(memory, 3)),
            rng.normal(size=(3, 3)),
            rng.normal(size=3),
            rng.normal(size=3),
        )

    return {
        "gate": (
            rng.normal(size=(m, 3)),
            rng.normal(size=3),
            rng.normal(size=(3, 1)),
            rng.normal(size=1),
        ),
        "readout": tuple(rng.normal(size=(n, 2 * size)) for n in (inputs, memory, state)),
        "output": (rng.normal(size=(size, V)), None),
        "start_query": (rng.normal(size=(m, 3)), rng.normal(size=3)),
        "start_pointer": pointer(),
        "transducer_state": (rng.normal(size=(m, 3)), rng.normal(size=3)),
        "transducer": {
            "kernel": rng.normal(size=(memory, 9)),
            "recurrent_kernel": rng.normal(size=(3, 9)),
            "bias": rng.normal(size=(2, 9)),
        },
        "end_pointer": pointer(),
    }


def span_step(c, weights, max_span=2, mask=None, embedding=None, transducer_input="start"):
    embedding = np.array([0.3, -0.7]) if embedding is None else embedding
    mask = c["mask"] if mask is None else mask
    return head_oracles.span_copy(
        embedding, c["state"], c["context"], c["memory"], mask, weights, max_span, transducer_input
    )


@pytest.mark.parametrize("transducer_input", ["start", "expected"])
@pytest.mark.parametrize("max_span", [1, 2, 9])
def test_spans_are_a_distribution(transducer_input, max_span):
    c = case(11, length=7, padding=2)
    step = span_step(c, span_weights(c["rng"]), max_span, transducer_input=transducer_input)
    assert_distribution(step["distribution"], step["copies"], c["mask"])
    np.testing.assert_allclose(step["end"].sum(axis=1), c["mask"], atol=1e-12)
    np.testing.assert_allclose(step["span"].sum(), step["p_copy"], atol=1e-12)
    for j in range(7):
        for k in range(7):
            allowed = c["mask"][j] and c["mask"][k] and j <= k < j + max_span
            assert (step["end"][j, k] > 0) == allowed == (step["span"][j, k] > 0)


def test_span_copy_agrees_with_matrices():
    c = case(12)
    weights = span_weights(c["rng"])
    embedding = np.array([0.3, -0.7])
    step = span_step(c, weights, max_span=9)
    m = np.concatenate([embedding, c["state"], c["context"]])
    W_1, b_1, W_2, b_2 = weights["gate"]
    np.testing.assert_allclose(
        step["p_copy"], 1 / (1 + np.exp(-(np.tanh(m @ W_1 + b_1) @ W_2 + b_2)[0])), atol=1e-12
    )
    W_r, U_r, V_r = weights["readout"]
    readout = (embedding @ W_r + c["context"] @ U_r + c["state"] @ V_r).reshape(2, 2).max(axis=1)
    powers = np.exp(readout @ weights["output"][0])
    np.testing.assert_allclose(step["vocabulary"], powers / powers.sum(), atol=1e-12)

    def point(query, pointer, first):
        W_h, W_s, v, b = pointer
        powers = np.exp(np.tanh(c["memory"] @ W_h + query @ W_s + b) @ v)
        powers[:first] = powers[4:] = 0
        return powers / powers.sum()

    start = point(
        np.tanh(m @ weights["start_query"][0] + weights["start_query"][1]),
        weights["start_pointer"],
        0,
    )
    np.testing.assert_allclose(step["start"], start, atol=1e-12)
    initial = np.tanh(m @ weights["transducer_state"][0] + weights["transducer_state"][1])
    query = oracles.gru(c["memory"][1], initial, **weights["transducer"])
    np.testing.assert_allclose(step["end"][1], point(query, weights["end_pointer"], 1), atol=1e-12)
    # The expected context gives another query, the same for every start.
    expected = span_step(c, weights, max_span=9, transducer_input="expected")
    query = oracles.gru(start @ c["memory"], initial, **weights["transducer"])
    for j in range(4):
        np.testing.assert_allclose(
            expected["end"][j], [*point(query, weights["end_pointer"], j)], atol=1e-12
        )
    assert np.abs(expected["end"][0] - step["end"][0]).max() > 1e-3


def test_transducers_agree_on_a_certain_start():
    c = case(13)
    weights = span_weights(c["rng"])
    W_h, W_s, v, b = weights["start_pointer"]
    c["memory"][2] += 2
    weights["start_pointer"] = (np.full_like(W_h, 5.0), 0 * W_s, 300 * np.abs(v), 0 * b - 20)
    steps = [span_step(c, weights, transducer_input=kind) for kind in ("start", "expected")]
    j = int(np.argmax(steps[0]["start"]))
    assert steps[0]["start"][j] > 1 - 1e-9
    np.testing.assert_allclose(steps[0]["end"][j], steps[1]["end"][j], atol=1e-6)


def test_span_copy_limits():
    c = case(14)
    weights = span_weights(c["rng"])
    nothing = span_step(c, weights, mask=[False] * 5)
    assert nothing["p_copy"] == 0 and not nothing["span"].any()
    np.testing.assert_array_equal(nothing["distribution"][:V], nothing["vocabulary"])
    # A saturated gate: only the vocabulary's softmax, or only the pointer.
    W_1, b_1, W_2, _ = weights["gate"]
    for bias, p_copy in ((-1000.0, 0), (1000.0, 1)):
        step = span_step(c, {**weights, "gate": (W_1, b_1, W_2, np.array([bias]))})
        assert step["p_copy"] == p_copy
        np.testing.assert_array_equal(
            step["distribution"], [*(1 - p_copy) * step["vocabulary"], *p_copy * step["start"]]
        )
    # Spans of one token end where they start.
    one = span_step(c, weights, max_span=1)
    np.testing.assert_allclose(np.diag(one["span"]), one["p_copy"] * one["start"], atol=1e-12)


def test_span_loss_pays_once_a_span():
    c = case(15)
    weights = span_weights(c["rng"])
    steps = [span_step(c, weights, embedding=c["rng"].normal(size=2)) for _ in range(4)]
    segments = [("generate", 4), ("copy", 1, 2), ("generate", 3)]
    p = (1 - steps[0]["p_copy"]) * steps[0]["vocabulary"][4] * steps[1]["span"][1, 2]
    p *= (1 - steps[3]["p_copy"]) * steps[3]["vocabulary"][3]
    np.testing.assert_allclose(
        head_oracles.span_copy_loss(steps, segments), -math.log(p), atol=1e-12
    )
    assert head_oracles.span_copy_loss(steps, [("copy", 2, 1), *segments]) == math.inf
    with pytest.raises(ValueError, match="3 tokens"):
        head_oracles.span_copy_loss(steps, segments[:2])


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


# Recurrent pieces.


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


# Labels.


def test_longest_match_spans():
    source = "the red sox beat the blue jays and the blue sky".split()
    target = "the blue sky saw red sox beat the jays".split()
    assert label_oracles.longest_match_spans(source, target, 5) == [
        ("copy", 8, 10),
        ("generate", "saw"),
        ("copy", 1, 4),
        ("copy", 6, 6),
    ]
    # Of equal spans the first; too long ones are cut; single words are generated if spans have at
    # least two.
    assert label_oracles.longest_match_spans(source, ["the", "blue"], 5) == [("copy", 4, 5)]
    assert label_oracles.longest_match_spans(source, target[4:8], 3) == [
        ("copy", 1, 3),
        ("copy", 0, 0),
    ]
    assert label_oracles.longest_match_spans(source, ["jays", "red", "sox"], 5, 2) == [
        ("generate", "jays"),
        ("copy", 1, 2),
    ]
    assert label_oracles.longest_match_spans([], ["a"], 5) == [("generate", "a")]
    assert label_oracles.longest_match_spans(["a"], [], 5) == []


def test_spans_spell_the_target():
    rng = np.random.default_rng(5)
    for _ in range(50):
        source, target = (list(rng.choice(list("abcd"), size=rng.integers(0, 9))) for _ in range(2))
        words = []
        for segment in label_oracles.longest_match_spans(source, target, 3):
            words += (
                [segment[1]] if segment[0] == "generate" else source[segment[1] : segment[2] + 1]
            )
        assert words == target


def test_unknown_word_pointers():
    source = ["tang", "set", "a", "tang", "record"]
    assert label_oracles.unknown_word_pointers(
        source, ["a", "tang", "gong", "record"], {"a", "gold"}
    ) == [-1, 0, -1, 4]


def test_dictionary_pointers():
    source = ["the", "dog", "hound", "Rex", "dog"]
    dictionary = {"chien": ["hound", "dog"], "Rex": ["king"], "chat": ["cat"]}
    target = ["le", "chien", "Rex", "chat", "loup"]
    assert label_oracles.dictionary_pointers(source, target, {"le"}, dictionary) == [
        -1,
        2,
        3,
        -2,
        -2,
    ]
    assert label_oracles.dictionary_pointers(source, target, {"le"}, dictionary, earliest=True) == [
        -1,
        1,
        3,
        -2,
        -2,
    ]


def test_entity_pointers():
    source, target = ["Ann", "Lee", "met", "Ann", "Roe"], ["Roe", "Lee", "met", "Kim", "Ann"]
    source_ids, target_ids, pointers = label_oracles.entity_pointers(
        source, target, [True, True, False, True, True], [True, True, False, True, True]
    )
    assert (source_ids, target_ids, pointers) == (
        [1, 2, 0, 1, 3],
        [3, 2, 0, 4, 1],
        [4, 1, -1, -1, 0],
    )
    # A word that is no entity in the source is not pointed to.
    assert label_oracles.entity_pointers(["May"], ["May"], [False], [True]) == ([0], [1], [-1])


# Decoding.


def span_table(seed, length, last):
    """Random distributions for each prefix; after `last` tokens or more the end is certain."""

    def step(prefix):
        rng = np.random.default_rng([seed, *prefix])
        end = np.triu(rng.dirichlet(np.ones(length), size=length))
        end[:, 2:] *= np.arange(2, length) < np.arange(length)[:, None] + 2  # at most two tokens
        vocabulary = np.zeros(V)
        vocabulary[[3, 4, 5]] = rng.dirichlet(np.ones(3)) if len(prefix) < last else [1, 0, 0]
        return {
            "p_copy": rng.uniform() if len(prefix) < last else 0.0,
            "vocabulary": vocabulary,
            "start": rng.dirichlet(np.ones(length)),
            "end": end / end.sum(axis=1, keepdims=True),
        }

    return step


def test_derivations_of_a_model_that_ends_sum_to_one():
    derivations = decoding_oracles.span_derivations(
        span_table(0, 3, 2), [5, V + 1, 4], [4, 5], 3, 4, 1.0
    )
    np.testing.assert_allclose(sum(math.exp(d[1]) for d in derivations), 1, atol=1e-12)
    assert all(a[0] >= b[0] for a, b in zip(derivations, derivations[1:]))
    assert len({d[4] for d in derivations}) == len(derivations) > len({d[2] for d in derivations})
    for _, _, tokens, copied_from, segments in derivations:
        assert all(p == -1 or [5, V + 1, 4][p] == token for token, p in zip(tokens, copied_from))
        assert all(b - a < 2 for kind, a, *rest in segments if kind == "copy" for b in rest)


def test_a_derivation_by_hand():
    def step(prefix):
        vocabulary = np.array([0, 0, 0, 0.5, 0.5, 0])
        return {
            "p_copy": 0.2,
            "vocabulary": vocabulary,
            "start": [0.25, 0.75],
            "end": [[0.1, 0.9], [0.0, 1.0]],
        }

    for count, length in (("tokens", 4), ("segments", 3)):
        derivations = decoding_oracles.span_derivations(
            step, [V, V + 1], [4], 3, 3, 0.6, count=count
        )
        (found,) = (d for d in derivations if d[4] == (("generate", 4), ("copy", 0, 1)))
        p = 0.8 * 0.5 * 0.2 * 0.25 * 0.9 * 0.8 * 0.5
        np.testing.assert_allclose(found[1], math.log(p), atol=1e-12)
        np.testing.assert_allclose(found[0], math.log(p) / ((5 + length) / 6) ** 0.6, atol=1e-12)
        assert found[2:4] == ((4, V, V + 1), (-1, 0, 1))


def test_derivations_without_copying_are_an_exhaustive_search():
    table = span_table(1, 2, 99)

    def step(prefix):
        return {**table(prefix), "p_copy": 0.0}

    def log_distribution(prefix):
        return np.log(np.maximum(table(prefix)["vocabulary"], 1e-300)), np.zeros(2)

    got = decoding_oracles.span_derivations(step, [V, V + 1], [4, 5], 3, 3, 0.7, min_length=1)
    expected = oracles.exhaustive_search(log_distribution, [4, 5], 3, 3, 1, 0.7, 0, [True, True])
    assert [d[2] for d in got] == [e[2] for e in expected]
    np.testing.assert_allclose([d[:2] for d in got], [e[:2] for e in expected], atol=1e-12)


def test_sampling_distributions_by_hand():
    p = np.array([0.1, 0.4, 0.2, 0.3])
    sample = decoding_oracles.sampling_distribution
    np.testing.assert_allclose(sample(p), p, atol=1e-12)
    np.testing.assert_allclose(sample(p, temperature=0.5), p**2 / 0.3, atol=1e-12)
    np.testing.assert_allclose(sample(p, top_k=2), [0, 4 / 7, 0, 3 / 7], atol=1e-12)
    np.testing.assert_allclose(sample(p, top_p=0.65), [0, 4 / 7, 0, 3 / 7], atol=1e-12)
    np.testing.assert_allclose(sample(p, top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9], atol=1e-12)
    np.testing.assert_allclose(sample(p, top_p=1e-9), [0, 1, 0, 0], atol=1e-12)
    # Each works on what the one before left: squared 16 : 9 : 4 : 1, of which three, 16/29 < 0.6 <=
    # 25/29.
    np.testing.assert_allclose(sample(p, 0.5, 3, 0.6), [0, 16 / 25, 0, 9 / 25], atol=1e-12)
    np.testing.assert_allclose(sample([0.5, 0, 0.5], 3.0, top_k=1), [1, 0, 0], atol=1e-12)
