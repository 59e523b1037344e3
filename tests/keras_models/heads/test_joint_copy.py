"""What is joint normalisation's own; the rest is in `test_all_heads.py`."""

import numpy as np
import pytest

from tests.keras_models.backends import numpy
from tests.keras_models.heads.head_cases import CASES, example, step_arguments
from tests.keras_models.heads.sizes import V


def call_of(arrays):
    return {
        name: arrays[name]
        for name in ("hidden", "memory_states", "source_extended_ids", "mask", "decoder_state")
    }


@pytest.mark.parametrize("name", ["joint_copy", "joint_copy, lecture"])
def test_words_and_places_share_one_normaliser(name):
    """With all scores alike each word and each place has the same share."""
    head = CASES[name].make()
    for weight in head.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    arrays = example(np.random.default_rng(0), 1, 1, 5)
    arrays["source_extended_ids"][:] = [4, V + 1, 4, V + 1, 0]
    arrays["mask"][:] = [[True, True, True, True, False]]
    p = np.exp(numpy(head(**call_of(arrays))))[0, 0]
    share = 1 / (V + 4)
    expected = np.full(V + 5, share)
    expected[4], expected[V:] = 3 * share, [0, 2 * share, 0, 0, 0]
    np.testing.assert_allclose(p, expected, rtol=1e-5)
    for target in (4, V + 1, 5):
        log_prob = numpy(head(**call_of(arrays), targets=np.array([[target]])))
        np.testing.assert_allclose(np.exp(log_prob[0, 0]), expected[target], rtol=1e-5)


def test_a_copy_stays_possible_however_unlikely():
    """A placeholder that must be copied must not vanish beside sure words."""
    head = CASES["joint_copy"].make()
    head.vocabulary.bias.assign(np.full(V, 300.0))
    arrays = example(np.random.default_rng(0), 1, 1, 5)
    arrays["source_extended_ids"][:] = [4, V + 1, 4, V + 1, V + 4]
    arrays["mask"][:] = True
    log_probs, _ = numpy(head.step_log_probs(*step_arguments(head, arrays, 0)))
    for target in (V + 1, V + 4):
        log_prob = numpy(head(**call_of(arrays), targets=np.array([[target]])))[0, 0]
        assert -400 < log_prob < -200
        np.testing.assert_allclose(log_probs[0, target], log_prob, rtol=1e-5)
    assert (log_probs[0, [V, V + 2, V + 3]] < -1e8).all()


def test_no_mask_is_no_padding():
    head = CASES["joint_copy"].make()
    arrays = example(np.random.default_rng(0))
    arrays["mask"][:] = True
    call = call_of(arrays)
    del call["mask"]
    np.testing.assert_array_equal(numpy(head(**call)), numpy(head(**call_of(arrays))))
