"""A softmax whose weights are an embedding's."""

import keras
import numpy as np
import pytest

from keras_models.heads import PointerNetwork
from keras_models.layers import VocabularySoftmax
from keras_models.layers.embeddings import token_embedding
from keras_models.layers.numerics import LOG_ZERO
from keras_models.layers.vocabulary import softmax_candidates
from tests.keras_models import head_oracles, oracles
from tests.keras_models.backends import numpy, randomize, value_and_gradients

V, HIDDEN = 11, 3
SIZES = [HIDDEN, 5]


def make(size, dtype="float32"):
    embedding = token_embedding(V, size, dtype, "words")
    layer = VocabularySoftmax(V, dtype=dtype)
    layer.tie(embedding)
    layer.build((None, None, HIDDEN))
    randomize(layer)
    return layer


def scores_of(layer, hidden):
    """E P h + b, in float64."""
    table = numpy(layer.embedding.embeddings.value).astype("float64")
    if layer.projection is not None:
        hidden = oracles.affine(hidden, numpy(layer.projection.value))
    return oracles.affine(hidden, table.T, numpy(layer.bias.value))


def hidden_and_targets():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2, 4, HIDDEN)).astype("float32")
    return hidden, rng.integers(0, V + 3, size=(2, 4)).astype("int32")


@pytest.mark.parametrize("size", SIZES)
def test_every_way_to_ask_gives_the_definition(size):
    layer = make(size)
    hidden, targets = hidden_and_targets()
    known = np.minimum(targets, V - 1)
    words = np.sort(np.random.default_rng(1).permutation(V)[:4]).astype("int32")[None]
    words = np.repeat(words, 2, axis=0)
    scores = np.array([[scores_of(layer, step) for step in row] for row in hidden])
    expected = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    close = dict(rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(numpy(layer(hidden)), scores, **close)
    np.testing.assert_allclose(numpy(layer.logits(hidden)), scores, **close)
    np.testing.assert_allclose(numpy(layer.log_probs(hidden)), expected, **close)
    at_targets = np.take_along_axis(scores, known[..., None], -1)[..., 0]
    np.testing.assert_allclose(numpy(layer.logits_at(hidden, known)), at_targets, **close)
    np.testing.assert_allclose(
        numpy(layer.logits_of(hidden, words)), scores[:, :, words[0]], **close
    )
    chosen = np.take_along_axis(expected, known[..., None], -1)[..., 0]
    chosen = np.where(targets < V, chosen, LOG_ZERO)
    np.testing.assert_allclose(numpy(layer.target_log_prob(hidden, targets)), chosen, **close)
    np.testing.assert_allclose(numpy(layer.mean_logit(hidden)), scores.mean(-1), **close)
    for columns in (None, layer.columns()):
        shortlist = layer.shortlist(words, columns)
        np.testing.assert_allclose(
            numpy(layer.logits(hidden[:, 0], shortlist)), scores[:, 0, words[0]], **close
        )
    # The kernel is what multiplies the projected states.
    kernel = numpy(keras.ops.convert_to_tensor(layer.kernel))
    np.testing.assert_array_equal(kernel, numpy(layer.embedding.embeddings.value).T)
    np.testing.assert_allclose(
        numpy(layer.project(hidden)) @ kernel + numpy(layer.bias.value), scores, **close
    )


@pytest.mark.parametrize("size", SIZES)
def test_the_large_vocabulary_trick(size):
    layer = make(size)
    hidden, targets = hidden_and_targets()
    candidates = softmax_candidates(targets, V, 9)
    log_prob = numpy(layer.target_log_prob(hidden, targets, candidates))
    words = head_oracles.candidate_words(targets[targets < V], range(V), 9)
    for b, t in zip(*np.nonzero(targets < V)):
        p = head_oracles.candidate_softmax(scores_of(layer, hidden[b, t]), words)
        np.testing.assert_allclose(log_prob[b, t], np.log(p[targets[b, t]]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_the_embedding_learns_from_both_uses(size):
    """Its gradient is that of the input and that of the softmax."""
    layer = make(size)
    hidden, targets = hidden_and_targets()
    targets = np.minimum(targets, 8)

    def loss():
        return keras.ops.mean(layer.target_log_prob(hidden, targets))

    _, gradients = value_and_gradients(loss, [], layer)
    by_shape = {gradient.shape: gradient for gradient in gradients}
    assert len(gradients) == (2 if size == HIDDEN else 3) == len(layer.trainable_weights)
    # The softmax pushes every word.
    assert (np.abs(by_shape[V, size]).max(axis=1) > 0).all()


def test_no_softmax_of_other_words_or_after_it_is_built():
    with pytest.raises(ValueError, match="over 11 words cannot be tied to an embedding of 12"):
        VocabularySoftmax(V).tie(token_embedding(12, 3, "float32", "words"))
    layer = VocabularySoftmax(V)
    layer.build((None, HIDDEN))
    with pytest.raises(ValueError, match="must be tied to an embedding before it is built"):
        layer.tie(token_embedding(V, 3, "float32", "words"))
    with pytest.raises(ValueError, match="PointerNetwork has no softmax over words"):
        PointerNetwork(V).tie(token_embedding(V, 3, "float32", "words"))


def test_mixed_precision():
    layer = make(5, "mixed_bfloat16")
    hidden, targets = hidden_and_targets()
    full = numpy(layer.target_log_prob(hidden, targets))
    same = numpy(make(5).target_log_prob(hidden, targets))
    assert full.dtype == np.float32
    np.testing.assert_allclose(full, same, atol=0.1)
