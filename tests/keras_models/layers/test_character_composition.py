"""Words composed of characters: each function agrees with its equation, whatever is around."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.layers import CharacterComposition
from keras_models.layers.character_composition import ngram_buckets
from tests.keras_models import composition_oracles as oracles
from tests.keras_models.backends import compiled, numpy, randomize

CHARACTERS, UNITS, LENGTH = 9, 4, 6
# Four words: the same shape always, for which JAX compiles once.
WORDS = st.lists(st.lists(st.integers(1, CHARACTERS - 1), max_size=LENGTH), min_size=4, max_size=4)


def make(function, seed=0, **options):
    layer = CharacterComposition(
        function, CHARACTERS, UNITS, window=3, ngram=3, buckets=101, **options
    )
    layer.build()
    randomize(layer, seed, 0.7)
    return layer


def padded(words, length=LENGTH):
    return np.array([[*word, *[0] * (length - len(word))] for word in words], "int32")


def weights_of(layer):
    weights = {
        name: numpy(getattr(layer, name).value)
        for name in ("embeddings", "kernel", "bias")
        if hasattr(layer, name)
    }
    if layer.lstm is not None:
        cells = [layer.lstm.forward_layer.cell, layer.lstm.backward_layer.cell]
        weights["lstm"] = [
            [numpy(w.value) for w in (c.kernel, c.recurrent_kernel, c.bias)] for c in cells
        ]
    return weights


@pytest.mark.parametrize("function", CharacterComposition.FUNCTIONS)
@settings(max_examples=6)
@given(words=WORDS, seed=st.integers(0, 99))
def test_agrees_with_the_equations(function, words, seed):
    layer = make(function, seed)
    got = numpy(layer(padded(words)))
    assert got.shape == (len(words), UNITS)
    for row, word in enumerate(words):
        expected = oracles.compose(word, function, weights_of(layer), UNITS, 3, 3, 101)
        np.testing.assert_allclose(got[row], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", CharacterComposition.FUNCTIONS)
def test_neither_padding_nor_other_words_matter(function, tmp_path):
    layer, words = make(function), [[3, 1, 4], [1], [], [5, 2, 6, 5, 3, 5]]
    expected = numpy(layer(padded(words)))
    np.testing.assert_allclose(numpy(layer(padded(words, 9))), expected, rtol=0, atol=1e-6)
    sentences = padded(words).reshape(2, 2, LENGTH)
    np.testing.assert_allclose(
        numpy(layer(sentences)).reshape(4, UNITS), expected, rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(
        numpy(compiled(layer)(ops.convert_to_tensor(sentences))), numpy(layer(sentences)), atol=1e-6
    )
    low = make(function, dtype="mixed_bfloat16")
    assert np.isfinite(numpy(ops.cast(low(sentences), "float32"))).all()
    inputs = keras.Input((None, LENGTH), dtype="int32")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(numpy(loaded(sentences)), numpy(layer(sentences)), atol=1e-6)


def test_ngrams_fall_into_different_buckets():
    words = padded([[a, b] for a in range(1, 9) for b in range(1, 9)])
    ids = numpy(ngram_buckets(ops.convert_to_tensor(words), 2, 50_021))
    assert (ids[:, 1:] == 0).all() and len(set(ids[:, 0])) == 64
    assert ids.max() <= 50_021 and ids[:, 0].min() >= 1
    # Numbers stay within 32 bits.
    large = ops.convert_to_tensor(np.full((1, 4), 120_000, "int32"))
    assert (
        numpy(ngram_buckets(large, 4, 2_000_000)) == oracles.bucket([120_000] * 4, 2_000_000)
    ).all()


def test_what_does_not_fit():
    with pytest.raises(
        ValueError,
        match="function must be one of sum, average, max, bilstm, cnn, ngram; got 'mean'",
    ):
        CharacterComposition("mean", 5, 4)
    with pytest.raises(ValueError, match="units must be even for 'bilstm'"):
        CharacterComposition("bilstm", 5, 3)
    with pytest.raises(ValueError, match="buckets must be between"):
        CharacterComposition("ngram", 5, 4, buckets=0)


@pytest.mark.parametrize("function", CharacterComposition.FUNCTIONS)
def test_a_word_begins_with_a_variance_near_1(function):
    """As a looked-up word's vector does; the functions that end with tanh cannot quite."""
    keras.utils.set_random_seed(1)
    layer = CharacterComposition(function, 60, 64)
    layer.build()
    words = np.random.default_rng(1).integers(1, 60, (200, 6)).astype("int32")
    least = 0.03 if function in ("bilstm", "cnn") else 0.3
    assert least < numpy(layer(np.pad(words, ((0, 0), (0, 4))))).var() < 1.5
