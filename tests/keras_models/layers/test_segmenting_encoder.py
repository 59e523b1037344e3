"""The segmenting encoder: agrees with true slices of each sentence, whatever is around it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.layers import SegmentingEncoder
from tests.keras_models import segmentation_oracles as oracles
from tests.keras_models.backends import (
    compiled,
    numpy,
    randomize,
    shared_by_config,
    value_and_gradients,
)
from tests.keras_models.layers.padding import padded

SIZE, UNITS, BUCKETS = 3, 4, 7


def make(composes="states", seed=0, dtype="float32", **options):
    layer = SegmentingEncoder(UNITS, composes=composes, dtype=dtype, **options)
    layer.build((None, None, SIZE))
    randomize(layer, seed, 0.9)
    return layer


def weights_of(layer):
    def lstms(wrapper):
        cells = [wrapper.forward_layer.cell, wrapper.backward_layer.cell]
        return [[numpy(w.value) for w in (c.kernel, c.recurrent_kernel, c.bias)] for c in cells]

    composer = [
        numpy(getattr(layer.composer, name).value)
        for name in ("kernel", "recurrent_kernel", "bias")
    ]
    dense = {
        name: [numpy(w.value) for w in getattr(layer, name).weights]
        for name in ("projection", "policy")
    }
    if layer.word_embedding is not None:
        dense["word_embedding"] = numpy(layer.word_embedding.embeddings.value)
    dense |= {
        one.name: [numpy(one.gamma.value), numpy(one.beta.value)] for one in layer.normalizations
    }
    return {
        "characters": lstms(layer.character_encoder),
        "words": lstms(layer.word_encoder),
        "composer": composer,
        **dense,
    }


# Three rows of up to five characters: the same shape always, for which JAX compiles once.
ROWS, LENGTH = 3, 5
SEGMENTATIONS = st.lists(
    st.lists(st.booleans(), min_size=1, max_size=LENGTH), min_size=ROWS, max_size=ROWS
)


@pytest.mark.parametrize(
    "composes, residual, buckets",
    [
        ("states", False, 0),
        ("embeddings", False, 0),
        ("states", True, 0),
        ("states", False, BUCKETS),
        ("embeddings", True, BUCKETS),
    ],
)
@settings(max_examples=4)
@given(rows=SEGMENTATIONS, given_ends=st.booleans(), seed=st.integers(0, 99))
def test_agrees_with_the_equations(composes, residual, buckets, rows, given_ends, seed):
    layer = make(composes, seed, residual=residual, word_buckets=buckets)
    rng = np.random.default_rng(seed)
    embedded = [rng.normal(size=(len(row), SIZE)) for row in rows]
    mask = padded([[True] * len(row) for row in rows], bool, LENGTH)
    chosen = padded(rows, bool, LENGTH)
    ids = (
        [rng.integers(1, 5, size=len(row)).tolist() for row in rows]
        if buckets
        else [None] * len(rows)
    )
    given = {"ids": padded(ids, "int32", LENGTH)} if buckets else {}

    def run(layer, embedded, mask, chosen, given):
        choose = (lambda logits, mask: chosen) if given_ends else None
        return layer(embedded, mask, choose=choose, **given)

    arrays = (padded(embedded, "float32", LENGTH), mask, chosen, given)
    got = numpy(shared_by_config(layer, run, *arrays, key=("encode", given_ends)))
    for number, row in enumerate(rows):
        ends = row if given_ends else None
        arguments = (weights_of(layer), UNITS, composes, residual, ids[number])
        logits, states, last = oracles.encode(embedded[number], ends, *arguments)
        np.testing.assert_allclose(got["logits"][number, : len(row)], logits, rtol=1e-5, atol=1e-5)
        assert np.flatnonzero(got["ends"][number]).tolist() == sorted(states)
        for place, state in states.items():
            np.testing.assert_allclose(got["states"][number, place], state, rtol=1e-5, atol=1e-5)
        for mine, expected in zip(got["last"], last):
            np.testing.assert_allclose(mine[number], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("detached", [False, True])
def test_decisions_without_gradient_leave_the_states_alone(detached):
    layer, share = make(), 0.0 if detached else 1.0
    embedded, mask = (
        np.random.default_rng(2).normal(size=(2, 4, SIZE)).astype("float32"),
        np.ones((2, 4), bool),
    )
    _, (inputs, *weights) = value_and_gradients(
        lambda x: ops.sum(layer(x, mask, policy_gradient=share)["logits"]), [embedded], layer
    )
    reached = {
        weight.path
        for weight, gradient in zip(layer.trainable_weights, weights)
        if np.any(gradient)
    }
    own = {weight.path for weight in layer.policy.weights}
    assert bool(np.any(inputs)) != detached
    assert reached == own if detached else reached > own


@pytest.mark.parametrize("options", [{}, {"residual": True, "word_buckets": BUCKETS}])
def test_compiled_repeated_and_from_a_file_it_says_the_same(options):
    layer = make(**options)
    given = {"ids": np.array([[1, 2, 3, 1, 2], [4, 1, 2, 0, 0]])} if options else {}
    rng = np.random.default_rng(1)
    embedded, mask = (
        rng.normal(size=(2, 5, SIZE)).astype("float32"),
        np.array([[1] * 5, [1] * 3 + [0] * 2], bool),
    )
    got = numpy(layer(embedded, mask, **given))
    again = numpy(
        compiled(lambda x: layer(x, ops.convert_to_tensor(mask), **given))(
            ops.convert_to_tensor(embedded)
        )
    )
    repeated = numpy(layer(embedded, mask, samples=2, **given))
    copy = SegmentingEncoder.from_config(layer.get_config())
    copy.build((None, None, SIZE))
    copy.set_weights(layer.get_weights())
    from_config = numpy(copy(embedded, mask, **given))
    real = got["ends"][..., None]
    for other in (
        again,
        from_config,
        {name: value[1::2] for name, value in repeated.items() if name != "last"},
    ):
        np.testing.assert_array_equal(other["ends"], got["ends"])
        np.testing.assert_allclose(
            other["states"] * real, got["states"] * real, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_edges_give_no_nan(dtype):
    layer = make(dtype=dtype)
    mask = np.array([[False] * 3, [True, False, False], [True] * 3])
    got = numpy(layer(np.full((3, 3, SIZE), 50.0, "float32"), mask))
    for name in ("states", "logits"):
        assert np.isfinite(np.asarray(got[name], "float32")).all()
    assert got["ends"].tolist()[:2] == [[False] * 3, [True, False, False]]


def test_sizes_that_make_no_sense():
    with pytest.raises(ValueError, match="units must be even"):
        SegmentingEncoder(3)
    with pytest.raises(ValueError, match="composes must be"):
        SegmentingEncoder(4, composes="words")
    with pytest.raises(ValueError, match="word_buckets must be between 0 and"):
        SegmentingEncoder(4, word_buckets=-1)
    with pytest.raises(ValueError, match="ids of the characters are needed"):
        make(word_buckets=3)(np.ones((1, 2, SIZE), "float32"), np.ones((1, 2), bool))
