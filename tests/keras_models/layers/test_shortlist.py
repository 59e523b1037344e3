"""Which words a decoding's shortlist holds, and what its ids stand for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.layers import VocabularySoftmax
from keras_models.layers.shortlist import choose_words, find
from tests.keras_models.backends import TENSORFLOW, numpy, shared

V, S, K = 40, 6, 3


def chosen_oracle(extended_ids, lexicon_ids, probabilities, size):
    """One source's words as the docstring has them: by rank, as long as there is room."""
    ranked = list(range(max(size // 4, 4)))
    ranked += sorted({int(word) for word in extended_ids if word < V})
    best = {}
    for word, probability in zip(lexicon_ids.ravel(), probabilities.ravel()):
        if word < V and probability > 0:
            best[int(word)] = max(best.get(int(word), 0.0), float(probability))
    ranked += sorted(best, key=lambda word: (-best[word], word))
    ranked += range(V)
    return sorted(list(dict.fromkeys(ranked))[:size])


@settings(max_examples=40 if TENSORFLOW else 12)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([5, 12, 24, V]))
def test_the_words_are_those_of_the_source_its_lexicon_and_the_most_frequent(seed, size):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, V + S, size=(3, S)).astype("int32")
    lexicon = rng.integers(0, V, size=(3, S, K)).astype("int32")
    probabilities = (rng.random((3, S, K)) * (rng.random((3, S, K)) < 0.7)).astype("float32")

    def choose(*arrays):
        return choose_words(arrays[0], V, size, *arrays[1:])

    words = numpy(shared((choose_words, size), choose, ids, lexicon, probabilities))
    assert words.shape == (3, size) and words.dtype == np.int32
    for row in range(3):
        assert words[row].tolist() == chosen_oracle(
            ids[row], lexicon[row], probabilities[row], size
        )
    # Without a lexicon, those of the source.
    words = numpy(shared((choose_words, size), choose, ids))
    nothing = np.zeros((0,)), np.zeros((0,))
    assert [row.tolist() for row in words] == [chosen_oracle(row, *nothing, size) for row in ids]


def test_an_empty_source_has_the_most_frequent_words():
    words = numpy(choose_words(ops.convert_to_tensor(np.zeros((1, 4), "int32")), V, 8))
    assert words.tolist() == [list(range(8))]


def test_ids_there_and_back():
    words = ops.convert_to_tensor(np.array([[0, 1, 2, 3, 9], [0, 1, 2, 3, 30]], "int32"))
    place, found = numpy(
        find(ops.convert_to_tensor(np.array([[9, 30, V + 2], [9, 30, 3]], "int32")), words)
    )
    assert found.tolist() == [[True, False, False], [False, True, True]]
    assert place[found].tolist() == [4, 4, 3]
    shortlist = made(words)
    # Two hypotheses of each source, side by side: the list's words, then copies of the source's
    # positions.
    ids = ops.convert_to_tensor(np.array([[4, 5], [0, 6], [4, 3], [7, 4]], "int32"))
    assert numpy(shortlist.restore(ids, V)).tolist() == [[9, V], [0, V + 1], [30, 3], [V + 2, 30]]
    assert numpy(shortlist.restore(ids[:, 0], V)).tolist() == [9, 0, 30, V + 2]


def made(words, seed=0, dtype=None):
    vocabulary = VocabularySoftmax(V, dtype=dtype)
    vocabulary.build((None, 3))
    rng = np.random.default_rng(seed)
    vocabulary.kernel.assign(rng.normal(size=(3, V)))
    vocabulary.bias.assign(rng.normal(size=V))
    return vocabulary.shortlist(words)


def test_its_logits_are_those_of_the_vocabulary():
    rng = np.random.default_rng(1)
    words = np.sort(np.stack([rng.permutation(V)[:7] for _ in range(2)])).astype("int32")
    shortlist = made(ops.convert_to_tensor(words))
    hidden = rng.normal(size=(6, 3)).astype("float32")
    kernel, bias = np.random.default_rng(0), None
    kernel, bias = kernel.normal(size=(3, V)), kernel.normal(size=V)
    expected = [(hidden[row] @ kernel + bias)[words[row // 3]] for row in range(6)]
    np.testing.assert_allclose(
        numpy(shortlist.logits(ops.convert_to_tensor(hidden))), expected, rtol=1e-5, atol=1e-5
    )
    assert shortlist.size == 7
    half = made(ops.convert_to_tensor(words), dtype="mixed_bfloat16")
    assert half.columns.dtype != shortlist.columns.dtype
