"""Pointers of pointer softmax: equal to what plain Python makes of the paper's words."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.keras_models import label_oracles

WORDS = st.sampled_from(["a", "b", "c", "d", "Ζεύς"])
TEXTS = st.lists(WORDS, max_size=7)
TRANSLATIONS = st.dictionaries(
    st.sampled_from(["a", "b", "x", "Ζεύς"]),
    st.lists(st.sampled_from(["a", "b", "c", "z"]), unique=True, max_size=3),
)


def ragged(rows):
    import tensorflow as tf

    values = tf.constant([token for row in rows for token in row], tf.string)
    return tf.RaggedTensor.from_row_lengths(
        values, tf.constant([len(row) for row in rows], tf.int64)
    )


def flat(rows, dtype):
    import tensorflow as tf

    return tf.constant([value for row in rows for value in row], dtype)


def lookup_in(dictionary):
    """The graph's lookup, of a Python dict."""
    import tensorflow as tf

    def lookup(words):
        return tf.constant(
            [" ".join(dictionary.get(word.decode(), [])) for word in words.numpy()], tf.string
        )

    return lookup


@hypothesis.given(
    st.lists(
        st.tuples(TEXTS, st.lists(st.sampled_from(["a", "b", "c", "x", "y", "Ζεύς"]), max_size=7)),
        max_size=4,
    ),
    TRANSLATIONS,
    st.sets(WORDS, max_size=3),
)
@hypothesis.settings(max_examples=120)
def test_dictionary_pointers_equal_the_oracle(pairs, dictionary, vocabulary):
    from pipeline.features import pointer_labels

    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    unknown = flat([[word not in vocabulary for word in target] for target in targets], "bool")
    made = pointer_labels.dictionary_pointers(
        ragged(sources), ragged(targets), unknown, lookup_in(dictionary)
    )
    expected = [
        [*label_oracles.dictionary_pointers(*pair, vocabulary, dictionary), -1] for pair in pairs
    ]
    assert made.to_list() == expected


FLAGGED = st.lists(st.tuples(WORDS, st.booleans()), max_size=7)


@hypothesis.given(st.lists(st.tuples(FLAGGED, TEXTS), max_size=4))
@hypothesis.settings(max_examples=120)
def test_entities_equal_the_oracle(pairs):
    from pipeline.features import pointer_labels

    sources = [[token for token, _ in source] for source, _ in pairs]
    flags = [[flag for _, flag in source] for source, _ in pairs]
    targets = [target for _, target in pairs]
    numbers, pointers = pointer_labels.entity_labels(
        ragged(sources), ragged(targets), flat(flags, "bool")
    )
    expected_numbers, expected_pointers = [], []
    for source, flagged, target in zip(sources, flags, targets):
        entities = {token for token, flag in zip(source, flagged) if flag}
        ids, _, points = label_oracles.entity_pointers(
            source, target, flagged, [token in entities for token in target]
        )
        expected_numbers += ids
        expected_pointers.append([*points, -1])
    assert numbers.numpy().tolist() == expected_numbers
    assert pointers.to_list() == expected_pointers


def test_tags_that_mark_entities():
    import tensorflow as tf

    from pipeline.features import pointer_labels

    tags = ["O", "B-PER", "0", "-", "_", "I", "ORG", "OO", ""]
    made = pointer_labels.is_entity(tf.constant(tags)).numpy().tolist()
    assert made == [False, True, False, False, False, True, True, True, True]


def test_entity_ids_are_the_last_of_the_source_vocabulary():
    import tensorflow as tf

    from pipeline.features import pointer_labels

    known, numbers = tf.constant([5, 6, 7, 8], tf.int64), tf.constant([1, 0, 3, 4], tf.int64)
    made = pointer_labels.entity_ids(
        known, numbers, source_size=tf.constant(20, tf.int64), number_of_entities=3
    )
    assert made.numpy().tolist() == [17, 6, 19, 1]


@pytest.mark.parametrize("number", [20000])
def test_long_texts_cost_little(number):
    from pipeline.features import pointer_labels

    words = [["a"] * number, ["b"]]
    unknown = flat([[True] * number, [True]], "bool")
    made = pointer_labels.dictionary_pointers(
        ragged([["b"] * number, ["b"]]), ragged(words), unknown, lookup_in({"a": ["c", "b"]})
    )
    assert made.to_list() == [[0] * number + [-1], [0, -1]]
