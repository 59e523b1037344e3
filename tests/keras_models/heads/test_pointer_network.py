"""What is the pointer network's own; the rest is in `test_all_heads.py`."""

import numpy as np

from tests.keras_models.backends import numpy
from tests.keras_models.heads.head_cases import CASES, example
from tests.keras_models.heads.sizes import END, V


def call_of(arrays):
    return {
        name: arrays[name]
        for name in ("hidden", "memory_states", "source_extended_ids", "mask", "decoder_state")
    }


def test_only_the_source_and_the_end_can_be_said():
    head = CASES["pointer_network"].make()
    arrays = example(np.random.default_rng(0), 1, 1, 4)
    arrays["source_extended_ids"][:], arrays["mask"][:] = (
        [5, V + 1, 5, 0],
        [True, True, True, False],
    )
    p = np.exp(numpy(head(**call_of(arrays))))[0, 0]
    assert set(np.flatnonzero(p)) == {END, 5, V + 1}
    np.testing.assert_allclose(p.sum(), 1, atol=1e-5)
    impossible = numpy(head(**call_of(arrays), targets=np.array([[6]])))
    assert np.isfinite(impossible).all() and np.exp(impossible) == 0


def test_scores_that_are_alike_are_shared_with_the_end():
    head = CASES["pointer_network"].make()
    head.score_kernel.assign(np.zeros(head.score_kernel.shape))
    arrays = example(np.random.default_rng(0), 1, 1, 4)
    arrays["source_extended_ids"][:], arrays["mask"][:] = [5, V + 1, 5, V + 3], True
    p = np.exp(numpy(head(**call_of(arrays))))[0, 0]
    np.testing.assert_allclose(p[[END, 5, V + 1, V + 3]], [0.2, 0.4, 0.2, 0.2], rtol=1e-5)


def test_an_empty_source_ends():
    head = CASES["pointer_network"].make()
    arrays = example(np.random.default_rng(0), 1, 2, 3)
    arrays["source_extended_ids"][:], arrays["mask"][:] = 0, False
    p = np.exp(numpy(head(**call_of(arrays))))[0]
    np.testing.assert_array_equal(p, np.tile(np.eye(V + 3, dtype="float32")[END], (2, 1)))
