"""What is the pointer softmax's own; the rest is in `test_all_heads.py`."""

import numpy as np
import pytest
from keras import ops

from keras_models.heads.copy_head import POINTERS
from keras_models.heads.pointer_softmax import GENERATED, MOST_ATTENDED
from keras_models.layers import PointerSoftmax
from tests.keras_models import head_oracles, oracles
from tests.keras_models.backends import numpy
from tests.keras_models.heads.case_oracles import activation_of, dense
from tests.keras_models.heads.head_cases import CASES, SHAPES, example, step_arguments
from tests.keras_models.heads.sizes import V


def call_of(arrays):
    return {name: arrays[name] for name in ("hidden", "context", "attention", "decoder_state")}


def test_it_starts_by_favouring_the_shortlist():
    """The paper's -1 means the shortlist (section 5.3):
    p(z = 1) = sigmoid(1) where the rest of the switch is 0.
    """
    head = PointerSoftmax(V)
    head.build_for(**SHAPES)
    assert numpy(head.switch.bias.value).tolist() == [1.0]
    arrays = example(np.random.default_rng(0))
    arrays["context"][:], arrays["decoder_state"][:] = 0, 0
    shortlist = np.exp(numpy(head(**call_of(arrays))))[..., :V].sum(-1)
    np.testing.assert_allclose(shortlist, 1 / (1 + np.exp(-1)), rtol=1e-5)


def test_locations_are_not_merged():
    """Two places of one word, which the shortlist knows too, are three outcomes."""
    head = CASES["pointer_softmax"].make()
    arrays = example(np.random.default_rng(0), 1, 1, 3)
    arrays["mask"][:] = True
    arrays["source_extended_ids"][:] = 4
    arrays["attention"][:] = [0.5, 0.2, 0.3]
    p = np.exp(numpy(head(**call_of(arrays))))[0, 0]
    np.testing.assert_allclose(p[V:] / p[V:].sum(), [0.5, 0.2, 0.3], rtol=1e-5)
    for target in (4, V, V + 1, V + 2):
        log_prob = numpy(head(**call_of(arrays), targets=np.array([[target]])))
        np.testing.assert_allclose(np.exp(log_prob[0, 0]), p[target], rtol=1e-5)


def test_labels_tell_the_switch():
    """Pointers come from the data.

    A known word may be pointed at, and -2 points at what attention looks at.
    """
    head = CASES["pointer_softmax"].make()
    arrays = example(np.random.default_rng(3), 2, 4, 4)
    p = numpy(head(**call_of(arrays)))
    targets = np.array([[4, 5, 1, 1]] * 2, "int32")
    pointers = np.array([[0, GENERATED, MOST_ATTENDED, GENERATED]] * 2, "int32")
    steps = [step_arguments(head, arrays, t) for t in range(4)]
    state = {name: ops.stack([step[0][name] for step in steps], axis=1) for name in steps[0][0]}
    log_prob = numpy(head.target_log_prob(state, {}, targets, {POINTERS: pointers}))
    for b in range(2):
        outcomes = [V, 5, V + int(np.argmax(arrays["attention"][b, 2])), 1]
        np.testing.assert_allclose(
            log_prob[b], [p[b, t, w] for t, w in enumerate(outcomes)], rtol=1e-5
        )


@pytest.mark.parametrize("bias", [0.0, 90.0, -90.0])
def test_the_likelihood_of_a_saturated_switch(bias):
    case = CASES["pointer_softmax, noisy and sharp"]
    head = case.make()
    head.switch.bias.assign([bias])
    arrays = example(np.random.default_rng(0))
    for target in (4, V):
        log_prob = numpy(head(**call_of(arrays), targets=np.full((2, 3), target)))
        for b, t in np.ndindex(2, 3):
            switch = head_oracles.pointer_softmax_switch(
                arrays["context"][b, t],
                arrays["decoder_state"][b, t],
                *(part for layer in (head.lower, head.upper, head.switch) for part in dense(layer)),
                [
                    activation_of(layer, "noisy_tanh")
                    for layer in (head.lower_activation, head.upper_activation)
                ],
            )
            shortlist = oracles.vocabulary_distribution(
                arrays["hidden"][b, t], *dense(head.vocabulary)
            )
            expected = head_oracles.pointer_softmax_log_likelihood(
                shortlist, arrays["attention"][b, t], switch, target, temperature=2.0
            )
            np.testing.assert_allclose(log_prob[b, t], expected, rtol=1e-5)


def test_noise_is_for_training_alone():
    head = CASES["pointer_softmax, noisy and sharp"].make()
    arrays = example(np.random.default_rng(0))
    arrays["context"] *= 20  # into saturation, where there is noise
    call, targets = call_of(arrays), np.full((2, 3), 4)
    first, second = (numpy(head(**call, targets=targets, training=True)) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(
        numpy(head(**call, targets=targets)), numpy(head(**call, targets=targets))
    )


def test_an_activation_that_is_not_known():
    with pytest.raises(ValueError):
        head = PointerSoftmax(V, activation="wavy")
        head.build_for(**SHAPES)
