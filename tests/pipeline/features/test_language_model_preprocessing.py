"""The graph of a language model's texts: tokens, line ends, and ids."""

import pytest

from pipeline.text import tokenization

WORDS = ["a", "b", "<unk>"]
V = len(tokenization.SPECIAL_TOKENS) + len(WORDS)
A, B, UNK = range(V - 3, V)
END = tokenization.END_ID


@pytest.fixture(scope="module")
def make():
    import tensorflow as tf

    from pipeline.features import language_model_preprocessing as preprocessing

    keys = tf.constant([*tokenization.SPECIAL_TOKENS, *WORDS])
    initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.range(V, dtype=tf.int64))
    table = tf.lookup.StaticHashTable(initializer, -1)

    def run(*texts, unknown="<unk>", lowercase=False):
        tokenizer = tokenization.Tokenizer("whitespace", lowercase)
        features = preprocessing.make_features(
            tf.constant(texts, tf.string), table, tokenizer, unknown
        )
        return {
            name: value.to_list() for name, value in features.items()
        }, preprocessing.detokenize(features["tokens"])

    return run


def test_line_feeds_end_sentences_and_texts_end_nowhere(make):
    features, texts = make("a b\na", "\n", "b", " a \n\n b\n", "")
    assert features["ids"] == [[A, B, END, A], [END], [B], [A, END, END, B, END], []]
    assert features["tokens"][3] == [b"a", b"[END]", b"[END]", b"b", b"[END]"]
    assert features["extended_ids"] == features["ids"]
    assert [text.decode() for text in texts.numpy()] == ["a b\na", "\n", "b", "a\n\nb\n", ""]


def test_words_without_an_id_are_fed_as_the_texts_own_unknown_word(make):
    features, _ = make("a zz é zz\nyy zz", "zz é")
    assert features["ids"] == [[A, UNK, UNK, UNK, END, UNK, UNK], [UNK, UNK]]
    # Copied by their first position in their own text.
    assert features["extended_ids"] == [[A, V + 1, V + 2, V + 1, END, V + 5, V + 1], [V, V + 1]]
    assert make("zz <unk>", unknown="UNKNOWN")[0]["ids"] == [[tokenization.UNK_ID, UNK]]


def test_special_tokens_in_a_text_are_unknown_words(make):
    features, _ = make("[PAD] [UNK] [START]")
    assert features["ids"] == [[UNK] * 3] and features["extended_ids"] == [[V, V + 1, V + 2]]


def test_lower_case(make):
    assert make("A B", lowercase=True)[0]["ids"] == [[A, B]]
