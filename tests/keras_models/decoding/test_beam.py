import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import beam_search, greedy_search
from tests.keras_models import oracles
from tests.keras_models.backends import TENSORFLOW, compiled, numpy
from tests.keras_models.decoding.fakes import END, PAD, START, UNK, ScriptStep, TableStep, logs
from tests.keras_models.decoding.test_greedy import read, spell

EXACT = ("tokens", "lengths", "copied_from")
CLOSE = ("scores", "log_probs", "copy_probability", "attention")


def assert_same(first, second, rows=slice(None), exact=EXACT, close=CLOSE, tolerance=1e-6):
    for name in exact:
        np.testing.assert_array_equal(
            getattr(first, name)[rows], getattr(second, name)[rows], err_msg=name
        )
    for name in close:
        if getattr(first, name) is not None:
            np.testing.assert_allclose(
                getattr(first, name)[rows],
                getattr(second, name)[rows],
                rtol=tolerance,
                atol=tolerance,
                err_msg=name,
            )


def words_of(step, row):
    """The words that a row may output: no specials, no copy ids without a source position."""
    possible = np.exp(step.log_probs[row]).sum(axis=0) > 0
    return [word for word in range(4, step.size) if possible[word]]


# Few rows of options and many seeds: JAX compiles a search for each row.
@pytest.mark.parametrize(
    "vocabulary_size,source_length,max_length,min_length,alpha,beta",
    [
        (5, 1, 0, 0, 0.6, 0.3),
        (6, 2, 2, 1, 0.0, 0.0),
        (5, 2, 3, 0, 0.6, 0.0),
        (6, 1, 3, 2, 1.0, 0.3),
        (5, 2, 4, 2, 0.0, 0.3),
    ],
)
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6))
def test_equals_exhaustive_search(
    vocabulary_size, source_length, max_length, min_length, alpha, beta, seed
):
    step = TableStep(seed, 2, vocabulary_size, source_length)
    words = vocabulary_size - 4 + source_length
    # Wide enough to hold all outputs and all that still run: nothing is pruned.
    beam = sum(words**length for length in range(max_length + 1))
    options = dict(length_alpha=alpha, coverage_beta=beta, min_length=min_length)
    result = numpy(step.search(beam_search, max_length, beam_size=beam, n_best=beam, **options))
    for row in range(2):
        expected = oracles.exhaustive_search(
            step.distribution(row),
            words_of(step, row),
            END,
            max_length,
            min_length,
            alpha,
            beta,
            step.mask[row],
        )
        count = len(expected)
        sequences = [
            tuple(tokens[:length])
            for tokens, length in zip(result.tokens[row].tolist(), result.lengths[row].tolist())
        ]
        assert sequences[:count] == [sequence for _, _, sequence in expected]
        np.testing.assert_allclose(
            result.scores[row, :count], [score for score, _, _ in expected], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(
            result.log_probs[row, :count], [total for _, total, _ in expected], rtol=1e-5
        )
        # There is nothing else to find.
        assert (result.scores[row, count:] < -1e8).all()


@pytest.mark.parametrize("beam,alpha,beta", [(2, 1.0, 0.3), (3, 0.0, 0.3), (4, 1.0, 0.0)])
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6))
def test_a_narrow_beam_prunes_and_ended_hypotheses_keep_their_places(beam, alpha, beta, seed):
    step = TableStep(seed, 2, 6, 3)
    options = dict(length_alpha=alpha, coverage_beta=beta, min_length=1)
    result = numpy(step.search(beam_search, 6, beam_size=beam, n_best=beam, **options))
    for row in range(2):
        expected = oracles.beam_search(
            step.distribution(row),
            words_of(step, row),
            END,
            beam,
            6,
            1,
            alpha,
            beta,
            step.mask[row],
        )
        found = zip(result.tokens[row].tolist(), result.lengths[row].tolist())
        assert [tuple(tokens[:length]) for tokens, length in found] == [
            sequence for _, _, sequence in expected
        ]
        np.testing.assert_allclose(
            result.scores[row], [score for score, _, _ in expected], rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("alpha,beta", [(0.0, 0.3), (1.0, 0.0)])
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_a_narrow_beam_is_a_set_of_true_scores(alpha, beta, seed):
    """With pruning the best come first, without duplicates, scored as their tokens are."""
    step = TableStep(seed, 3, 6, 4)
    options = dict(length_alpha=alpha, coverage_beta=beta, min_length=1, return_attention=True)
    result = numpy(step.search(beam_search, 6, beam_size=3, n_best=3, **options))
    for row in range(3):
        seen = set()
        for k in range(3):
            length = result.lengths[row, k]
            sequence = tuple(result.tokens[row, k, :length].tolist())
            assert 1 <= length <= 6 and sequence not in seen
            assert (
                not {PAD, UNK, START, END} & set(sequence)
                and (result.tokens[row, k, length:] == PAD).all()
            )
            seen.add(sequence)
            total, attentions = 0.0, []
            for t, word in enumerate((*sequence, END)):
                log_probs, attention = step.distribution(row)(sequence[:t])
                total += float(log_probs[word])
                attentions.append(attention)
            np.testing.assert_allclose(result.log_probs[row, k], total, rtol=1e-5)
            score = total / oracles.length_penalty(length + 1, alpha)
            score += oracles.coverage_penalty(attentions[:-1], step.mask[row], beta) if beta else 0
            np.testing.assert_allclose(result.scores[row, k], score, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(
                result.attention[row, k, :length], np.reshape(attentions[:-1], (length, 4))
            )
        assert (np.diff(result.scores[row]) <= 0).all()


@pytest.mark.parametrize(
    "alpha,beta,min_length,allow_unknown", [(0.6, 0.3, 0, True), (1.0, 0.0, 3, False)]
)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_a_beam_of_one_is_greedy_search(alpha, beta, min_length, allow_unknown, seed):
    step = TableStep(seed, 3, 6, 4)
    options = dict(
        length_alpha=alpha,
        coverage_beta=beta,
        min_length=min_length,
        allow_unknown=allow_unknown,
        return_attention=True,
    )
    greedy = numpy(step.search(greedy_search, 6, **options))
    beam = numpy(step.search(beam_search, 6, beam_size=1, **options))
    assert_same(greedy, beam)


@pytest.mark.parametrize("beam,alpha", [(1, 0.6), (4, 0.0), (4, 1.0)])
def test_compiled_equals_uncompiled(beam, alpha):
    step = TableStep(5, 3, 7, 4)

    def search():
        options = dict(
            beam_size=beam,
            n_best=beam,
            length_alpha=alpha,
            coverage_beta=0.2,
            return_attention=True,
        )
        return step.run(beam_search, 6, **options)

    exact = (*EXACT, "log_probs", "attention")
    assert_same(
        numpy(search()),
        numpy(compiled(search)()),
        exact=exact,
        close=("scores", "copy_probability"),
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_rows_are_independent(beam):
    step = TableStep(6, 4, 6, 3)
    options = dict(beam_size=beam, n_best=beam, coverage_beta=0.2, return_attention=True)
    together = numpy(step.search(beam_search, 5, **options))
    for row in range(4):
        alone = numpy(step.row(row).search(beam_search, 5, **options))
        assert_same(type(alone)(*(value[row : row + 1] for value in together)), alone)


def test_finds_what_greedy_search_misses():
    """The likeliest first token leads nowhere; its beam neighbour leads to the best output."""
    size = 7  # 4 and 5 words, 6 copies the one source token

    class Garden(ScriptStep):
        def __call__(self, tokens, carry, index):
            output = super().__call__(tokens, carry, index)
            sure = logs([[0, 0, 0, 1.0 - 1e-6, 1e-6, 0, 0]])
            good = ops.expand_dims(ops.equal(tokens, 5), -1)
            return output._replace(log_probs=ops.where(good, sure, output.log_probs))

    first = [0, 0, 0, 0.1, 0.5, 0.4, 0]
    after = [0, 0, 0, 0.2, 0.2, 0.3, 0.3]
    step = Garden(logs([first, after]), logs([[0.0], [0.3]]))
    arguments = (step, {}, ops.convert_to_tensor([[6]]), ops.convert_to_tensor([[True]]), size, 3)
    greedy = numpy(greedy_search(*arguments, length_alpha=0.0))
    beam = numpy(beam_search(*arguments, beam_size=2, length_alpha=0.0))
    assert greedy.tokens[0, 0, 0] == 4
    assert beam.tokens[0, 0].tolist() == [5, 0, 0]
    np.testing.assert_allclose(np.exp(beam.scores[0, 0]), 0.4, rtol=1e-4)
    assert beam.scores[0, 0] > greedy.scores[0, 0]


def test_reads_as_words():
    hypotheses = spell(beam_search, "see Ünïx", beam_size=3)
    assert [read(hypotheses, row) for row in range(2)] == ["see Ünïx"] * 2
    assert hypotheses.copied_from[0, 0].tolist() == [-1, -1, -1, -1, 0, -1, 2, -1] + [-1] * 4
    np.testing.assert_allclose(
        hypotheses.copy_probability[0, 0], [0] * 4 + [1, 0, 1, 0] + [0] * 4, atol=1e-6
    )


def test_longest_and_shortest_output():
    assert read(spell(beam_search, "abcdef", max_length=3, beam_size=2), 0) == "abc"
    hypotheses = spell(beam_search, "ab", min_length=5, beam_size=3, n_best=3)
    assert (hypotheses.lengths >= 5).all() and read(hypotheses, 0)[:2] == "ab"


def test_provenance_follows_the_hypothesis():
    """One hypothesis copies its word, the other mostly generates it.

    The position is the likeliest occurrence.
    """
    first = [0, 0, 0, 0, 0.6, 0.4, 0, 0, 0]
    end = [0, 0, 0, 1, 0, 0, 0, 0, 0]
    step = ScriptStep(logs([first, end]), logs([[0.2, 0.0, 0.35], [0, 0, 0]]))
    ids = ops.convert_to_tensor([[4, 5, 4]])
    result = numpy(
        beam_search(step, {}, ids, ops.convert_to_tensor([[True] * 3]), 9, 2, beam_size=2, n_best=2)
    )
    assert result.tokens[0, :, 0].tolist() == [4, 5]
    assert result.copied_from[0, :, 0].tolist() == [2, -1]
    np.testing.assert_allclose(result.copy_probability[0, :, 0], [0.55 / 0.6, 0], atol=1e-5)


@pytest.mark.parametrize("beam", [2, 30])
def test_forbidden_tokens_are_never_output_however_likely(beam):
    p = [0.3, 0.3, 0.3, 0.05, 0.03, 0.02, 0.0]
    step = ScriptStep(logs([p]), logs([[0.0]]))
    arguments = (step, {}, ops.convert_to_tensor([[6]]), ops.convert_to_tensor([[True]]), 7, 3)
    result = numpy(beam_search(*arguments, beam_size=beam, n_best=2))
    for k in range(2):
        assert set(result.tokens[0, k, : result.lengths[0, k]].tolist()) <= {4, 5}
    unknown = numpy(
        beam_search(*arguments, beam_size=beam, length_alpha=0.0, min_length=1, allow_unknown=True)
    )
    assert unknown.tokens[0, 0].tolist() == [UNK, 0, 0]


def test_a_beam_wider_than_all_there_is():
    step = TableStep(3, 2, 5, 1)
    wide = numpy(step.search(beam_search, 2, beam_size=40, n_best=3))
    enough = numpy(step.search(beam_search, 2, beam_size=9, n_best=3))
    assert_same(wide, enough)


def test_n_best_must_fit_in_the_beam():
    with pytest.raises(ValueError, match=r"n_best \(3\) cannot exceed beam_size \(2\)"):
        TableStep(0, 1, 5, 1).search(beam_search, 3, beam_size=2, n_best=3)


@pytest.mark.parametrize("batch,beam,n_best,beta", [(1, 2, 1, 0.3), (2, 2, 2, 0.0), (7, 3, 1, 0.3)])
@pytest.mark.parametrize("seed", [0, 1] if TENSORFLOW else [0])
def test_going_on_with_the_sources_that_run_changes_nothing(seed, batch, beam, n_best, beta):
    step = TableStep(seed, batch, 6, 3)
    options = dict(
        beam_size=beam, n_best=n_best, coverage_beta=beta, min_length=1, return_attention=True
    )
    seen = []

    def step_of(sources):
        seen.append(ops.shape(sources)[0])
        # Rows carry which source they are of.
        return step

    expected = numpy(step.search(beam_search, 7, **options))
    assert_same(expected, numpy(step.run(beam_search, 7, step_of=step_of, **options)))
    assert seen == ([] if batch == 1 else [max(batch // 2, 1)])


def test_steps_of_the_second_half_are_of_half_the_rows():
    """One source of four needs three tokens more than the others.

    These steps are its own and one other's.
    """
    step, rows = TableStep(0, 4, 6, 3), []
    step.log_probs[...] = -10.0
    step.log_probs[:, :, END] = 0.0
    # States of row 2's words on the way, in which it does not end.
    state = step.next_state(2, START)
    for _ in range(3):
        step.log_probs[2, state] = -10.0
        step.log_probs[2, state, 4] = 0.0
        state = step.next_state(state, 4)

    def counted(tokens, carry, index):
        rows.append(int(tokens.shape[0]))
        return step(tokens, carry, index)

    def search(_, *arguments, **options):
        return beam_search(counted, *arguments, **options)

    found = numpy(
        step.run(search, 9, beam_size=2, length_alpha=0.0, step_of=lambda sources: counted)
    )
    assert found.lengths[:, 0].tolist() == [0, 0, 3, 0]
    # Once a step where steps are run one by one, once for each loop where they are traced.
    assert rows[0] == 8 and rows[-1] == 4 and rows == sorted(rows, reverse=True)
