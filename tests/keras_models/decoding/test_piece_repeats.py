"""A word does not repeat its pieces more often than allowed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import PieceRepeats, beam_search, greedy_search
from tests.keras_models.backends import numpy
from tests.keras_models.decoding.fakes import SpanTableStep, TableStep, small_inputs, small_model
from tests.keras_models.decoding.test_repetition import always

PIECES = np.array([False] * 5 + [True] * 3)


def times_in_a_row(words, is_piece, run):
    """The most repetitions in a row of a run of pieces, by definition."""
    most = 0
    for begin in range(len(words)):
        pattern = words[begin : begin + run]
        if len(pattern) < run or not all(map(is_piece, pattern)):
            continue
        times = 1
        while words[begin + times * run : begin + (times + 1) * run] == pattern:
            times += 1
        most = max(most, times)
    return most


@pytest.mark.parametrize("most, max_span", [(1, 0), (2, 0), (2, 1), (1, 2)])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_agrees_with_its_definition(most, max_span, seed):
    rng = np.random.default_rng(seed)
    vocabulary_size, source_length, rows, index = 8, 6, 4, 6
    ids = rng.integers(6, 8, size=(rows, source_length)).astype("int32")
    ids[:, 2] = vocabulary_size + 2  # a piece that the vocabulary lacks
    ids[:, 4] = 4  # a word
    source = np.isin(ids, [6, 7, vocabulary_size + 2])
    tokens = rng.choice([6, 7], p=[0.7, 0.3], size=(rows, 9)).astype("int32")
    tokens[1, :3] = vocabulary_size + 2
    arrays = map(ops.convert_to_tensor, (PIECES, source))
    rule = PieceRepeats(*arrays, most)
    ids_, tokens_ = map(ops.convert_to_tensor, (ids, tokens))
    exempt = rule.exempt(ids_)
    got = numpy(rule.repeating_actions(tokens_, np.int32(index), ids_, exempt, max_span or 1))
    for row in range(rows):

        def says(token, row=row):
            return int(token) if token < vocabulary_size else int(ids[row, token - vocabulary_size])

        def is_piece(word):
            return word >= vocabulary_size or bool(PIECES[word])

        said = [says(token) for token in tokens[row, :index]]
        of_source = max(times_in_a_row(ids[row].tolist(), is_piece, run) for run in (1, 2))
        assert bool(numpy(exempt)[row]) == (of_source > most)
        for action in range(got.shape[1]):
            position = (action - vocabulary_size) % source_length
            word = says(action if action < vocabulary_size else vocabulary_size + position)
            # What stands too often in a row already is not counted again.
            completes = any(
                times_in_a_row([*said, word][-run * (most + 1) :], is_piece, run) > most
                for run in (1, 2)
            )
            assert got[row, action] == (completes and of_source <= most), (said, word)


@pytest.mark.parametrize("max_span", [0, 2])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_search_loops(max_span, seed):
    step = SpanTableStep(seed, 2, 7, 4, max_span) if max_span else TableStep(seed, 2, 7, 4)
    # Word 4 is always possible.
    pieces = np.arange(7) >= 5
    known = np.take(pieces, np.minimum(step.ids, 6)) | (step.ids >= 7)
    rule = PieceRepeats(ops.convert_to_tensor(pieces), ops.convert_to_tensor(known & step.mask), 1)
    exempt = numpy(rule.exempt(ops.convert_to_tensor(step.ids)))
    for search, options in ((greedy_search, {}), (beam_search, {"beam_size": 3, "n_best": 3})):
        found = numpy(step.run(search, 8, min_length=6, piece_repeats=rule, **options))
        for row, k in np.ndindex(found.lengths.shape):
            if exempt[row] or found.scores[row, k] < -1e8:
                continue
            said = found.tokens[row, k, : found.lengths[row, k]].tolist()
            said = [word if word < 7 else int(step.ids[row, word - 7]) for word in said]
            for begin in range(len(said) - 1):
                if max_span and found.copied_from[row, k, begin + 1] >= 0:
                    continue  # inside a span
                assert said[begin] != said[begin + 1] or said[begin] < 5, said


def test_iowa_ends():
    """The loop that was seen: `io ￭wa ￭wa ￭wa ...`; the model would write nothing else."""
    p = np.zeros(10)
    p[[3, 6]] = 0.1, 0.9
    step, carry, ids, mask, size, longest = always(p, [0.0, 0.0], [4, 6])
    rule = PieceRepeats(ops.convert_to_tensor(PIECES), ops.convert_to_tensor([[False, True]]), 2)
    found = numpy(greedy_search(step, carry, ids, mask, size, longest, piece_repeats=rule))
    assert found.tokens[0, 0, : found.lengths[0, 0]].tolist() == [6, 6]


def test_a_source_that_repeats_is_exempt():
    p = np.zeros(12)
    p[[3, 6]] = 0.1, 0.9
    step, carry, ids, mask, size, longest = always(p, [0.0] * 4, [4, 6, 6, 6])
    source = ops.convert_to_tensor([[False, True, True, True]])
    rule = PieceRepeats(ops.convert_to_tensor(PIECES), source, 2)
    found = numpy(greedy_search(step, carry, ids, mask, size, longest, piece_repeats=rule))
    assert found.lengths[0, 0] == longest


def test_needs_the_pieces():
    from keras_models.decoding import decode

    inputs = small_inputs()
    with pytest.raises(ValueError, match="needs piece_vocabulary"):
        decode(small_model(), inputs, max_length=5, max_piece_repeats=2)
