import itertools

import keras
import numpy as np
import pytest

from keras_models.layers import VocabularySoftmax
from keras_models.layers.numerics import LOG_ZERO
from keras_models.layers.vocabulary import Candidates, softmax_candidates
from tests.keras_models import head_oracles, oracles
from tests.keras_models.backends import numpy, randomize, traced_shapes, value_and_gradients

V, HIDDEN = 11, 3


def make(**kwargs):
    layer = VocabularySoftmax(V, **kwargs)
    layer.build((None, None, HIDDEN))
    randomize(layer)
    return layer


def hidden_and_targets(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 4, HIDDEN)).astype("float32"), rng.integers(
        0, V + 3, size=(2, 4)
    ).astype("int32")


def alike(words):
    """Candidates of which each stands for itself alone."""
    return Candidates(np.asarray(words, "int32"), np.zeros(len(words), "float32"))


def words_of(candidates):
    return sorted(numpy(candidates.words).tolist())


def scores_of(layer, hidden):
    return oracles.affine(hidden, numpy(layer.kernel.value), numpy(layer.bias.value))


@pytest.mark.parametrize("words", [100, 3000])
def test_scores_vary_as_the_components_of_h_at_first(words):
    """However many words there are; and biases are 0."""
    size = 64
    layer = VocabularySoftmax(words)
    layer.build((None, size))
    hidden = np.random.default_rng(0).normal(0, 0.3, (200, size))
    scores = numpy(layer(hidden.astype("float32")))
    assert abs(scores.std() / hidden.std() - 1) < 0.05
    assert abs(scores.mean()) < 0.01


@pytest.mark.parametrize("dtype", [None, "mixed_bfloat16"])
def test_all_words_as_candidates_are_the_full_softmax(dtype):
    layer = make(dtype=dtype)
    hidden, targets = hidden_and_targets()
    everything = alike(np.random.default_rng(1).permutation(V))
    full, same = (
        numpy(layer.target_log_prob(hidden, targets, candidates))
        for candidates in (None, everything)
    )
    assert full.dtype == same.dtype == np.float32
    np.testing.assert_allclose(same, full, atol=1e-5 if dtype is None else 0.02)
    assert (full[targets >= V] == LOG_ZERO).all() and (full[targets < V] > -50).all()


@pytest.mark.parametrize("seed", range(3))
def test_candidates_agree_with_the_definition(seed):
    layer = make()
    hidden, targets = hidden_and_targets(seed)
    candidates = softmax_candidates(targets, V, 9)
    expected = head_oracles.candidate_words(targets[targets < V], range(V), 9)
    assert words_of(candidates) == expected and not numpy(candidates.log_weights).any()
    log_prob = numpy(layer.target_log_prob(hidden, targets, candidates))
    logits, normaliser = numpy(layer.target_logits(hidden, targets, candidates))
    for b, t in np.ndindex(2, 4):
        scores = scores_of(layer, hidden[b, t])
        np.testing.assert_allclose(
            normaliser[b, t], np.log(sum(np.exp(scores[w]) for w in expected)), rtol=1e-5
        )
        if targets[b, t] < V:
            p = head_oracles.candidate_softmax(scores, expected)
            np.testing.assert_allclose(
                log_prob[b, t], np.log(p[targets[b, t]]), rtol=1e-5, atol=1e-5
            )
            np.testing.assert_allclose(logits[b, t], scores[targets[b, t]], rtol=1e-5, atol=1e-5)
        else:
            assert log_prob[b, t] == LOG_ZERO


def test_every_target_is_a_candidate_and_the_rest_the_most_frequent():
    targets = np.array([[10, 9, 10], [0, V + 2, 9]], "int32")
    assert words_of(softmax_candidates(targets, V, 5)) == [0, 1, 2, 9, 10]
    assert words_of(softmax_candidates(targets, V, V)) == list(range(V))


def test_a_target_without_a_place_joins_its_own_softmax():
    """More different words than places: no target is scored as another word."""
    layer = make()
    hidden, _ = hidden_and_targets()
    targets = np.array([[4, 6, 8, 10], [5, 7, 9, 4]], "int32")
    candidates = softmax_candidates(targets, V, 3)
    assert words_of(candidates) == [4, 5, 6]
    log_prob = numpy(layer.target_log_prob(hidden, targets, candidates))
    for b, t in np.ndindex(2, 4):
        p = head_oracles.candidate_softmax(scores_of(layer, hidden[b, t]), [4, 5, 6, targets[b, t]])
        np.testing.assert_allclose(log_prob[b, t], np.log(p[targets[b, t]]), rtol=1e-5, atol=1e-5)


