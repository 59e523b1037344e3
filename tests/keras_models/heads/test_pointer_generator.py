"""What is the pointer-generator's own; the rest is in `test_all_heads.py`."""

import numpy as np
import pytest

from keras_models.layers import PointerGenerator
from tests.keras_models import oracles
from tests.keras_models.backends import numpy, randomize
from tests.keras_models.heads.case_oracles import dense
from tests.keras_models.heads.head_cases import example
from tests.keras_models.heads.sizes import CONTEXT, EMBEDDING, HIDDEN, STATE, V


def make(with_inputs=True, with_state=True):
    head = PointerGenerator(V)
    head.build(
        (None, None, HIDDEN),
        (None, None, CONTEXT),
        (None, None, EMBEDDING) if with_inputs else None,
        (None, None, STATE) if with_state else None,
    )
    randomize(head)
    return head


@pytest.mark.parametrize("with_inputs,with_state", [(True, False), (False, True), (False, False)])
def test_the_gate_without_some_of_its_inputs(with_inputs, with_state):
    head = make(with_inputs, with_state)
    arrays = example(np.random.default_rng(0))
    names = ["hidden", "context", "attention", "source_extended_ids"]
    names += ["inputs"] * with_inputs + ["decoder_state"] * with_state
    call = {name: arrays[name] for name in names}
    distribution = np.exp(numpy(head(**call)))
    kernel, bias = dense(head.gate)
    for b, t in np.ndindex(2, 3):
        state = call.get("decoder_state", call["hidden"])[b, t]
        expected = oracles.pointer_generator(
            oracles.vocabulary_distribution(call["hidden"][b, t], *dense(head.vocabulary)),
            *np.split(kernel[:, 0], [CONTEXT, CONTEXT + len(state)]),
            bias[0],
            context=call["context"][b, t],
            state=state,
            inputs=call["inputs"][b, t] if with_inputs else None,
            weights=call["attention"][b, t],
            extended_ids=call["source_extended_ids"][b],
        )
        np.testing.assert_allclose(distribution[b, t], expected, rtol=0, atol=1e-5)


def test_both_masses_of_a_word_are_added_over_all_its_occurrences():
    """A uniform vocabulary and a fixed gate."""
    head = make(with_inputs=False, with_state=False)
    for weight in head.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    head.gate.bias.assign([np.log(0.25 / 0.75)])
    call = {
        "hidden": np.zeros((1, 1, HIDDEN), "float32"),
        "context": np.zeros((1, 1, CONTEXT), "float32"),
        "attention": np.array([[[0.5, 0.125, 0.25, 0.125]]], "float32"),
        "source_extended_ids": np.array([[4, V + 1, 4, V + 1]]),
    }
    probabilities = np.exp(numpy(head(**call)))[0, 0]
    np.testing.assert_allclose(probabilities[4], 0.25 / V + 0.75 * 0.75, rtol=1e-5)
    np.testing.assert_allclose(probabilities[V + 1], 0.75 * 0.25, rtol=1e-5)
    np.testing.assert_allclose(probabilities[5], 0.25 / V, rtol=1e-5)
    assert (probabilities[[V, V + 2, V + 3]] == 0).all()
    targets = np.array([[4]])
    np.testing.assert_allclose(
        np.exp(numpy(head(**call, targets=targets)))[0, 0], probabilities[4], rtol=1e-5
    )


def test_attention_that_sums_to_one_but_roughly():
    """As bfloat16's does."""
    head = make()
    arrays = example(np.random.default_rng(0))
    call = {
        name: arrays[name]
        for name in ("hidden", "context", "attention", "source_extended_ids", "inputs")
    }
    call["decoder_state"] = arrays["decoder_state"]
    rough = dict(call, attention=call["attention"] * 0.995)
    np.testing.assert_allclose(numpy(head(**rough)), numpy(head(**call)), rtol=1e-5, atol=1e-5)
