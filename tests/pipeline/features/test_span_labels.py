"""Spans of a target that stand in its source: equal to the greedy segmentation in plain Python."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.keras_models import label_oracles

WORDS = st.sampled_from(["a", "b", "c", "￭,", "Ζεύς"])
TEXTS = st.lists(WORDS, max_size=9)


def expected_labels(source, target, max_span, min_span=1):
    """The oracle's segments as the features write them."""
    starts, lengths = [], []
    for segment in label_oracles.longest_match_spans(source, target, max_span, min_span):
        if segment[0] == "generate":
            starts.append(-1)
            lengths.append(0)
        else:
            _, start, end = segment
            length = end - start + 1
            starts += [start, *[-1] * (length - 1)]
            lengths += [length, *[-1] * (length - 1)]
    return [*starts, -1], [*lengths, 0]


@functools.cache
def traced(max_span, min_span):
    import tensorflow as tf

    from pipeline.features import span_labels

    ragged = tf.RaggedTensorSpec([None, None], tf.string)

    @tf.function(input_signature=[ragged, ragged, tf.TensorSpec([None], tf.bool)])
    def make(source, target, unknown):
        return span_labels.span_labels(source, target, unknown, max_span, min_span)

    return make


@pytest.fixture(scope="module", autouse=True)
def forget_graphs():
    yield
    traced.cache_clear()


def made_labels(pairs, max_span, min_span=1, known=frozenset()):
    """Labels of pairs of token lists: a list of (starts, lengths)."""
    import tensorflow as tf

    def ragged(rows):
        values = tf.constant([token for row in rows for token in row], tf.string)
        return tf.RaggedTensor.from_row_lengths(
            values, tf.constant([len(row) for row in rows], tf.int64)
        )

    source, target = ragged([pair[0] for pair in pairs]), ragged([pair[1] for pair in pairs])
    unknown = tf.constant([token not in known for pair in pairs for token in pair[1]], tf.bool)
    starts, lengths = traced(max_span, min_span)(source, target, unknown)
    return list(zip(starts.to_list(), lengths.to_list()))


@hypothesis.given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5), st.sampled_from([1, 2, 3, 5]))
@hypothesis.settings(max_examples=200)
def test_spans_equal_the_oracle(pairs, max_span):
    assert made_labels(pairs, max_span) == [expected_labels(*pair, max_span) for pair in pairs]


@hypothesis.given(
    st.lists(st.tuples(TEXTS, TEXTS), max_size=5), st.sampled_from([(2, 2), (2, 3), (3, 5)])
)
@hypothesis.settings(max_examples=150)
def test_a_shortest_span_of_known_words_equals_the_oracle(pairs, limits):
    min_span, max_span = limits
    known = {"a", "b", "c", "￭,", "Ζεύς"}
    expected = [expected_labels(*pair, max_span, min_span) for pair in pairs]
    assert made_labels(pairs, max_span, min_span, known) == expected


def test_a_word_that_the_vocabulary_lacks_is_copied_alone_whatever_the_shortest_span():
    pair = (["x", "rare", "y", "a", "b"], ["a", "rare", "nowhere", "a", "b", "rare", "y"])
    (labels,) = made_labels([pair], max_span=5, min_span=3, known={"a", "b", "x", "y"})
    assert labels == ([-1, 1, -1, -1, -1, 1, -1, -1], [0, 1, 0, 0, 0, 1, 0, 0])


def test_the_first_of_equal_spans_and_the_longest_span():
    pair = (["a", "b", "a", "b", "c", "d"], ["a", "b", "c", "d", "a", "b"])
    assert made_labels([pair], 3) == [([2, -1, -1, 5, 0, -1, -1], [3, -1, -1, 1, 2, -1, 0])]
    assert made_labels([pair], 5) == [([2, -1, -1, -1, 0, -1, -1], [4, -1, -1, -1, 2, -1, 0])]


def test_a_span_never_runs_over_the_end_of_a_text():
    pairs = [(["a"], ["a"]), (["b"], ["b"]), (["a", "b"], ["c", "a"]), ([], ["a"]), (["a"], [])]
    assert made_labels(pairs, 5) == [expected_labels(*pair, 5) for pair in pairs]


def test_nothing_at_all():
    assert made_labels([], 5) == []
    assert made_labels([([], [])], 5) == [([-1], [0])]


@pytest.mark.parametrize("number", [20000])
def test_a_long_text_costs_little(number):
    """One text of thousands of equal tokens must not take memory or time to its square."""
    starts, lengths = made_labels([(["a"] * number, ["a"] * number), (["b"], ["b"])], 5)[0]
    assert starts == [0, -1, -1, -1, -1] * (number // 5) + [-1]
    assert lengths == [5, -1, -1, -1, -1] * (number // 5) + [0]
