"""White space comes back exactly: within texts as tokens, around them by being put back."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.text import white_space
from pipeline.text.tokenization import Tokenizer

WORDS = (
    "Save fichiers d'été Ελληνικά Кириллица العربية עברית हिन्दी ไทย 日本語 中文 한국어 አማርኛ "
    "ქართული 10 %s {0} <b> </b> &nbsp; https://x.org/a --all , . ! « » ( ) 。 ... 😀"
).split()
SPACES = (
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\n  ",
    " \n",
    "\u00a0",
    "\u202f",
    "\u3000",
    "\u2009",
)
TEXTS = st.lists(st.sampled_from((*WORDS, *SPACES, *SPACES)), max_size=10).map("".join)


@functools.cache
def graph():
    import tensorflow as tf

    tokenizer = Tokenizer()
    spec = [tf.TensorSpec([None], tf.string)]
    return (
        tf.function(lambda texts: tokenizer.detokenize(tokenizer.tokenize(texts)), spec),
        tf.function(lambda texts: tokenizer.tokenize(texts).row_lengths(), spec),
        tf.function(white_space.split_outer, spec),
    )


def constant(texts):
    import tensorflow as tf

    return tf.constant([text.encode() for text in texts], tf.string, shape=[len(texts)])


@hypothesis.given(texts=st.lists(TEXTS, min_size=1, max_size=8))
@hypothesis.settings(max_examples=150, deadline=None)
def test_joining_the_tokens_gives_every_text_back_exactly(texts):
    both, count, _ = graph()
    assert [text.decode() for text in both(constant(texts)).numpy()] == texts
    assert list(count(constant(texts)).numpy()) == [Tokenizer().count(text) for text in texts]


@hypothesis.given(texts=st.lists(TEXTS, min_size=1, max_size=8))
@hypothesis.settings(max_examples=100, deadline=None)
def test_outer_white_space_is_what_strip_takes_away(texts):
    parts = [[part.decode() for part in side.numpy()] for side in graph()[2](constant(texts))]
    for text, before, inner, behind in zip(texts, *parts):
        assert before + inner + behind == text
        assert inner == text.strip()
        assert not (before + behind).strip()


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("Name:\n  %s\n", ["Name", ":", "␊␠␠", "%s", "␊"]),
        ("10\u00a0000\u202f€", ["10", "\u00a0", "000", "\u202f", "€"]),
        ("a\r\nb\tc", ["a", "␍␊", "b", "␉", "c"]),
        ("a \n\n b", ["a", "␠␊", "␊␠", "b"]),
        ("<p\nclass=x> {{  x\n}}", ["<p\nclass=x>", "{{  x\n}}"]),
    ],
)
def test_line_breaks_and_no_break_spaces_are_tokens(text, tokens):
    assert Tokenizer().tokens(text) == tokens
    assert "".join(map(white_space.to_text, Tokenizer().tokens("a\n\tb  c"))) == "a\n\tb  c"


def test_white_space_is_not_promised_but_can_be_in_a_vocabulary():
    for token in ("␊", "␍␊", "␊␠␠", "␉", "\u00a0", "\u202f"):
        assert not Tokenizer().syntax.is_protected(token)
        assert token.splitlines() == [token]
    assert white_space.is_white_space("␊␠")
    assert not white_space.is_white_space("a")
