"""Search over words and spans, and over locations that are not merged (spans of one token)."""

from collections import Counter

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
from keras_models.decoding import actions as action_space
from keras_models.decoding.hypotheses import StepOutput
from tests.keras_models import decoding_oracles
from tests.keras_models.backends import TENSORFLOW, compiled, numpy
from tests.keras_models.decoding.fakes import END, SpanTableStep
from tests.keras_models.decoding.test_beam import CLOSE, EXACT, assert_same

V = 6  # two words, 4 and 5; the latter may stand in the source


def sequence(step, row, found, k):
    """What hypothesis k says, and where each token came from."""
    length = found.lengths[row, k]
    said = tuple(step.surface(row, token) for token in found.tokens[row, k, :length])
    return said, tuple(found.copied_from[row, k, :length].tolist())


@pytest.mark.parametrize(
    "max_span,unit,max_length,min_length,alpha",
    [
        (1, "tokens", 3, 1, 0.0),
        (2, "tokens", 2, 0, 1.0),
        (3, "tokens", 3, 0, 1.0),
        (3, "choices", 3, 1, 1.0),
    ],
)
@settings(max_examples=2)
@given(seed=st.integers(0, 10**6))
def test_a_wide_beam_finds_every_derivation(max_span, unit, max_length, min_length, alpha, seed):
    """Each span is scored once, as long as its tokens or one; each token knows its origin."""
    step = SpanTableStep(seed, 2, V, 3, max_span)
    # Wide enough for all derivations: at most 179 of 3 tokens, by 2 words and 6 spans.
    beam = 180
    options = dict(
        beam_size=beam, n_best=beam, length_alpha=alpha, min_length=min_length, length_unit=unit
    )
    found = numpy(step.search(beam_search, max_length, **options))
    count = {"tokens": "tokens", "choices": "segments"}[unit]
    for row in range(2):
        expected = decoding_oracles.span_derivations(
            step.distributions(row),
            step.ids[row],
            [4, 5],
            END,
            max_length,
            alpha,
            min_length,
            count,
        )
        assert (found.scores[row] > -1e8).sum() == len(expected)
        for k, (score, log_prob, tokens, copied_from, _) in enumerate(expected):
            assert sequence(step, row, found, k) == (tokens, copied_from)
            np.testing.assert_allclose(found.scores[row, k], score, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found.log_probs[row, k], log_prob, rtol=1e-5, atol=1e-5)
            copied = np.array(copied_from) >= 0
            np.testing.assert_array_equal(found.copy_probability[row, k, : len(tokens)], copied)
            assert (found.copied_from[row, k, len(tokens) :] == -1).all()


@pytest.mark.parametrize("max_span,unit", [(1, "tokens"), (3, "tokens"), (3, "choices")])
def test_a_beam_of_one_is_greedy_search(max_span, unit):
    step = SpanTableStep(11, 4, V, 4, max_span)
    options = dict(coverage_beta=0.2, return_attention=True, length_unit=unit)
    greedy = numpy(step.search(greedy_search, 7, **options))
    assert_same(greedy, numpy(step.search(beam_search, 7, beam_size=1, **options)))
    assert (greedy.copied_from >= 0).any() and greedy.lengths.max() <= 7
    for row in range(4):
        # Nothing is copied from beyond the source.
        assert (greedy.copied_from[row] < step.mask[row].sum()).all()


def test_a_length_counted_in_choices_ranks_by_the_mean_of_a_choice():
    """Two choices make a span of three tokens and the end.

    Their score is that of two, not of four tokens.
    """
    step = SpanTableStep(5, 3, V, 4, max_span=3, p_copy=0.9)
    found = numpy(step.search(greedy_search, 6, length_alpha=1.0, length_unit="choices"))
    plain = numpy(step.search(greedy_search, 6, length_alpha=1.0))
    np.testing.assert_array_equal(found.tokens, plain.tokens)
    choices = found.log_probs / found.scores * 6 - 5
    np.testing.assert_allclose(choices, np.round(choices), atol=1e-3)
    assert (choices <= found.lengths + 1.001).all() and (choices < found.lengths + 0.5).any()


