"""A word of several pieces that an output begins to copy is copied whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import (
    Protection,
    WholeWords,
    beam_search,
    draw_uniforms,
    greedy_search,
    sample_search,
)
from keras_models.models import Ensemble
from tests.keras_models import oracles
from tests.keras_models.backends import compiled, numpy
from tests.keras_models.decoding.fakes import (
    END,
    START,
    ScriptStep,
    SpanTableStep,
    TableStep,
    decoded,
    logs,
    small_inputs,
    small_model,
)
from tests.keras_models.decoding.test_beam import assert_same, words_of

V = 8


def make_pieces(seed, mask):
    """Random words: which source tokens continue the one before them."""
    pieces = (np.random.default_rng(seed).random(mask.shape) < 0.6) & mask
    pieces[:, 0] = False
    return pieces


class Oracle:
    """The rule in float64, read from docs/explanation/decoding.md, for a row of a `TableStep`.

    Its `distribution` is what `oracles.beam_search` takes.
    """

    def __init__(self, step, row, continues, max_length):
        self.step, self.row, self.max_length = step, row, max_length
        self.continues = continues[row]
        self.ids = step.ids[row]

    def tables(self, prefix):
        state = int(self.step.carry["state"][self.row])
        for token in (START, *prefix):
            state = self.step.next_state(state, token)
        names = ("log_probs", "copy_log_probs", "attention")
        return [getattr(self.step, name)[self.row, state].astype("float64") for name in names]

    def origin(self, prefix, token):
        """The source position that a token is copied from; None if it is generated."""
        log_probs, copies, _ = self.tables(prefix)
        masses = np.where(self.ids == token, np.exp(copies), 0.0)
        return int(masses.argmax()) if masses.sum() > 0.5 * np.exp(log_probs[token]) else None

    def following(self, position):
        """The next piece's position, None at a word's end."""
        inside = position + 1 < len(self.ids) and self.continues[position + 1]
        return position + 1 if inside else None

    def origins(self, prefix):
        """The position of each token, and of the last one if its word was begun by a copy."""
        found, word = [], None
        for time, token in enumerate(prefix):
            due = None if word is None else self.following(word)
            position = due if due is not None else self.origin(prefix[:time], token)
            found.append(position)
            if position is not None and self.continues[position] and due is None:
                position = None
            word = position
        return found, word

    def distribution(self, prefix):
        log_probs, _, attention = self.tables(prefix)
        word = self.origins(prefix)[1]
        if word is None or len(prefix) == self.max_length:
            return log_probs, attention
        due = self.following(word)
        if due is not None:
            value = max(log_probs[self.ids[due]], -1e4)
            log_probs = np.full_like(log_probs, -1e12)
            log_probs[self.ids[due]] = value
            return log_probs, attention
        for position in np.flatnonzero(self.continues):
            if self.origin(prefix, self.ids[position]) is not None:
                log_probs[self.ids[position]] = -1e12
        return log_probs, attention


@pytest.mark.parametrize("beam_size, max_length, min_length", [(1, 6, 0), (3, 7, 2), (4, 3, 0)])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_equals_its_oracle(beam_size, max_length, min_length, seed):
    step = TableStep(seed, 2, V, 5)
    continues = make_pieces(seed, step.mask)
    options = {"min_length": min_length, "length_alpha": 0.6}
    search = greedy_search
    if beam_size > 1:
        search, options = beam_search, {**options, "beam_size": beam_size, "n_best": beam_size}
    rule = WholeWords(ops.convert_to_tensor(continues), V)
    found = numpy(step.run(search, max_length, whole_words=rule, **options))
    for row in range(2):
        oracle = Oracle(step, row, continues, max_length)
        expected = oracles.beam_search(
            oracle.distribution,
            words_of(step, row),
            END,
            beam_size,
            max_length,
            min_length,
            0.6,
            0.0,
            step.mask[row],
        )
        expected = [result for result in expected if result[0] > -1e8]
        assert expected
        for k, (score, log_prob, sequence) in enumerate(expected):
            length = found.lengths[row, k]
            assert tuple(found.tokens[row, k, :length].tolist()) == sequence
            np.testing.assert_allclose(found.scores[row, k], score, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found.log_probs[row, k], log_prob, rtol=1e-5, atol=1e-5)
            origins = [-1 if place is None else place for place in oracle.origins(sequence)[0]]
            assert found.copied_from[row, k, :length].tolist() == origins


def check_words(copied_from, lengths, continues, max_length):
    """Asserts the rule of outputs, by where each token came from."""
    length_of_source = continues.shape[1]
    for row, k in np.ndindex(lengths.shape):
        origins = copied_from[row, k, : lengths[row, k]].tolist()
        word = None
        for time, place in enumerate(origins):
            goes_on = place >= 0 and continues[row, place]
            if goes_on and word is not None:
                assert place == word + 1, origins
            word = place if place >= 0 and (not goes_on or word is not None) else None
            if word is None or word + 1 == length_of_source or not continues[row, word + 1]:
                continue
            following = origins[time + 1] if time + 1 < len(origins) else None
            assert following == word + 1 or time + 1 == max_length, origins


@pytest.mark.parametrize("max_span", [0, 1, 3])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_search_copies_whole_words(max_span, seed):
    if max_span:
        step = SpanTableStep(seed, 2, V, 6, max_span)
    else:
        step = TableStep(seed, 2, V, 6)
    continues = make_pieces(seed, step.mask)
    rule = WholeWords(ops.convert_to_tensor(continues), V, max_span or 1, not max_span)
    for search, options in (
        (greedy_search, {}),
        (beam_search, {"beam_size": 3, "n_best": 3}),
        (sample_search, {"uniforms": draw_uniforms(seed, 2, 3, 8), "temperature": 2.0}),
    ):
        found = numpy(step.run(search, 8, min_length=6, whole_words=rule, **options))
        lengths = np.where(found.scores > -1e8, found.lengths, 0)
        check_words(found.copied_from, lengths, continues, 8)


def test_without_pieces_nothing_changes():
    step = TableStep(5, 3, V, 5)
    rule = WholeWords(ops.zeros((3, 5), "bool"), V)
    options = {"beam_size": 3, "n_best": 3}
    plain = numpy(step.run(beam_search, 6, **options))
    assert_same(plain, numpy(step.run(beam_search, 6, whole_words=rule, **options)))


def test_compiled_searches_agree_and_compact():
    step = TableStep(11, 4, V, 5)
    continues = ops.convert_to_tensor(make_pieces(11, step.mask))

    def run():
        rule = WholeWords(continues, V)
        return step.run(beam_search, 6, beam_size=3, n_best=3, whole_words=rule)

    assert_same(numpy(run()), numpy(compiled(run)()))


def script(ids, continues, *steps, max_length=6, search=greedy_search, **options):
    """A search of which each step is a dict from tokens to (probability, copy shares)."""
    size = V + len(ids)
    p, copies = np.zeros((len(steps), size)), np.zeros((len(steps), len(ids)))
    for time, choices in enumerate(steps):
        for token, (probability, shares) in choices.items():
            p[time, token] = probability
            for place, share in shares.items():
                copies[time, place] = share
    ids = ops.convert_to_tensor(np.array([ids], "int32"))
    rule = WholeWords(ops.convert_to_tensor(np.array([continues], "bool")), V)
    step = ScriptStep(logs(p), logs(copies))
    mask = ops.ones(ids.shape, "bool")
    return numpy(search(step, {}, ids, mask, size, max_length, whole_words=rule, **options))


# Two words with the same first piece: 4 ￭5 ￭6 and 4 ￭7.
IDS, CONTINUES = [4, 5, 6, 4, 7], [False, True, True, False, True]


def tokens_of(found):
    return found.tokens[0, 0, : found.lengths[0, 0]].tolist()


def test_the_likelier_position_says_which_word():
    ends = {END: (1.0, {})}
    for place, word in ((0, [4, 5, 6]), (3, [4, 7])):
        begins = {4: (1.0, {0: 0.3, 3: 0.3, place: 0.7})}
        found = script(IDS, CONTINUES, begins, ends, ends, ends)
        assert tokens_of(found) == word
        assert found.copied_from[0, 0, : len(word)].tolist() == list(
            range(place, place + len(word))
        )
        np.testing.assert_array_equal(found.copy_probability[0, 0, 1 : len(word)], 1.0)
        # What the model rules out costs as much as it can; the output stays a possible one.
        np.testing.assert_allclose(found.log_probs[0, 0], -1e4 * (len(word) - 1))


def test_a_generated_piece_begins_nothing():
    begins, ends = {4: (1.0, {0: 0.4})}, {END: (1.0, {})}
    assert tokens_of(script(IDS, CONTINUES, begins, ends)) == [4]


def test_a_word_stops_at_the_longest_output():
    begins, ends = {4: (1.0, {0: 1.0})}, {END: (1.0, {})}
    assert tokens_of(script(IDS, CONTINUES, begins, ends, ends, max_length=2)) == [4, 5]


def test_an_ending_may_follow_if_it_is_generated():
    begins, ends = {4: (1.0, {3: 1.0})}, {END: (0.4, {})}
    generated = {7: (0.6, {4: 0.2}), **ends}
    copied = {7: (0.6, {4: 0.5}), **ends}
    goes_on = {7: (1.0, {4: 1.0})}
    stops = {END: (1.0, {})}
    assert tokens_of(script(IDS, CONTINUES, begins, goes_on, generated, stops)) == [4, 7, 7]
    assert tokens_of(script(IDS, CONTINUES, begins, goes_on, copied, stops)) == [4, 7]


def test_copied_words_may_repeat_n_grams():
    begins = {4: (1.0, {3: 1.0})}
    rest = {7: (1.0, {4: 1.0})}
    ends = {END: (1.0, {})}
    found = script(IDS, CONTINUES, begins, rest, begins, rest, ends, no_repeat_ngram=2)
    assert tokens_of(found) == [4, 7, 4, 7]


def test_protected_tokens_go_first():
    # Three places; after the first piece two are left, and two protected tokens are owed.
    ids, continues = [4, 5, 6, 7, 7], [False, True, True, False, False]
    begins = {4: (1.0, {0: 1.0})}
    owed = {7: (0.5, {3: 0.25, 4: 0.25}), 5: (0.5, {1: 0.5})}
    protection = Protection(
        ops.convert_to_tensor(np.arange(V) == 7), ops.convert_to_tensor(np.array([ids]) == 7)
    )
    found = script(ids, continues, begins, owed, owed, max_length=3, protection=protection)
    assert tokens_of(found) == [4, 7, 7]
    found = script(
        ids, continues, begins, owed, owed, owed, owed, max_length=5, protection=protection
    )
    assert tokens_of(found) == [4, 5, 6, 7, 7]


def with_words(seed=0):
    inputs = small_inputs(seed, batch=3, source_length=6)
    return {**inputs, "source_continues": make_pieces(seed, inputs["source_ids"] > 0)}


@pytest.mark.parametrize("head", ["pointer_generator", "joint_copy", "span_copy"])
def test_models_of_every_kind_of_head(head):
    options = {"head_options": {"max_span": 2}} if head == "span_copy" else {}
    model, inputs = small_model(3, head=head, scale=1.5, **options), with_words()
    found = decoded(
        model, inputs, max_length=7, beam_size=3, n_best=3, min_length=5, copy_whole_words=True
    )
    lengths = np.where(found.scores > -1e8, found.lengths, 0)
    assert (found.copied_from >= 0).any()
    check_words(found.copied_from, lengths, inputs["source_continues"], 7)


def test_shortlists_and_ensembles():
    model, inputs = small_model(4), with_words()
    options = {"max_length": 7, "min_length": 5, "copy_whole_words": True}
    words = np.tile(np.array([0, 1, 2, 3, 5, 6], "int32"), (3, 1))
    found = decoded(model, inputs, shortlist=words, **options)
    check_words(found.copied_from, found.lengths, inputs["source_continues"], 7)
    found = decoded(Ensemble([model, small_model(5)]), inputs, **options)
    check_words(found.copied_from, found.lengths, inputs["source_continues"], 7)


def test_a_head_that_cannot_copy_is_as_before():
    model, inputs = small_model(1, head="softmax"), with_words()
    assert_same(
        decoded(model, inputs, max_length=5),
        decoded(model, inputs, max_length=5, copy_whole_words=True),
    )


def test_needs_to_know_the_words():
    with pytest.raises(ValueError, match="the inputs need source_continues"):
        decoded(small_model(), small_inputs(), max_length=5, copy_whole_words=True)
