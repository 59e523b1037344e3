"""Span copy's oracle against matrices and known limits."""

import math

import numpy as np
import pytest

from tests.keras_models import (
    oracles,
    span_copy_oracle,
)
from tests.keras_models.oracle_case import V, assert_distribution, case


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
    return span_copy_oracle.span_copy(
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
        span_copy_oracle.span_copy_loss(steps, segments), -math.log(p), atol=1e-12
    )
    assert span_copy_oracle.span_copy_loss(steps, [("copy", 2, 1), *segments]) == math.inf
    with pytest.raises(ValueError, match="3 tokens"):
        span_copy_oracle.span_copy_loss(steps, segments[:2])