def test_an_unknown_unit_of_length():
    with pytest.raises(ValueError, match="length_unit must be one of tokens, choices; got 'words'"):
        SpanTableStep(5, 3, V, 4, max_span=3).search(greedy_search, 6, length_unit="words")


def test_greedy_search_sees_a_span_through():
    step = SpanTableStep(3, 3, V, 4, max_span=3, p_copy=0.9)
    found = numpy(step.search(greedy_search, 6, length_alpha=0.0))
    spans = 0
    for row in range(3):
        read, prefix, total = step.distributions(row), (), 0.0
        while True:
            d = read(prefix)
            room = 6 - len(prefix)
            choices = {
                ("word", w): (1 - d["p_copy"]) * d["vocabulary"][w]
                for w in (END, 4, 5)
                if room or w == END
            }
            for j, k in np.argwhere(d["end"] > 0):
                if k - j < room:
                    choices["span", j, k] = d["p_copy"] * d["start"][j] * d["end"][j, k]
            best = max(choices, key=choices.get)
            total += np.log(choices[best])
            if best == ("word", END):
                break
            if best[0] == "word":
                prefix += (best[1],)
            else:
                prefix += tuple(step.ids[row, best[1] : best[2] + 1].tolist())
                spans += best[2] > best[1]
        assert sequence(step, row, found, 0)[0] == prefix
        np.testing.assert_allclose(found.log_probs[row, 0], total, rtol=1e-5)
    assert spans > 0


@pytest.mark.parametrize("beam", [2, 8])
def test_a_narrow_beam_counts_the_tokens_that_a_span_is_sure_to_have(beam):
    """Two words are likelier than a span, which outputs three tokens for its price.

    The narrow beam finds what the wide one does.
    """
    ids, words = np.array([[V, V + 1, V + 2]], "int32"), {4: 0.38, 5: 0.32}
    span = V + 2 * 3  # three tokens from position 0
    first, later = (np.full((1, V + 3 * 3), 1e-9) for _ in range(2))
    first[0, [*words, span]] = [*words.values(), 0.3]
    later[0, [END, 4]] = [0.6, 0.4]

    def step(actions, carry, index):
        rows = ops.shape(actions)[0]
        log_probs = ops.where(
            ops.equal(index, 0), np.log(first).astype("f4"), np.log(later).astype("f4")
        )
        nothing = ops.full((rows, 3), -1.0)
        return StepOutput(ops.repeat(log_probs, rows, axis=0), nothing, ops.zeros((rows, 3)), carry)

    mask, carry = np.ones((1, 3), bool), {"row": np.zeros(1, "int32")}
    found = beam_search(
        step, carry, ids, mask, V + 3, 5, beam_size=beam, n_best=2, max_span=3, merges=False
    )
    found = numpy(found)
    assert found.tokens[0, 0, :3].tolist() == ids[0].tolist() and found.lengths[0, 0] == 3
    np.testing.assert_allclose(found.log_probs[0, 0], np.log(0.3 * 0.6), rtol=1e-5)
    assert found.tokens[0, 1, 0] == 4 and found.scores[0, 0] > found.scores[0, 1]


def test_what_a_running_span_forces():
    # V = 6, S = 4: actions 6 to 9 are spans of one token, 10 to 13 of two, 14 to 17 of three.
    last = np.array([5, 8, 10, 14], "int32")
    log_probs = np.log(np.full((4, 18), 1 / 18, "float32"))
    forced = numpy(action_space.continue_spans(log_probs, last, 6, 4))
    np.testing.assert_array_equal(forced[:2], log_probs[:2])
    for row, following in ((2, 7), (3, 11)):
        assert forced[row, following] == 0
        assert (np.exp(np.delete(forced[row], following)) == 0).all()
    np.testing.assert_array_equal(numpy(action_space.span_lengths(last, 6, 4)), [1, 1, 2, 3])
    np.testing.assert_array_equal(numpy(action_space.positions(last, 6, 4)), [-1, 2, 0, 0])
    np.testing.assert_array_equal(numpy(action_space.first_tokens(last, 6, 4)), [5, 8, 6, 6])


