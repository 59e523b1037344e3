"""Caches that hypotheses share, against NumPy that moves what each hypothesis has."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies
from keras import ops

from keras_models.layers import caches
from keras_models.layers.numerics import repeat_rows
from tests.keras_models.backends import numpy

HEADS, SIZE = 2, 3


@pytest.mark.parametrize("hypotheses", [None, 1, 4])
def test_a_step_is_written_where_it_belongs(hypotheses):
    rng = np.random.default_rng(1)
    shape = (2, HEADS, 5, SIZE) if hypotheses is None else (2, HEADS, 5, hypotheses, SIZE)
    cache = rng.normal(size=shape).astype("float32")
    values = rng.normal(size=(2, HEADS, hypotheses or 1, SIZE)).astype("float32")
    expected = cache.copy()
    expected[:, :, 3] = values[:, :, 0] if hypotheses is None else values
    written = caches.write_step(*map(ops.convert_to_tensor, (cache, values)), index=3)
    np.testing.assert_array_equal(numpy(written), expected)
    flat = expected.reshape(2, HEADS, -1, SIZE)
    np.testing.assert_array_equal(numpy(caches.entries(written)), flat)


@hypothesis.given(
    strategies.integers(1, 3),
    strategies.integers(2, 4),
    strategies.integers(1, 5),
    strategies.integers(0, 99),
)
@hypothesis.settings(max_examples=30)
def test_a_hypothesis_reads_its_own_steps(batch, hypotheses, length, seed):
    rng = np.random.default_rng(seed)
    ancestors = ops.zeros((batch * hypotheses, length), dtype="int32")
    cache = ops.zeros((batch, HEADS, length, hypotheses, SIZE), dtype="float32")
    moved = np.zeros((batch, hypotheses, HEADS, length, SIZE), "float32")
    for index in range(length):
        values = rng.normal(size=(batch, HEADS, hypotheses, SIZE)).astype("float32")
        cache = caches.write_step(cache, ops.convert_to_tensor(values), index)
        ancestors, allowed = caches.follow(ancestors, index, hypotheses)
        moved[:, :, :, index] = values.transpose(0, 2, 1, 3)
        read, entries = numpy(allowed), numpy(caches.entries(cache))
        for source, place in np.ndindex(batch, hypotheses):
            own = entries[source][:, read[source, place]]
            np.testing.assert_array_equal(own, moved[source, place, :, : index + 1])
        # The search chooses who continues whom.
        parents = rng.integers(0, hypotheses, size=(batch, hypotheses))
        moved = np.stack([one[chosen] for one, chosen in zip(moved, parents)])
        rows = (np.arange(batch)[:, None] * hypotheses + parents).reshape(-1)
        ancestors = ops.take(ancestors, rows, axis=0)


def test_what_sources_share_is_neither_repeated_nor_moved():
    shared = caches.Shared({"keys": ops.ones((2, 3))})
    tree = {"own": [ops.ones((2, 1))], "shared": shared, "none": {}}
    shapes = keras.tree.map_structure(lambda x: tuple(x.shape), repeat_rows(tree, 4))
    assert shapes == {"own": [(8, 1)], "shared": caches.Shared({"keys": (2, 3)}), "none": {}}
    taken = caches.map_rows(lambda x: x[:1], tree, of_sources=lambda x: x[:, :2])
    assert isinstance(taken["shared"], caches.Shared)
    assert tuple(taken["own"][0].shape) == (1, 1)
    assert tuple(taken["shared"].tensors["keys"].shape) == (2, 2)


def test_rows_beside_each_other():
    rows = np.arange(12.0).reshape(6, 1, 2)
    states = caches.beside(ops.convert_to_tensor(rows), 3)
    assert tuple(states.shape) == (2, 3, 2)
    np.testing.assert_array_equal(numpy(states).reshape(6, 1, 2), rows)
    np.testing.assert_array_equal(numpy(caches.one_below_another(states)), rows)
