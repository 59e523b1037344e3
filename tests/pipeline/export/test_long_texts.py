"""Texts longer than a model takes: their sentences are joined, or they are cut off, never
silently.
"""

import pytest

from serving import term_markup
from tests.pipeline.export.test_units_served import ROWS, copy_all
from tests.pipeline.export.tiny_models import make_recipe, transform_tiny, untrained


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


@pytest.fixture(scope="module")
def transform_output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transform")
    return transform_tiny(folder, recipe_of(), ROWS, ["greet"], ["and"])


def recipe_of(**decoding_keys):
    return make_recipe(
        data={"tokenization": "text"},
        decoding={"length_buckets": [16], "pass_through": False, **decoding_keys},
    )


def model(transform_output, monkeypatch, long_texts):
    """Returns a function that copies at most 16 tokens of each text."""
    import tensorflow as tf

    from keras_models import decoding
    from pipeline.export.serving_module import ServingModule

    monkeypatch.setattr(decoding, "decode", copy_all)
    recipe = recipe_of(long_texts=long_texts)
    module = ServingModule(untrained(recipe, transform_output), transform_output, recipe)

    def answer(*texts):
        outputs = module.serving_default_no_xla(tf.constant(texts))
        return {name: value.numpy().tolist() for name, value in outputs.items()}

    return answer


LONG = (
    "  Greet %(name)s,  Dr. Who and <b>Bob</b>!\n\nThen 日本 has come. Now ada leaves us; (x) bye\t"
)


@pytest.mark.slow
def test_a_long_text_is_answered_sentence_by_sentence_and_comes_back_byte_for_byte(
    transform_output, monkeypatch
):
    import tensorflow as tf

    answer = model(transform_output, monkeypatch, "split")
    ada, who = term_markup.term("ada", "Eva"), term_markup.term("Dr. Who", "Mr. X")
    # Translations of terms stand in every sentence.
    glossed = LONG.replace("ada", ada).replace("Dr. Who", who)
    made = answer(LONG, "greet  ada. Bob", glossed)
    expected = [LONG, "greet  ada. Bob", LONG.replace("ada", "Eva").replace("Dr. Who", "Mr. X")]
    assert [text.decode() for text in made["text"]] == expected
    assert made["parts"] == [3, 1, 3]
    for tokens, sources, places in zip(made["tokens"], made["source_tokens"], made["copied_from"]):
        count = sum(token != b"" for token in tokens)
        assert places[:count] == list(range(count))
        assert sum(token != b"" for token in sources) == count
    assert made["tokens"][0] == made["source_tokens"][0]
    assert made["tokens"][0][16] != b""
    too_long = "Short. A" + " a" * 16
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="text 1 has 17 tokens in one sentence; this model"
    ):
        answer("a", too_long)


@pytest.mark.slow
def test_a_long_text_is_cut_off_and_the_answer_says_so(transform_output, monkeypatch):
    long = "a " * 14 + "b <b>and</b> so on"
    made = model(transform_output, monkeypatch, "truncate")(long, "greet ada")
    assert made["text"] == [("a " * 14 + "b <b>").encode(), b"greet ada"]
    assert made["tokens_dropped"] == [6, 0]
    assert made["source_tokens"][0] == [b"a"] * 14 + [b"b", b"<b>"]