def protection_of(step):
    """Every copy id is promised, and of the vocabulary's words number 5."""
    protected = ((step.ids >= V) | (step.ids == 5)) & step.mask
    return Protection(
        ops.convert_to_tensor(np.arange(V) == 5), ops.convert_to_tensor(protected), step.max_span
    )


def searches(step, max_length, **options):
    yield numpy(step.search(greedy_search, max_length, **options))
    yield numpy(step.search(beam_search, max_length, beam_size=3, n_best=3, **options))
    uniforms = draw_uniforms(1, 2, 3, max_length)
    yield numpy(step.search(sample_search, max_length, uniforms=uniforms, **options))


@pytest.mark.parametrize("max_span,max_length,ngram", [(1, 4, 2), (3, 7, 1), (3, 4, 0)])
@settings(max_examples=2)
@given(seed=st.integers(0, 10**6))
def test_spans_and_locations_keep_the_promise(max_span, max_length, ngram, seed):
    """However a protected token is output, it is output as often as the source holds it."""
    step = SpanTableStep(seed, 2, V, 4, max_span)
    protection = protection_of(step)
    protected = numpy(protection.source)
    for found in searches(step, max_length, protection=protection, no_repeat_ngram=ngram):
        for row in range(2):
            owed = Counter(step.ids[row][protected[row]].tolist())
            kept = 0
            for k in range(found.tokens.shape[1]):
                if found.scores[row, k] < -1e8:
                    continue
                said, copied_from = sequence(step, row, found, k)
                assert Counter(token for token in said if token >= 5) == owed
                assert all(
                    j < 0 or step.ids[row, j] == token for j, token in zip(copied_from, said)
                )
                kept += 1
            assert kept > 0


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), index=st.integers(0, 4))
def test_forbid_agrees_with_its_definition_for_spans(seed, index):
    max_length, source_length = 6, 4
    step = SpanTableStep(seed, 2, V, source_length, 3)
    protection = protection_of(step)
    protected = numpy(protection.source)
    rng = np.random.default_rng(seed)
    owed = protected & (rng.random(protected.shape) < 0.7)
    log_probs = step.log_probs[:, 0]
    ledger = {"owed": ops.convert_to_tensor(owed)}
    standing = protection.standing(ledger, ops.convert_to_tensor(index), max_length)
    got = np.exp(numpy(protection.forbid(log_probs, ledger, standing, step.ids)))
    for row in range(2):
        p = np.exp(log_probs[row].astype("float64"))
        number, room = int(owed[row].sum()), max_length - index
        owed_ids = set(step.ids[row][owed[row]].tolist())
        breaks, pays, sizes = np.zeros(len(p), bool), np.zeros(len(p), int), np.ones(len(p), int)
        for action in range(len(p)):
            if action < V:
                said, kinds = [action], [action == 5]
            else:
                length, j = (action - V) // source_length + 1, (action - V) % source_length
                if p[action] == 0:
                    continue
                said = step.ids[row, j : j + length].tolist()
                kinds = protected[row, j : j + length].tolist()
            promised = [token for token, kind in zip(said, kinds) if kind]
            breaks[action] = len(set(promised)) < len(promised) or not set(promised) <= owed_ids
            pays[action] = sum(token in owed_ids for token in said)
            sizes[action] = len(said)
        expected = p.copy()
        paying = (pays > 0) & ~breaks
        if number:
            expected[paying] += p[END] * p[paying] / p[paying].sum()
            expected[END] = 0
            expected[sizes - pays > max(room - number, 0)] = 0
        expected[breaks] = 0
        np.testing.assert_allclose(got[row], expected, atol=1e-5)


OPTIONS = dict(coverage_beta=0.2, return_attention=True)


@pytest.mark.parametrize("max_span,beam", [(1, 3), (3, 1), (3, 3)] if TENSORFLOW else [(3, 3)])
def test_compiled_equals_uncompiled(max_span, beam):
    step = SpanTableStep(5, 3, V, 4, max_span)

    def search():
        options = dict(OPTIONS, protection=protection_of(step), no_repeat_ngram=2)
        if beam == 1:
            return step.run(greedy_search, 6, **options)
        return step.run(beam_search, 6, beam_size=beam, n_best=beam, **options)

    # Sharing the end's probability among what is owed is arithmetic, which rounds.
    exact, close = (*EXACT, "attention", "copy_probability"), ("scores", "log_probs")
    assert_same(numpy(search()), numpy(compiled(search)()), exact=exact, close=close)


