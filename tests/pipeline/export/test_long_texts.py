"""Texts longer than a model takes: their sentences are joined, or they are cut off, never
silently.
"""

import pytest

from tests.pipeline.export.test_units_served import ROWS, copy_all
from tests.pipeline.export.tiny_models import export_tiny, make_recipe


def strings(rows):
    import tensorflow as tf

    return tf.constant(rows, tf.string)


def test_the_answers_of_parts_are_joined():
    import numpy as np
    import tensorflow as tf

    from pipeline.export import long_texts

    # Three parts, two answers each; the first two parts are one text.
    answers = {
        "text": strings([["A. ", "a. "], ["B", "b"], ["C", "c"]]),
        "score": tf.constant([[-1.0, -2.0], [-4.0, -5.0], [-7.3, -8.0]]),
        "tokens": strings([[["A", "."], ["a", ""]], [["B", ""], ["b", "b"]], [["C", ""]] * 2]),
        "copied_from": tf.constant([[[0, -1], [2, -1]], [[1, -1], [0, 1]], [[0, -1]] * 2]),
        "copy_probability": tf.constant(
            [[[0.5, 0.0], [0.25, 0.0]], [[1.0, 0.0], [0.75, 0.5]], [[0.1, 0.0]] * 2]
        ),
        "source_tokens": strings([["x", "y", "z"], ["v", "w", ""], ["u", "", ""]]),
        "unknown_not_copied": tf.constant([[1, 2], [3, 4], [5, 6]]),
    }
    made = long_texts.joined(answers, tf.constant([0, 2, 3], tf.int64))
    plain = {name: value.numpy().tolist() for name, value in made.items()}
    assert plain["text"] == [[b"A. B", b"a. b"], [b"C", b"c"]]
    assert plain["tokens"] == [
        [[b"A", b".", b"B"], [b"a", b"b", b"b"]],
        [[b"C", b"", b""], [b"C", b"", b""]],
    ]
    # Places in the whole source.
    assert plain["copied_from"] == [[[0, -1, 4], [2, 3, 4]], [[0, -1, -1]] * 2]
    assert plain["source_tokens"] == [[b"x", b"y", b"z", b"v", b"w"], [b"u", b"", b"", b"", b""]]
    assert plain["copy_probability"][0] == [[0.5, 0.0, 1.0], [0.25, 0.75, 0.5]]
    assert plain["unknown_not_copied"] == [[4, 6], [5, 6]]
    assert plain["parts"] == [2, 1]
    # Weighted with tokens and end: (3 * -1 + 2 * -4) / 5; that of a whole text is untouched.
    np.testing.assert_allclose(plain["score"][0], [-11 / 5, (2 * -2 + 3 * -5) / 5], rtol=1e-6)
    assert made["score"][1, 0] == np.float32(-7.3)

    attention = tf.reshape(tf.range(3 * 2 * 3, dtype=tf.float32), [3, 2, 3]) + 1
    joined = long_texts.joined_attention(
        attention,
        answers["tokens"][:, 0],
        answers["source_tokens"],
        tf.constant([0, 2, 3], tf.int64),
    )
    assert joined.numpy().tolist() == [
        [[1, 2, 3, 0, 0], [4, 5, 6, 0, 0], [0, 0, 0, 7, 8]],
        [[13, 0, 0, 0, 0], [0] * 5, [0] * 5],
    ]


def model(folder, monkeypatch, **decoding_keys):
    """Returns a `serving.model.Model` that copies at most 16 tokens."""
    from keras_models import decoding
    from serving.model import Model

    monkeypatch.setattr(decoding, "decode", copy_all)
    recipe = make_recipe(
        data={"tokenization": "text"},
        decoding={"length_buckets": [16], "pass_through": False, **decoding_keys},
    )
    signatures = ("serving_default", "n_best")
    exported = export_tiny(folder, recipe, ROWS, ["greet"], ["and"], signatures, train=False)
    (folder / "served").mkdir()
    exported.rename(folder / "served" / "1")
    return Model(folder / "served", batch_size=4)


LONG = (
    "  Greet %(name)s,  Dr. Who and <b>Bob</b>!\n\nThen 日本 has come. Now ada leaves us; (x) bye\t"
)


@pytest.mark.slow
def test_a_long_text_is_answered_sentence_by_sentence_and_comes_back_byte_for_byte(
    tmp_path, monkeypatch
):
    from serving.client import RequestError

    too_long = "Short. " + "a " * 17
    with model(tmp_path, monkeypatch, long_texts="split") as served:
        answers = served.predict([LONG, "greet  ada. Bob"])
        assert [answer.text for answer in answers] == [LONG, "greet  ada. Bob"]
        assert [answer.parts for answer in answers] == [3, 1]
        for answer in answers:
            assert [token.copied_from for token in answer.tokens] == list(range(len(answer.tokens)))
            assert [token.text for token in answer.tokens] == [
                token.source_token for token in answer.tokens
            ]
        assert len(answers[0].tokens) > 16
        # Translations of terms stand in every sentence.
        glossed = served.predict(LONG, glossary={"ada": "Eva", "Dr. Who": "Mr. X"})[0]
        assert glossed.text == LONG.replace("ada", "Eva").replace("Dr. Who", "Mr. X")
        assert served.n_best(LONG)[0][0] == answers[0]
        with pytest.raises(RequestError, match="text 1 has 17 tokens in one sentence; this model"):
            served.predict(["a", too_long])


@pytest.mark.slow
def test_a_long_text_is_cut_off_and_the_answer_says_so(tmp_path, monkeypatch):
    tail = " <b>and</b> so on"
    with model(tmp_path, monkeypatch, long_texts="truncate") as served:
        first, second = served.predict(["a " * 14 + "b" + tail, "greet ada"])
    assert first.text == "a " * 14 + "b <b>"
    assert (first.tokens_dropped, second.tokens_dropped) == (6, 0)
    assert len(first.tokens) == 16 and second.text == "greet ada"
