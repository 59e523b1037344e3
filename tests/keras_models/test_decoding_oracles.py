"""The searches' oracles against hand-computed cases and each other."""

import math

import numpy as np

from tests.keras_models import (
    decoding_oracles,
    oracles,
)
from tests.keras_models.oracle_case import V


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
