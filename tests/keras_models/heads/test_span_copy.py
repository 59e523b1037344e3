"""What is span copying's own; the rest is in `test_all_heads.py`."""

import numpy as np
import pytest

from keras_models.layers import SpanCopy
from tests.keras_models import span_copy_oracle
from tests.keras_models.backends import numpy, value_and_gradients
from tests.keras_models.heads.case_oracles import span_copy_step
from tests.keras_models.heads.head_cases import CASES, example, step_arguments
from tests.keras_models.heads.sizes import V

NAMES = ("inputs", "decoder_state", "context", "memory_states", "mask")


def call_of(arrays):
    return {name: arrays[name] for name in NAMES}


@pytest.mark.parametrize("name", ["span_copy, expected", "span_copy, start"])
def test_a_sequence_costs_what_its_segments_cost(name):
    """Each span is paid for once, at its first token (the paper's objective)."""
    head = CASES[name].make()
    arrays = example(np.random.default_rng(0), 1, 5, 4)
    arrays["mask"][:] = True
    arrays["source_extended_ids"][:] = [V, 5, V + 2, V]
    segments = [("generate", 4), ("copy", 1, 2), ("copy", 0, 0), ("generate", 3)]
    targets = np.array([[4, 5, V + 2, V, 3]])
    starts, lengths = np.array([[-1, 1, -1, 0, -1]]), np.array([[0, 2, -1, 1, 0]])
    log_prob = numpy(
        head(**call_of(arrays), targets=targets, span_starts=starts, span_lengths=lengths)
    )
    steps = [span_copy_step(head, arrays, 0, t) for t in range(5)]
    np.testing.assert_allclose(
        -log_prob.sum(), span_copy_oracle.span_copy_loss(steps, segments), rtol=1e-5
    )
    assert log_prob[0, 2] == 0
    # Without labels of spans each copy is one of a single token, at its own position.
    alone = numpy(head(**call_of(arrays), targets=np.array([[4, V + 1, V + 2, V, 3]])))
    segments = [("generate", 4), *(("copy", j, j) for j in (1, 2, 0)), ("generate", 3)]
    np.testing.assert_allclose(
        -alone.sum(), span_copy_oracle.span_copy_loss(steps, segments), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["span_copy, expected", "span_copy, start"])
def test_steps_inside_a_span_learn_nothing_of_their_own(name):
    head = CASES[name].make()
    arrays = example(np.random.default_rng(0), 1, 2, 3)
    arrays["mask"][:] = True
    labels = {"targets": np.array([[V, V + 1]]), "span_starts": np.array([[0, -1]])}

    def loss(state):
        call = {**call_of(arrays), "decoder_state": state}
        return head(**call, **labels, span_lengths=np.array([[2, -1]]))[0, 1]

    value, gradients = value_and_gradients(loss, [arrays["decoder_state"]], head)
    assert value == 0 and all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["span_copy, expected", "span_copy, start"])
def test_spans_stay_within_the_source(name):
    head = CASES[name].make()
    arrays = example(np.random.default_rng(0), 2, 1, 4)
    arrays["mask"] = np.array([[True] * 4, [True, True, False, False]])
    log_probs, copies = numpy(head.step_log_probs(*step_arguments(head, arrays, 0)))
    spans = np.exp(log_probs[:, V:]).reshape(2, head.max_span, 4)
    for b, end in ((0, 4), (1, 2)):
        for length, j in np.ndindex(head.max_span, 4):
            assert (spans[b, length, j] > 0) == (j + length < end)
    # Copying from j is the sum of the spans that begin there.
    np.testing.assert_allclose(np.exp(copies), spans.sum(axis=1), rtol=1e-4, atol=1e-7)


def test_no_mask_is_no_padding():
    head = CASES["span_copy, expected"].make()
    arrays = example(np.random.default_rng(0))
    arrays["mask"][:] = True
    call = call_of(arrays)
    del call["mask"]
    np.testing.assert_array_equal(numpy(head(**call)), numpy(head(**call_of(arrays))))


def test_options_that_cannot_be():
    with pytest.raises(
        ValueError, match="copying_context must be one of start, expected; got 'end'"
    ):
        SpanCopy(V, copying_context="end")
    with pytest.raises(ValueError, match="max_span must be at least 1; got 0"):
        SpanCopy(V, max_span=0)
