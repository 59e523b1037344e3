import keras
import numpy as np
import pytest

from tests.keras_models import head_oracles, oracles
from tests.keras_models.heads.head_cases import CASES
from tests.keras_models.models.recurrent_cases import (
    V,
    example,
    forced_steps,
    log_probs_and_losses,
    make,
    weights_of,
)


def head_oracle(model, pair):
    """The head alone, for `oracles.seq2seq`."""
    case = next(case for case in CASES.values() if case.head_class is type(model.head))

    def distribution(hidden, state, memory, mask):
        arrays = {
            "hidden": hidden[None, None],
            "decoder_state": state[None, None],
            "memory_states": memory[None],
            "mask": np.array([mask]),
            "source_extended_ids": pair["source_extended_ids"][None],
        }
        p, copies = case.oracle(model.head, arrays, 0, 0)
        return p, copies

    return distribution


READS = [
    # head, cell, attention, input feeding, selective read
    ("joint_copy", "gru", "additive", True, True),
    ("joint_copy", "lstm", "none", False, True),
    ("joint_copy", "gru", "none", False, False),
    ("pointer_network", "gru", "none", True, False),
    ("softmax", "lstm", "none", True, False),
]


@pytest.mark.parametrize("head,cell,attention,input_feeding,selective_read", READS)
def test_selective_read_and_no_attention(
    head, cell, attention, input_feeding, selective_read, tmp_path
):
    """Selective read by the last copies (Gu et al. 2016), and a source that is seen once."""
    model = make(cell, attention, head, input_feeding, selective_read=selective_read)
    inputs = example()
    real = inputs["target_extended_ids"] != 0
    if head != "joint_copy":
        # Labels that the head can output.
        label = 3 if head == "pointer_network" else 5
        inputs["target_extended_ids"] = np.where(real, label, 0).astype("int32")
        inputs["target_input_ids"] = np.where(real, [[2, label, label, label]], 0).astype("int32")
    log_prob, penalty = log_probs_and_losses(model, inputs)
    assert penalty == [] or attention != "none"
    log_probs, _, attentions = forced_steps(model, inputs)
    weights = weights_of(model)
    for b in range(len(real)):
        pair = {
            name: value[b][real[b]] if "target" in name else value[b]
            for name, value in inputs.items()
        }
        read = head_oracles.selective_read if selective_read else None
        expected, distributions, attended = oracles.seq2seq(
            pair,
            weights,
            V,
            cell,
            attention,
            head_oracle(model, pair),
            input_feeding,
            attention != "none",
            read,
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(log_probs[:, b][real[b]]), distributions, rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(attentions[:, b][real[b]], attended, rtol=0, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(log_probs_and_losses(loaded, inputs)[0], log_prob)
