"""Protected source tokens stand in the output exactly as often as in the source."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import Protection, StepOutput, beam_search, greedy_search
from tests.keras_models.backends import numpy, shared

VOCABULARY = 8  # 0 to 3 special, 4 and 5 words, 6 and 7 placeholders that the vocabulary knows
PROTECTED_WORDS = np.array([False] * 6 + [True] * 2)
END = 3
TINY = -1e9


def random_case(seed, batch=2, source_length=4):
    """Random sources, and a random table of distributions.

    The sources have words (4, 5), known placeholders (6) and unknown ones (V + j).
    """
    random = np.random.default_rng(seed)
    extended = np.zeros((batch, source_length), "int32")
    for row in range(batch):
        for position in range(source_length):
            kind = random.integers(4)
            if kind < 2:
                extended[row, position] = (4, 6)[kind]
            elif kind == 2 or position == 0:
                extended[row, position] = VOCABULARY + position
            else:
                # A repeat takes the id of its first occurrence.
                extended[row, position] = extended[row, random.integers(position)]
    protected = np.isin(extended, [6, 7]) | (extended >= VOCABULARY)
    logits = random.normal(size=(VOCABULARY + source_length, VOCABULARY + source_length)) * 2
    # A token that the row's source lacks cannot be copied; the table is shared, so the step masks
    # by row.
    return extended, protected, logits.astype("float32")


def make_step(logits, possible, extended):
    def step(tokens, carry, index):
        scores = ops.where(carry["possible"], ops.take(logits, tokens, axis=0), TINY)
        log_probs = ops.log_softmax(scores, axis=-1)
        copies = ops.zeros_like(ops.cast(carry["extended"], "float32")) + TINY
        return StepOutput(log_probs, copies, ops.zeros_like(copies), carry)

    return step, {"possible": possible, "extended": extended}


def possible_tokens(extended, size, ruled_out=()):
    possible = np.ones((len(extended), size), bool)
    possible[:, list(ruled_out)] = False
    for row, ids in enumerate(extended):
        for token in range(VOCABULARY, size):
            possible[row, token] = token in ids
    return possible


def search(
    case, beam_size, max_length, ruled_out=(), min_length=0, protected_words=PROTECTED_WORDS
):
    extended, protected, logits = case
    size = logits.shape[1]

    def run(extended, protected, logits, possible, protected_words):
        step, carry = make_step(logits, possible, extended)
        arguments = (step, carry, extended, ops.ones(extended.shape, "bool"), size, max_length)
        options = {"min_length": min_length}
        if protected_words is not None:
            options["protection"] = Protection(protected_words, protected)
        if beam_size == 1:
            return greedy_search(*arguments, **options)
        return beam_search(*arguments, beam_size=beam_size, n_best=beam_size, **options)

    arrays = (extended, protected, logits, possible_tokens(extended, size, ruled_out))
    words = None if protected_words is None else ops.convert_to_tensor(protected_words)
    key = (run.__qualname__, beam_size, max_length, min_length)
    return numpy(shared(key, run, *map(ops.convert_to_tensor, arrays), words))


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    beam_size=st.sampled_from([1, 3]),
    max_length=st.sampled_from([4, 9]),
)
def test_outputs_hold_each_protected_token_as_often_as_the_source(seed, beam_size, max_length):
    assert_kept(random_case(seed), beam_size, max_length)


@pytest.mark.parametrize(
    "beam_size,min_length,ruled_out",
    [(1, 0, range(6, 12)), (3, 5, range(6, 12)), (1, 5, [6, 7]), (3, 0, [6, 7])],
)
def test_what_the_model_rules_out_is_kept_all_the_same(beam_size, min_length, ruled_out):
    """Even where the promise is all that speaks for a token, and nothing may end yet."""
    for seed in range(3):
        assert_kept(random_case(seed), beam_size, 5, ruled_out, min_length)


def assert_kept(case, beam_size, max_length, ruled_out=(), min_length=0):
    extended, protected, _ = case
    found = search(case, beam_size, max_length, ruled_out, min_length)
    tokens, lengths, scores = found.tokens, found.lengths, found.scores
    for row in range(len(extended)):
        owed = Counter(extended[row][protected[row]].tolist())
        for hypothesis in range(tokens.shape[1]):
            if scores[row, hypothesis] < TINY / 2:
                continue  # fewer hypotheses than asked for
            output = tokens[row, hypothesis, : lengths[row, hypothesis]].tolist()
            kept = Counter(
                token for token in output if token >= VOCABULARY or PROTECTED_WORDS[token]
            )
            assert kept == owed
    assert (scores[:, 0] > TINY / 2).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), index=st.integers(0, 6))
def test_forbid_agrees_with_its_definition(seed, index):
    extended, protected, logits = random_case(seed, batch=3)
    random = np.random.default_rng(seed)
    owed = protected & (random.random(protected.shape) < 0.6)
    size, max_length = logits.shape[1], 6
    log_probs = np.log(random.dirichlet(np.ones(size), 3)).astype("float32")
    protection = Protection(
        ops.convert_to_tensor(PROTECTED_WORDS), ops.convert_to_tensor(protected)
    )
    ledger = {"owed": ops.convert_to_tensor(owed)}
    standing = protection.standing(ledger, ops.convert_to_tensor(index, dtype="int32"), max_length)
    got = numpy(
        protection.forbid(
            ops.convert_to_tensor(log_probs), ledger, standing, ops.convert_to_tensor(extended)
        )
    )
    for row in range(3):
        p = np.exp(log_probs[row].astype("float64"))
        owed_ids = set(extended[row][owed[row]].tolist())
        # Id V + j outputs the token at position j, whatever id that is counted under.
        surface = [
            token if token < VOCABULARY else extended[row][token - VOCABULARY]
            for token in range(size)
        ]
        owes = {token for token in range(size) if surface[token] in owed_ids}
        number, room = int(owed[row].sum()), max_length - index
        unfinished = number > 0 and room > 0
        expected = p.copy()
        for token in range(size):
            is_protected = (token < VOCABULARY and PROTECTED_WORDS[token]) or (
                token >= VOCABULARY and protected[row][token - VOCABULARY]
            )
            if unfinished and token in owes:
                expected[token] = p[token] + p[END] * p[token] / sum(p[other] for other in owes)
            if is_protected and token not in owes:
                expected[token] = 0
            if unfinished and (token == END or (number >= room and token not in owes)):
                expected[token] = 0
        np.testing.assert_allclose(np.exp(got[row]), expected, atol=1e-5)


def test_nothing_changes_where_nothing_is_protected():
    extended, protected, logits = random_case(3)
    case = extended, np.zeros_like(protected), logits
    plain = search(case, 3, 5, protected_words=None)
    same = search(case, 3, 5, protected_words=np.zeros(VOCABULARY, bool))
    for one, other in zip(plain[:4], same[:4]):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "token, left", [(9, [False, True, True]), (6, [True, True, False]), (4, [True, True, True])]
)
def test_pay_settles_one_occurrence(token, left):
    extended = ops.convert_to_tensor(np.array([[9, 9, 6]], "int32"))
    everything = ops.ones((1, 3), "bool")
    paid = Protection(ops.convert_to_tensor(PROTECTED_WORDS), everything).pay(
        {"owed": everything},
        everything,
        ops.convert_to_tensor(np.array([token], "int32")),
        extended,
    )
    assert ops.convert_to_numpy(paid["owed"])[0].tolist() == left
