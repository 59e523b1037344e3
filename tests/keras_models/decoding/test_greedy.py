import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import greedy_search
from tests.keras_models import oracles
from tests.keras_models.backends import compiled, numpy
from tests.keras_models.decoding.fakes import END, ScriptStep, TableStep, logs

LETTERS = "abcdefghijklmnopqrstuvwxyz "
V = 4 + len(LETTERS)
SOURCE = "Ünïx"  # two of its letters are in no vocabulary: they must be copied


def letter_id(letter):
    return 4 + LETTERS.index(letter) if letter in LETTERS else V + SOURCE.index(letter)


def spelled(text):
    """A step function that spells a text, then ends.

    It copies the letters that only the source has.
    """
    p = np.full((len(text) + 1, V + len(SOURCE)), 1e-3)
    copy = np.zeros((len(text) + 1, len(SOURCE)))
    for time, token in enumerate([*map(letter_id, text), END]):
        p[time, token] = 1.0
        if token >= V:
            copy[time, token - V] = 1.0
    p /= p.sum(-1, keepdims=True)
    copy /= copy.max(-1, keepdims=True) + (copy.max(-1, keepdims=True) == 0)
    return ScriptStep(logs(p), logs(copy * p.max(-1, keepdims=True)))


def read(hypotheses, row):
    tokens, length = hypotheses.tokens[row, 0], hypotheses.lengths[row, 0]
    return "".join((LETTERS[t - 4] if t < V else SOURCE[t - V]) for t in tokens[:length])


def spell(search, text, max_length=12, rows=2, **options):
    ids = np.tile(V + np.arange(len(SOURCE), dtype="int32"), (rows, 1))
    mask = np.ones_like(ids, "bool")
    return numpy(
        search(
            spelled(text),
            {},
            ops.convert_to_tensor(ids),
            ops.convert_to_tensor(mask),
            V + len(SOURCE),
            max_length,
            **options,
        )
    )


def test_reads_as_words():
    hypotheses = spell(greedy_search, "see Ünïx")
    assert [read(hypotheses, row) for row in range(2)] == ["see Ünïx"] * 2
    assert hypotheses.copied_from[0, 0].tolist() == [-1, -1, -1, -1, 0, -1, 2, -1] + [-1] * 4
    np.testing.assert_allclose(
        hypotheses.copy_probability[0, 0], [0] * 4 + [1, 0, 1, 0] + [0] * 4, atol=1e-6
    )
    assert (hypotheses.tokens[:, :, 8:] == 0).all() and not (hypotheses.tokens == END).any()


def test_longest_and_shortest_output():
    assert read(spell(greedy_search, "abcdef", max_length=3), 0) == "abc"
    hypotheses = spell(greedy_search, "ab", min_length=5)
    assert hypotheses.lengths.tolist() == [[5], [5]] and read(hypotheses, 0)[:2] == "ab"
    assert spell(greedy_search, "abc", max_length=0).tokens.shape == (2, 1, 0)


@pytest.mark.parametrize("alpha,beta,min_length", [(0.0, 0.4, 0), (0.6, 0.0, 2), (1.0, 0.4, 1)])
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_takes_the_likeliest_token_of_each_step(alpha, beta, min_length, seed):
    step = TableStep(seed, batch=3, vocabulary_size=6, source_length=3)
    options = dict(
        length_alpha=alpha, coverage_beta=beta, min_length=min_length, return_attention=True
    )
    result = numpy(step.search(greedy_search, 4, **options))
    for row in range(3):
        prefix, total, attentions = (), 0.0, []
        while True:
            log_probs, attention = step.distribution(row)(prefix)
            words = (
                [3] if len(prefix) == 4 else range(4 if len(prefix) < min_length else 3, step.size)
            )
            token = max(words, key=lambda word: log_probs[word])
            total += float(log_probs[token])
            if token == END:
                break
            prefix += (token,)
            attentions.append(attention)
        length = len(prefix)
        assert result.tokens[row, 0].tolist() == [*prefix] + [0] * (4 - length)
        assert result.lengths[row, 0] == length
        np.testing.assert_allclose(result.log_probs[row, 0], total, rtol=1e-5)
        score = total / oracles.length_penalty(length + 1, alpha)
        score += oracles.coverage_penalty(attentions, step.mask[row], beta) if beta else 0
        np.testing.assert_allclose(result.scores[row, 0], score, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(
            result.attention[row, 0, :length], np.reshape(attentions, (length, 3))
        )
        assert (result.attention[row, 0, length:] == 0).all()


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_compiled_equals_uncompiled(alpha):
    step = TableStep(5, batch=4, vocabulary_size=7, source_length=4)

    def search():
        options = dict(length_alpha=alpha, coverage_beta=0.2, return_attention=True)
        return step.run(greedy_search, 6, **options)._asdict()

    plain, fast = numpy(search()), numpy(compiled(search)())
    for name in ("tokens", "lengths", "copied_from", "log_probs", "attention"):
        np.testing.assert_array_equal(plain[name], fast[name], err_msg=name)
    for name in ("scores", "copy_probability"):
        np.testing.assert_allclose(plain[name], fast[name], rtol=1e-6, atol=1e-6, err_msg=name)
