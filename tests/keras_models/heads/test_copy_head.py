import keras
import numpy as np
import pytest
from keras import ops

from keras_models.heads import CopyHead, PointerNetwork
from keras_models.layers.numerics import add_copies
from tests.keras_models.backends import numpy


def test_a_head_must_answer_both_questions():
    class Half(CopyHead):
        pass

    head = Half(vocabulary_size=7)
    with pytest.raises(NotImplementedError, match="Half must define target_log_prob"):
        head.target_log_prob({}, {}, None)
    with pytest.raises(NotImplementedError, match="Half must define step_log_probs"):
        head.step_log_probs({}, {})
    assert head.get_config()["vocabulary_size"] == 7


class AttentionCopy(CopyHead):
    """Copies by attention alone; has the two methods that a head must have."""

    needs_attention = True

    def target_log_prob(self, state, memory, targets, labels=None, training=False):
        log_probs = self.fold_time(state, memory)
        return ops.take_along_axis(log_probs, ops.expand_dims(targets, -1), axis=-1)[..., 0]

    def step_log_probs(self, state, memory):
        copies = state["attention_log_weights"]
        words = ops.full((*ops.shape(copies)[:-1], self.vocabulary_size), -1e9, copies.dtype)
        return add_copies(words, copies, memory["extended_ids"]), copies


def test_two_methods_are_enough_for_a_functional_model():
    """With lengths that are known only when it runs, and with and without targets."""
    hidden, context = keras.Input((None, 4)), keras.Input((None, 4))
    attention = keras.Input((None, None))
    extended, targets = (keras.Input((None,), dtype="int32") for _ in range(2))
    reads = [hidden, context, attention, extended]
    scores = keras.Model([*reads, targets], AttentionCopy(6)(*reads, targets=targets))
    whole = keras.Model(reads, AttentionCopy(6)(*reads))
    weights = np.array([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]] * 2, "float32")
    ids = np.array([[5, 7, 5]] * 2, "int32")
    arrays = [np.ones((2, 2, 4)), np.ones((2, 2, 4)), weights, ids]
    found = np.exp(numpy(whole(arrays)))
    np.testing.assert_allclose(found[0, :, [5, 7]], [[0.7, 0.8], [0.3, 0.2]], rtol=1e-5)
    scored = np.exp(numpy(scores([*arrays, np.array([[5, 7]] * 2)])))
    np.testing.assert_allclose(scored, [[0.7, 0.2]] * 2, rtol=1e-5)


def test_the_whole_distribution_where_lengths_are_not_known():
    hidden, memory = keras.Input((None, 4)), keras.Input((None, 3))
    extended = keras.Input((None,), dtype="int32")
    model = keras.Model([hidden, memory, extended], PointerNetwork(5)(hidden, memory, extended))
    log_probs = model([np.ones((2, 3, 4)), np.ones((2, 6, 3)), np.full((2, 6), 4)])
    assert log_probs.shape == (2, 3, 11)
