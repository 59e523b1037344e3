import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models.layers import SoftmaxHead
from tests.keras_models import oracles
from tests.keras_models.backends import numpy, randomize

V, HIDDEN = 7, 3


def make(seed=0, **kwargs):
    head = SoftmaxHead(V, **kwargs)
    head.build((None, None, HIDDEN))
    randomize(head, seed)
    return head


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), source_length=st.sampled_from([1, 4]))
def test_agrees_with_the_equation_and_never_copies(seed, source_length):
    rng = np.random.default_rng(seed)
    head = make(seed)
    hidden = rng.normal(size=(2, 4, HIDDEN)).astype("float32")
    targets = rng.integers(0, V + source_length, size=(2, 4))
    memory = {"extended_ids": rng.integers(0, V + source_length, size=(2, source_length))}
    log_prob = numpy(head(hidden, targets))
    everything = numpy(head(hidden))
    kernel, bias = numpy(head.vocabulary.kernel.value), numpy(head.vocabulary.bias.value)
    for t in range(4):
        log_probs, copies = numpy(
            head.step_log_probs({"hidden": keras.ops.convert_to_tensor(hidden[:, t])}, memory)
        )
        assert log_probs.shape == (2, V + source_length) and copies.shape == (2, source_length)
        assert (np.exp(copies) == 0).all() and (np.exp(log_probs[:, V:]) == 0).all()
        for b in range(2):
            expected = oracles.vocabulary_distribution(hidden[b, t], kernel, bias)
            np.testing.assert_allclose(np.exp(log_probs[b, :V]), expected, atol=1e-5)
            np.testing.assert_allclose(np.exp(everything[b, t]), expected, atol=1e-5)
            # A copy id is trained as the unknown word.
            label = targets[b, t] if targets[b, t] < V else 1
            np.testing.assert_allclose(log_prob[b, t], np.log(expected[label]), atol=1e-5)


def test_the_unknown_word_can_be_another():
    head = make(unknown_id=4)
    hidden = np.ones((1, 1, HIDDEN), "float32")
    np.testing.assert_array_equal(
        numpy(head(hidden, np.array([[V + 2]]))), numpy(head(hidden, np.array([[4]])))
    )
    assert numpy(head(hidden, np.array([[V + 2]]))) != numpy(head(hidden, np.array([[1]])))


def test_config_round_trip_and_mixed_precision():
    head = make(unknown_id=4, dtype="mixed_bfloat16", name="mine")
    copy = SoftmaxHead.from_config(head.get_config())
    assert copy.get_config() == head.get_config()
    assert (copy.vocabulary_size, copy.unknown_id, copy.name) == (V, 4, "mine")
    assert copy.vocabulary.compute_dtype == "bfloat16"
    log_probs = head(np.ones((2, 3, HIDDEN), "float32"))
    assert keras.backend.standardize_dtype(log_probs.dtype) == "float32"
    np.testing.assert_allclose(np.exp(numpy(log_probs)).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("bias", [1e4, -1e4])
def test_saturated_logits_stay_finite(bias):
    head = make()
    head.vocabulary.bias.assign([bias] + [0.0] * (V - 1))
    log_prob = numpy(head(np.ones((1, 2, HIDDEN), "float32"), np.array([[0, 1]])))
    assert np.isfinite(log_prob).all() and (log_prob <= 0).all()
