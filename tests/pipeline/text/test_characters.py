"""Characters of words: clusters in any script, the same in the graph and in Python."""

import pytest
import regex

from pipeline.text import characters, tokenization

WORDS = [
    "朝食",
    "ブド\u3099ウ",
    "كِتَاب",
    "př\u030cíliš",
    "e\u0301te\u0301",
    "don't",
    "￭,",
    "👩\u200d🚀x",
    "a\u200d",
    "\u0301b",
    "한국어",
    "ẞ",
]


@pytest.mark.parametrize("word", WORDS)
def test_characters_are_what_a_reader_takes_for_one(word):
    import tensorflow as tf

    found = tokenization.split_characters(word)
    assert "".join(found) == word
    (in_graph,) = characters.split_tokens(tf.constant([word])).to_list()
    assert [character.decode() for character in in_graph] == found
    if word != "a\u200d":  # Unicode's own clusters end with a joiner that joins nothing
        assert found == regex.findall(r"\X", word)


def test_the_most_frequent_have_an_id():
    counts = characters.count({"banana": 2, "%s": 9, "<b>": 1, "e\u0301": 1})
    assert counts == {"b": 2, "a": 6, "n": 4, "e\u0301": 1}
    assert characters.choose(counts, 9, 2) == [*characters.SPECIALS, "a", "n", "b"]
    assert characters.choose(counts, 7, 1) == [*characters.SPECIALS, "a"]


class Table:
    def lookup(self, found):
        import tensorflow as tf

        known = {b"a": 6, b"b": 7, "e\u0301".encode(): 8}
        flat = [known.get(character, -1) for character in found.numpy().ravel()]
        return tf.reshape(tf.constant(flat, tf.int64), tf.shape(found))


def test_places_of_a_word():
    import tensorflow as tf

    words = tf.constant(["abe\u0301", "", "abbax", "aaabbbb", "%s"])
    ids = (
        characters.character_ids(words, Table(), tf.constant([0, 0, 0, 0, 4], tf.int64), 5)
        .numpy()
        .tolist()
    )
    # Of a long word the first three and the last two; a class is one character.
    assert ids == [[6, 7, 8, 0, 0], [0] * 5, [6, 7, 7, 6, 1], [6, 6, 6, 7, 7], [4, 0, 0, 0, 0]]