@pytest.mark.skipif(not TENSORFLOW, reason="JAX compiles for known sizes only")
@pytest.mark.parametrize("beam", [1, 3])
def test_symbolic_sizes(beam):
    """Batch, source and output of unknown sizes, as in an exported model."""
    import tensorflow as tf

    class Uniform:
        """All possible actions alike, by the sizes of the call alone."""

        def __call__(self, actions, carry, index):
            mask = carry["mask"]
            reach = tf.concat([mask, tf.pad(mask[:, 1:], [[0, 0], [0, 1]])], axis=1)
            words = tf.repeat(tf.constant([[False] * 3 + [True] * 3]), tf.shape(mask)[0], axis=0)
            possible = tf.cast(tf.concat([words, reach], axis=1), "float32")
            # Later actions are a little likelier, so that nothing is tied.
            weights = possible * (
                1 + 0.01 * tf.cast(tf.range(tf.shape(possible)[1]), "float32") + 0.003 * carry["n"]
            )
            p = weights / tf.reduce_sum(weights, axis=-1, keepdims=True)
            carry = {"mask": mask, "n": carry["n"] + 1}
            scores = tf.where(p > 0, tf.math.log(tf.maximum(p, 1e-30)), -1e9)
            return StepOutputOf(scores, mask, carry)

    def StepOutputOf(scores, mask, carry):
        from keras_models.decoding import StepOutput

        attention = tf.cast(mask, "float32")
        return StepOutput(scores, tf.where(mask, -1.0, -1e9), attention, carry)

    def run(ids, mask, max_length):
        carry = {"mask": mask, "n": tf.zeros((tf.shape(mask)[0], 1))}
        size = V + tf.shape(ids)[1]
        options = dict(max_span=2, merges=False, no_repeat_ngram=2, min_length=2)
        if beam == 1:
            return greedy_search(Uniform(), carry, ids, mask, size, max_length, **options)
        return beam_search(
            Uniform(), carry, ids, mask, size, max_length, beam_size=3, n_best=3, **options
        )

    served = tf.function(
        run,
        input_signature=[
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.bool),
            tf.TensorSpec([], tf.int32),
        ],
        jit_compile=True,
    )
    for batch, source_length, max_length in ((2, 3, 5), (1, 2, 4)):
        ids = np.tile(V + np.arange(source_length, dtype="int32"), (batch, 1))
        mask = np.ones((batch, source_length), bool)
        mask[-1, -1] = batch == 1
        arguments = tf.constant(ids), tf.constant(mask), tf.constant(max_length)
        assert_same(
            numpy(run(*arguments)), numpy(served(*arguments)), close=[name for name in CLOSE]
        )
    assert served.experimental_get_tracing_count() == 1


def test_each_occurrence_is_an_outcome_of_its_own():
    """A word that stands twice in the source is not merged.

    The likelier place wins, though a word beats neither sum.
    """
    step = SpanTableStep(0, 1, V, 3, 1)
    step.mask, step.ids = np.ones((1, 3), bool), np.array([[V, 5, V]], "int32")
    p = np.array([0, 0, 0, 0.05, 0.4, 0.05, 0.2, 0.05, 0.25])
    step.log_probs = np.broadcast_to(np.log(np.maximum(p, 1e-30)), step.log_probs[:1].shape).astype(
        "float32"
    )
    found = numpy(step.search(greedy_search, 1))
    assert found.tokens[0, 0].tolist() == [4]
    p[4], p[8] = 0.24, 0.41
    step.log_probs = np.broadcast_to(np.log(np.maximum(p, 1e-30)), step.log_probs[:1].shape).astype(
        "float32"
    )
    found = numpy(step.search(beam_search, 1, beam_size=8, n_best=4, min_length=1))
    assert found.tokens[0, :3, 0].tolist() == [V + 2, 4, V]
    assert found.copied_from[0, :3, 0].tolist() == [2, -1, 0]
    assert found.copy_probability[0, :3, 0].tolist() == [1, 0, 1]
