"""Replacing `[UNK]` by what attention looks at."""

import numpy as np
import pytest
from keras import ops

from keras_models.decoding import Protection, StepOutput, beam_search, greedy_search
from tests.keras_models.backends import numpy
from tests.keras_models.decoding.fakes import UNK, logs

V = 6


def search(
    attention, ids, mask=None, protection=None, beam_size=1, p=(0, 0.7, 0, 0.1, 0.2, 0), **options
):
    """Searches distributions in which `[UNK]` is by far the likeliest, then word 4.

    The output ends after two tokens.
    """
    source_length = len(ids)
    step_log_probs = logs([[*p, *[0.0] * source_length]])
    attention = np.asarray(attention, "float32")

    def step(tokens, carry, index):
        rows = ops.shape(tokens)[0]
        row = ops.expand_dims(
            ops.take(
                ops.convert_to_tensor(attention), ops.minimum(index, len(attention) - 1), axis=0
            ),
            0,
        )
        return StepOutput(
            ops.repeat(ops.convert_to_tensor(step_log_probs), rows, axis=0),
            ops.full((rows, source_length), -1e9),
            ops.repeat(row, rows, axis=0),
            carry,
        )

    mask = np.ones((1, source_length), bool) if mask is None else np.array([mask])
    arguments = (
        step,
        {},
        ops.convert_to_tensor(np.array([ids], "int32")),
        ops.convert_to_tensor(mask),
    )
    options = {"replace_unknown": True, "min_length": 2, "protection": protection, **options}
    if beam_size == 1:
        return numpy(greedy_search(*arguments, V + source_length, 2, **options))
    return numpy(beam_search(*arguments, V + source_length, 2, beam_size=beam_size, **options))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_it_is_the_token_that_attention_looks_at_most(beam_size):
    found = search([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]], [V, 4, V + 2], beam_size=beam_size)
    assert found.tokens[0, 0].tolist() == [V + 1, V]
    assert found.copied_from[0, 0].tolist() == [1, 0]
    np.testing.assert_allclose(found.copy_probability[0, 0], [0.6, 0.5])


def test_padding_and_promised_tokens_do_not_stand_in():
    attention = [[0.5, 0.1, 0.4]]
    found = search(attention, [V, V + 1, 0], mask=[True, True, False])
    assert found.tokens[0, 0].tolist() == [V, V]
    # Position 0 is promised, so it is said, once; another stands in for the unknown word.
    promised = Protection(ops.zeros((V,), "bool"), ops.convert_to_tensor([[True, False, False]]))
    found = search(
        attention, [V, V + 1, V + 2], protection=promised, p=(0, 0.7, 0, 0.2, 0.1, 0), min_length=1
    )
    assert found.tokens[0, 0].tolist() == [V + 2, V]
    assert found.copied_from[0, 0, 0] == 2


@pytest.mark.parametrize("beam_size", [1, 3])
def test_with_nothing_to_replace_it_no_unknown_word_is_said(beam_size):
    for mask, protection in (
        ([False, False], None),
        (
            [True, False],
            Protection(ops.zeros((V,), "bool"), ops.convert_to_tensor([[True, False]])),
        ),
    ):
        ids = [V, 0]
        found = search([[0.5, 0.5]], ids, mask=mask, protection=protection, beam_size=beam_size)
        assert UNK not in found.tokens[0, 0].tolist()
    # Without replacing, and if it is allowed, it stays.
    plain = search(
        [[0.5, 0.5]], [V, V + 1], replace_unknown=False, allow_unknown=True, beam_size=beam_size
    )
    assert plain.tokens[0, 0].tolist() == [UNK, UNK] and (plain.copied_from == -1).all()
