"""The best segmentation in the graph beside the best of all, written out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

tf = pytest.importorskip("tensorflow")

from pipeline.features.multigram_ends import multigram_ends, multigram_table
from pipeline.text import multigrams
from tests.pipeline.text.test_multigrams import segmentations

# No two segmentations of a text have the same score.
WORDS = {"a": -2.03, "b": -1.31, "c": -4.17, "a b": -2.71, "b c a": -5.59, "c a b b": -7.13}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("multigrams") / multigrams.FILE
    path.write_text("".join(f"{line}\n" for line in multigrams.lines(WORDS)))
    return multigram_table(str(path))


def words(texts, table, alone=()):
    characters = tf.ragged.constant(texts, dtype=tf.string, ragged_rank=1)
    flat = characters.flat_values
    is_alone = tf.zeros_like(flat, tf.bool)
    for character in alone:
        is_alone |= flat == character
    ends = multigram_ends(characters, table, is_alone)
    assert ends.dtype == tf.int64
    made = []
    for text, row in zip(texts, ends.to_list()):
        way, begin = [], 0
        for place, end in enumerate(row, 1):
            if end:
                way.append(tuple(text[begin:place]))
                begin = place
        assert len(row) == len(text) and begin == len(text)
        made.append(tuple(way))
    return made


@settings(max_examples=60)
@given(st.lists(st.text("abcd", max_size=8).map(list), max_size=5))
def test_it_is_the_likeliest_of_all(table, texts):
    def score(way):
        # An unknown character, `d`, costs the same in each.
        return sum(WORDS.get(" ".join(w), 0.0 if w == ("d",) else -1e9) for w in way)

    best = [max(segmentations(tuple(t)), key=score) if t else () for t in texts]
    assert words(texts, table) == best


def test_what_is_alone_is_part_of_no_word(table):
    text = ["a", "b", "a", "b"]
    assert words([text], table) == [(("a", "b"), ("a", "b"))]
    assert words([text, []], table, alone="a") == [(("a",), ("b",), ("a",), ("b",)), ()]


def test_words_end_with_their_text(table):
    assert words([["a"], ["b"], ["a", "b"]], table) == [(("a",),), (("b",),), (("a", "b"),)]
