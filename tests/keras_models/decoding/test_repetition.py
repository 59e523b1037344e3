import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import (
    Protection,
    beam_search,
    draw_uniforms,
    greedy_search,
    sample_search,
)
from keras_models.decoding.repetition import repeating_actions
from tests.keras_models.backends import compiled, numpy, shared
from tests.keras_models.decoding.fakes import ScriptStep, TableStep, logs
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.decoding.test_greedy import read, spell


def ngrams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


@pytest.mark.parametrize("ngram,max_span", [(1, 1), (2, 1), (3, 3), (1, 3), (2, 3)])
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), index=st.integers(0, 6))
def test_agrees_with_its_definition(ngram, max_span, seed, index):
    vocabulary_size, source_length, rows = 5, 4, 3
    rng = np.random.default_rng(seed)
    words = rng.integers(3, 6, size=(rows, source_length))
    first = np.argmax(words[:, :, None] == words[:, None, :], axis=-1)
    ids = np.where(words < 5, words, vocabulary_size + first).astype("int32")
    # Repeated words by any of their ids: of the vocabulary, of their first position, of another.
    choices = [[3, 4, *range(vocabulary_size, vocabulary_size + source_length)]] * rows
    tokens = np.array([rng.choice(choice, size=6) for choice in choices], "int32")
    exempt = rng.random((rows, source_length)) < 0.2

    def repeats_of(tokens, index, ids, exempt):
        return repeating_actions(tokens, index, ids, vocabulary_size, ngram, max_span, exempt)

    arrays = map(ops.convert_to_tensor, (tokens, np.int32(index), ids, exempt))
    got = numpy(shared((repeating_actions, ngram, max_span), repeats_of, *arrays))
    assert got.shape == (rows, vocabulary_size + max_span * source_length)
    for row in range(rows):

        def says(token, row=row):
            return int(token) if token < vocabulary_size else int(ids[row, token - vocabulary_size])

        said = [says(token) for token in tokens[row, :index]]
        may = {int(ids[row, j]) for j in np.flatnonzero(exempt[row])}
        for action in range(got.shape[1]):
            length, j = divmod(action - vocabulary_size, source_length)
            if action < vocabulary_size:
                span, free = [action], [action in may]
            elif j + length >= source_length:
                continue  # beyond the source: no head gives it any probability
            else:
                span, free = (
                    ids[row, j : j + length + 1].tolist(),
                    exempt[row, j : j + length + 1].tolist(),
                )
                free[0] = span[0] in may
            repeats = False
            for m in range(len(span)):
                text = said + span[: m + 1]
                repeats |= (
                    not free[m]
                    and len(text) >= ngram
                    and tuple(text[-ngram:]) in ngrams(text[:-1], ngram)
                )
            assert got[row, action] == repeats, (said, span)


def test_reads_as_words():
    # "lo hel" would say "hel" again; nothing else is likelier than the end.
    assert read(spell(greedy_search, "hello hello"), 0) == "hello hello"
    assert read(spell(greedy_search, "hello hello", no_repeat_ngram=3), 0) == "hello he"
    assert read(spell(greedy_search, "hello hello", no_repeat_ngram=1), 0) == "hel"
    found = spell(
        beam_search, "tick tick tick", max_length=14, no_repeat_ngram=4, beam_size=3, n_best=3
    )
    assert read(found, 0).startswith("tick tic")
    assert read(spell(beam_search, "see Ünïx", beam_size=2, no_repeat_ngram=3), 0) == "see Ünïx"
    # A copied letter is a letter: position 0 is "Ü".
    assert read(spell(greedy_search, "aÜbaÜb", no_repeat_ngram=2), 0) == "aÜba"


@pytest.mark.parametrize("ngram", [1, 2])
def test_no_search_repeats(ngram):
    step = TableStep(7, 3, 9, 4)
    uniforms = draw_uniforms(3, 3, 4, 8)
    for search, options in (
        (greedy_search, {}),
        (beam_search, {"beam_size": 4, "n_best": 4}),
        (sample_search, {"uniforms": uniforms, "temperature": 0.5}),
    ):
        options = dict(options, min_length=6 if ngram == 2 else 3, no_repeat_ngram=ngram)
        found = numpy(step.run(search, 8, **options))
        if ngram == 2:
            fast = numpy(
                compiled(lambda search=search, options=options: step.run(search, 8, **options))()
            )
            assert_same(found, fast, close=("scores", "copy_probability", "log_probs"))
        for row, k in np.ndindex(found.lengths.shape):
            if found.scores[row, k] > -1e8:
                said = ngrams(found.tokens[row, k, : found.lengths[row, k]].tolist(), ngram)
                assert len(set(said)) == len(said)


def always(p, copies, ids, **options):
    step = ScriptStep(logs([p]), logs([copies]))
    ids = ops.convert_to_tensor([ids])
    return step, {}, ids, ops.ones(ids.shape, "bool"), len(p), options.pop("max_length", 6)


def test_owed_tokens_may_repeat():
    """The source holds the placeholder 5 twice: it is output twice, whatever the rule for words."""
    p = [0, 0, 0, 0.3, 0.4, 0.3, 0, 0]
    arguments = always(p, [0.1, 0.1], [5, 5])
    protection = Protection(ops.convert_to_tensor(np.arange(6) == 5), ops.ones((1, 2), "bool"))
    found = numpy(greedy_search(*arguments, protection=protection, no_repeat_ngram=1))
    assert sorted(found.tokens[0, 0].tolist()) == [0, 0, 0, 4, 5, 5]


def test_where_nothing_else_is_left_the_rule_gives_way():
    p = [0, 0, 0, 0.5, 0.5, 0]
    found = numpy(greedy_search(*always(p, [0.0], [4]), no_repeat_ngram=1, min_length=3))
    assert found.tokens[0, 0].tolist() == [4, 4, 4, 0, 0, 0]


def test_an_unknown_word_is_what_replaces_it():
    """`[UNK]` says the attended token 4; the second time it would repeat it."""
    p = [0, 0.6, 0, 0.1, 0.0, 0.3, 0, 0]
    arguments = always(p, [0.7, 0.3], [4, 5])
    found = numpy(greedy_search(*arguments, replace_unknown=True, no_repeat_ngram=1))
    assert found.tokens[0, 0].tolist() == [6, 5, 0, 0, 0, 0]
    assert found.copied_from[0, 0].tolist() == [0, 1, -1, -1, -1, -1]