def test_gradients_reach_the_candidates_alone():
    layer = make()
    hidden, targets = hidden_and_targets()
    targets = np.minimum(targets, 8)
    candidates = np.array(head_oracles.candidate_words(targets.ravel(), range(V), 9), "int32")

    def loss(hidden):
        return keras.ops.mean(layer.target_log_prob(hidden, targets, alike(candidates)))

    _, (_, kernel, bias) = value_and_gradients(loss, [hidden], layer)
    others = [w for w in range(V) if w not in candidates]
    assert others and (kernel[:, others] == 0).all() and (bias[others] == 0).all()
    assert (np.abs(bias[candidates]) > 0).all()


def test_training_builds_no_logits_of_all_words():
    layer = make()
    hidden, targets = hidden_and_targets()
    candidates = alike(np.arange(9))

    def loss(hidden, targets, *candidates):
        return keras.ops.sum(layer.target_log_prob(hidden, targets, Candidates(*candidates)))

    shapes = traced_shapes(loss, layer, hidden, np.minimum(targets, 8), *candidates)
    assert (2, 4, 9) in shapes or (8, 9) in shapes
    assert not {(2, 4, V), (8, V)} & shapes


@pytest.mark.parametrize("drawn", [1, 3, 6])
def test_drawn_words_stand_for_the_others(drawn):
    targets = np.array([[10, 9, 10], [0, V + 2, 9]], "int32")
    words, log_weights = map(numpy, softmax_candidates(targets, V, 5, drawn, seed=drawn))
    assert sorted(words[:5].tolist()) == [0, 1, 2, 9, 10] and not log_weights[:5].any()
    assert len(set(words.tolist())) == 5 + drawn and set(words[5:].tolist()) <= {3, 4, 5, 6, 7, 8}
    np.testing.assert_allclose(np.exp(log_weights[5:]), 6 / drawn, rtol=1e-6)


def test_each_call_draws_others_with_equal_chances():
    seed = keras.random.SeedGenerator(3)
    targets = np.zeros((1, 1), "int32")
    counts = np.zeros(V)
    for _ in range(600):
        counts[numpy(softmax_candidates(targets, V, 5, 2, seed=seed).words)] += 1
    assert (counts[:5] == 600).all()
    # Binomial of 600 draws with chance 1 / 3: mean 200, standard deviation 11.5.
    assert (np.abs(counts[5:] - 200) < 50).all() and counts[5:].sum() == 1200


def test_the_expected_sum_is_that_of_all_words():
    """Over all 15 draws of two of six words."""
    layer = make()
    hidden, targets = hidden_and_targets()
    known = targets < V
    sums, log_weights = [], np.array([0.0] * 5 + [np.log(3)] * 2, "float32")
    for others in itertools.combinations([3, 4, 5, 6, 7, 8], 2):
        candidates = Candidates(np.array([0, 1, 2, 9, 10, *others], "int32"), log_weights)
        log_prob = numpy(layer.target_log_prob(hidden, targets, candidates))
        logits, normaliser = map(numpy, layer.target_logits(hidden, targets, candidates))
        for b, t in zip(*np.nonzero(known & np.isin(targets, candidates.words))):
            scores = scores_of(layer, hidden[b, t])
            p = head_oracles.candidate_softmax(scores, candidates.words, dict.fromkeys(others, 3.0))
            np.testing.assert_allclose(
                log_prob[b, t], np.log(p[targets[b, t]]), rtol=1e-5, atol=1e-5
            )
        # A target that is no candidate joined its sum.
        joined = known & ~np.isin(targets, candidates.words)
        sums.append(np.exp(normaliser) - np.where(joined, np.exp(logits), 0.0))
    for b, t in np.ndindex(2, 4):
        everything = np.exp(scores_of(layer, hidden[b, t])).sum()
        np.testing.assert_allclose(np.mean([one[b, t] for one in sums]), everything, rtol=1e-5)
