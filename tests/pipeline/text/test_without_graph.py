"""Texts cut and joined without TensorFlow, as the graph does it."""

import random

import pytest

from pipeline.text import units
from pipeline.text.keeping_apart import keep_apart
from pipeline.text.text_cutter import TextCutter
from pipeline.text.text_joiner import TextJoiner
from pipeline.text.tokenization import JOINER, Tokenizer
from tests.pipeline.text.test_keeping_apart import output

TOKENIZERS = [
    Tokenizer(),
    Tokenizer("whitespace"),
    Tokenizer(lowercase=True, rare_words="whole", nfc=True),
    Tokenizer("whitespace", lowercase=True),
    Tokenizer(rare_words="parts"),
    Tokenizer(rare_words="letters"),
]
PARTS = [
    *("Hello", "%(name)s", "!", ",", " ", "  ", "\n", "\t", " \n ", "<b>", "</b>", "a@b.c", "d'un"),
    *("1,234.56", "AT&T", "É", "e\u0301", "朝食", "👩\u200d🚀", "«\u00a0", "\u00a0!", "￭", "␠"),
    *("--all", "https://a.b/c", "{0}", "%", "<", ">", "[PAD]", "x", "\x1f", "\u2028", "İ", "50%"),
    *("_", "a_b"),
]


@pytest.fixture(scope="module")
def model():
    """A sentencepiece model of few pieces, with bytes for what it does not know."""
    import collections

    from components.subwords.executor import train

    words = "hello helloing national international binge bingo name names d un all".split()
    return train(collections.Counter(dict.fromkeys(words, 9)), "subwords", 300)


def texts(number):
    draw = random.Random(7)
    return ["", *("".join(draw.choices(PARTS, k=draw.randint(1, 9))) for _ in range(number))]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=range(len(TOKENIZERS)))
@pytest.mark.parametrize("has_units", [False, True])
def test_texts_are_cut_as_in_the_graph(tokenizer, has_units, model):
    import tensorflow as tf

    graph = units.SegmentingTokenizer(tokenizer, model) if has_units else tokenizer
    cutter = TextCutter(tokenizer, model if has_units else None)
    sources = [text.strip() for text in texts(400)]
    cut = graph.tokenize(tf.constant(sources)).to_list()
    for text, expected in zip(sources, cut):
        assert cutter.tokens(text) == [token.decode() for token in expected], repr(text)


def test_tokens_are_joined_as_in_the_graph():
    import tensorflow as tf

    draw = random.Random(3)
    rows = [output(draw) for _ in range(400)]
    for tokenizer in (Tokenizer(), Tokenizer("whitespace")):
        kept = keep_apart(tf.ragged.constant(rows, tf.string, 1), tokenizer)
        expected = [text.decode() for text in tokenizer.detokenize(kept).numpy()]
        assert [TextJoiner(tokenizer).text(row) for row in rows] == expected
    plain = [TextJoiner(Tokenizer()).plain_text(row) for row in rows]
    assert plain != [TextJoiner(Tokenizer()).text(row) for row in rows]


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_units_are_joined_as_in_the_graph(kind):
    import tensorflow as tf

    draw = random.Random(5)
    # Characters of several bytes, parts of such, and bytes beside other units.
    spelled = [f"<0x{byte:02X}>" for byte in "é朝👩\x1c\x1d\x1e".encode()]

    def unit():
        token = draw.choice([*spelled, "<0x41>", "na", "tion", "%s", "␊", "<", "<b>", "."])
        return JOINER * (draw.random() < 0.7) + token + JOINER * (draw.random() < 0.1)

    tokenizer = Tokenizer(kind)
    rows = [[unit() for _ in range(draw.randint(1, 8))] for _ in range(300)]
    rows += [[f"{JOINER * (place > 0)}{byte}" for place, byte in enumerate(spelled)]]
    tokens = tf.ragged.constant(rows, tf.string, 1)
    expected = units.detokenize(tokens, units.byte_table(), tokenizer).numpy()
    joiner = TextJoiner(tokenizer, has_units=True)
    assert [joiner.text(row) for row in rows] == [text.decode() for text in expected]
    assert joiner.text(rows[-1]) == "é朝👩\ufffd\ufffd\ufffd"
