"""Texts cut into sentences in a graph: where they end, and nothing is lost."""

import functools

import hypothesis
import pytest
import regex
from hypothesis import strategies as st

from pipeline.text import sentences, tokenization
from pipeline.text.placeholders import syntax_of
from serving import term_markup
from tests.pipeline.text.test_tokenization import TEXTS

TERM = term_markup.term("Yahoo! Mail. Inc", "Y. Z")


@functools.cache
def graph():
    import tensorflow as tf

    return tf.function(
        lambda texts: sentences.split_in_graph(texts, syntax_of()),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )


def split(*texts):
    rows = graph()([text.encode() for text in texts]).to_list()
    return [[part.decode() for part in row] for row in rows]


@pytest.mark.parametrize(
    "parts",
    [
        ["Hello there. ", "How are you?  ", "Fine!"],
        ["Dr. Smith went to the U.S. Navy, e.g. yesterday. ", "It was 3.5 km!\n", "Next"],
        ["He said “Stop!” and so on... and on. ", "(In brackets.) ", '"Quoted." ', "End"],
        ["1. Open it. ", "Save.\n", "2. Close"],
        ["A line that goes\non in the next one.\n\n", "A title\r\n", "Another"],
        ["日本語です。", "「はい。」", "次！ ", "そう"],
        ["Vraiment\u00a0? ", "Oui «\u00a0bien\u00a0!\u00a0» ", "Non"],
        ["это. ", "हिन्दी है। ", "هل؟ ", "نعم"],
        ["See %(a)s. ", "Go to https://x.org/a.b.c. ", '<b title="A. B">Bold.</b> ', "{0}"],
        [f"Use {TERM} now. ", "Then"],
        ["no end"],
        [""],
    ],
)
def test_where_sentences_end(parts):
    assert split("".join(parts)) == [parts]


@hypothesis.given(
    st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from([". ", "! ", "\n", "。"])
)
@hypothesis.settings(max_examples=200, deadline=None)
def test_the_sentences_make_the_text_and_hold_its_protected_tokens(texts, end):
    text = regex.sub("[\x00\x1c-\x1f]", " ", end.join(texts)).strip()
    (parts,) = split(text)
    assert "".join(parts) == text
    assert all(part.strip() for part in parts) or parts == [""]
    tokens = [token for part in parts for token in tokenization.protected_tokens(part.strip())]
    assert [token for token in tokens if len(token) > 2] == [
        token for token in tokenization.protected_tokens(text) if len(token) > 2
    ]
