"""Which texts are copied instead of translated, and which unknown tokens an answer lost."""

import numpy as np
import pytest
import tensorflow as tf

from pipeline.export.pass_through import PassThrough
from pipeline.features import protected_classes
from tests.pipeline.export.tiny_models import make_recipe

VOCABULARY = {"one": 9, "two": 10, "1": 11, "￭,": 12}
SIZE = 20


def features_of(texts, copies=None, rows=None):
    """What a `TextEncoder` makes of texts that are cut at blanks."""
    tokens = tf.ragged.constant([text.split() for text in texts], dtype=tf.string)
    words = [[word.decode() for word in row] for row in tokens.to_list()]
    ids = [[VOCABULARY.get(word, 1) for word in row] for row in words]
    extended = [[VOCABULARY.get(word, SIZE + row.index(word)) for word in row] for row in words]
    features = {
        "source_tokens": tokens,
        "source_copy_tokens": tokens if copies is None else tf.ragged.constant(copies),
        "source_ids": tf.ragged.constant(ids, dtype=tf.int32),
        "source_extended_ids": tf.ragged.constant(extended, dtype=tf.int32),
        "source_protected": tokens.with_flat_values(
            protected_classes.is_protected(tokens.flat_values)
        ),
    }
    if rows is not None:
        features["source_lexicon_rows"] = tf.ragged.constant(rows, dtype=tf.int32)
    return features


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("1", True),
        ("2 ￭, 5 ½ 10 ￭% ٣ Ⅳ", True),
        ("? ￭! … « » 、 😀 👩‍🚀 ￭ +", True),
        ("%(name)s ￭ %d <b> https://a.de/b --all", True),
        ("привет ￭, 你好", True),
        ("zanzibar 1", True),
        ("one", False),
        ("1 one", False),
        ("привет two", False),
    ],
)
def test_texts_without_a_known_word_pass(text, passes):
    features = features_of([text, "one two"])
    assert PassThrough(make_recipe()).passes(features).numpy().tolist() == [passes, False]
    off = make_recipe(decoding={"pass_through": False})
    assert not PassThrough(off).passes(features).numpy().any()


def test_a_lexicon_has_its_say():
    features = features_of(["denver 5", "oslo 5"], copies=[["denver:_ci", "5"], ["oslo", "5"]])
    assert PassThrough(make_recipe()).passes(features).numpy().tolist() == [False, True]
    features = features_of(["haus 5", "hut 5"], rows=[[7, 1], [1, 1]])
    reading = make_recipe(model={"head": "lexicon_bias"}, lexicon={"kind": "learned"})
    assert PassThrough(reading).passes(features).numpy().tolist() == [False, True]
    # A lexicon that taught the attention is not asked when a text is answered.
    taught = make_recipe(training={"guided_alignment_weight": 0.5}, lexicon={"kind": "learned"})
    assert PassThrough(taught).passes(features).numpy().tolist() == [True, True]


def test_characters_that_units_lack_are_unknown():
    spelt = ["<0xE4> ￭<0xBD> ￭<0xA0> ￭?", "one ￭<0xBD>", "<0xE4>￭ 1"]
    pieces = PassThrough(make_recipe(data={"units": "subwords"}))
    features = features_of(spelt)
    # A vocabulary of units has the bytes.
    known = tf.ones_like(features["source_ids"].flat_values) * 9
    features["source_ids"] = features["source_ids"].with_flat_values(known)
    assert pieces.passes(features).numpy().tolist() == [True, False, True]
    assert not PassThrough(make_recipe()).passes(features).numpy()[:2].any()


def answers_of(texts, width, n_best):
    shape = (len(texts), n_best, width)
    return {
        "text": tf.fill(shape[:2], "wrong"),
        "score": tf.fill(shape[:2], -2.0),
        "unknown_not_copied": tf.fill(shape[:2], 3),
        "tokens": tf.fill(shape, "w"),
        "copied_from": tf.fill(shape, 5),
        "copy_probability": tf.fill(shape, 0.5),
        "source_tokens": tf.ragged.constant([text.split() for text in texts]).to_tensor(""),
    }


@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_copy_replaces_the_answers(width):
    texts = ["  1 ￭, %d\n", "one 7 two 8 one 9"]
    features = features_of(texts)
    part, before = PassThrough(make_recipe()), answers_of(texts, width, 2)
    answers = part.apply(
        tf.constant(texts), features["source_tokens"], part.passes(features), before
    )
    answers = {name: value.numpy() for name, value in answers.items()}
    number = max(width, 3)
    assert answers["tokens"].shape == (2, 2, number)
    for best in range(2):
        assert answers["text"][0, best].decode() == texts[0]
        tokens = [token.decode() for token in answers["tokens"][0, best]]
        assert tokens == ["1", "￭,", "%d", *[""] * (number - 3)]
        assert answers["copied_from"][0, best].tolist() == [0, 1, 2, *[-1] * (number - 3)]
        assert answers["copy_probability"][0, best].tolist() == [1.0] * 3 + [0.0] * (number - 3)
        assert answers["score"][0, best] == answers["unknown_not_copied"][0, best] == 0
    # The other text keeps what the model said.
    for name in ("text", "score", "unknown_not_copied"):
        np.testing.assert_array_equal(answers[name][1], before[name].numpy()[1])
    assert answers["copied_from"][1, 0].tolist() == [5] * width + [-1] * (number - width)
    weights = tf.fill([2, width, 6], 0.25)
    attention = part.attention(weights, part.passes(features), tf.constant(number)).numpy()
    np.testing.assert_array_equal(attention[0], np.eye(number, 6))
    np.testing.assert_array_equal(attention[1, :width], np.full((width, 6), 0.25))


def test_lost_tokens_are_counted():
    features = features_of(["one привет мир привет", "two"])
    hypotheses = {
        # Copied by the id that all places share; by a place of its own; generated; padding.
        "tokens": tf.constant([[[9, SIZE + 1, 0], [SIZE + 3, 0, 0], [9, 10, 0]], [[9, 0, 0]] * 3]),
        "copied_from": tf.constant([[[-1, 1, -1], [3, -1, -1], [-1, -1, -1]], [[-1, -1, -1]] * 3]),
        "lengths": tf.constant([[2, 1, 2], [1, 1, 1]]),
    }
    lost = PassThrough(make_recipe()).lost(features, hypotheses).numpy()
    assert lost.tolist() == [[1, 1, 3], [0, 0, 0]]


def test_a_text_without_tokens_fails_by_no_lookup():
    features = {
        name: tf.RaggedTensor.from_row_lengths(value.flat_values[:0], [0, 0])
        for name, value in features_of(["one", "two"]).items()
    }
    hypotheses = {
        name: tf.zeros(shape, tf.int32)
        for name, shape in (("tokens", [2, 1, 3]), ("copied_from", [2, 1, 3]), ("lengths", [2, 1]))
    }
    assert PassThrough(make_recipe()).lost(features, hypotheses).numpy().tolist() == [[0], [0]]
