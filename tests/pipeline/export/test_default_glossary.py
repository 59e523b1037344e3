"""The glossary in a served model's graph finds the terms that a client's does."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from serving import term_markup
from serving.glossary import Glossary

TERMS = {
    "home page": "page d'accueil",
    "home": "accueil",
    "Apple": "Apple",
    "apple": "pomme",
    "é-b": "x",
    "ホーム": "h",
    "東京都": "t",
    "京都": "k",
    "페이지": "p",
    "c++": "cpp",
    "a": "Ab c",
    "%s": "y",
    "straße": "rue",
}
PIECES = st.sampled_from(
    [
        *TERMS,
        *map(str.upper, TERMS),
        *map(str.title, TERMS),
        *(
            " ",
            " ",
            ".",
            "-",
            "_",
            ",",
            "ペ",
            "ジ",
            "を",
            "都",
            "홈",
            "를",
            "・",
            "ー",
            "b",
            "1",
            "'",
        ),
        *("\u0301", "\u200d", "İ", "ß", "\ufff9", "\ufffa", "\ufffb", "\n", "\0"),
    ]
)
TEXTS = st.lists(PIECES, max_size=10).map("".join)


@functools.cache
def marker():
    import tensorflow as tf

    from pipeline.export.default_glossary import DefaultGlossary

    glossary = DefaultGlossary(TERMS)
    return tf.function(glossary.mark, [tf.TensorSpec([None], tf.string)])


def marked(texts):
    import tensorflow as tf

    return [text.decode() for text in marker()(tf.constant(texts, tf.string)).numpy()]


@hypothesis.given(st.lists(TEXTS, max_size=5))
@hypothesis.settings(max_examples=300)
def test_the_graph_marks_what_the_client_marks(texts):
    assert marked(texts) == [
        text if term_markup.plain(text) != text else Glossary(TERMS).mark(text) for text in texts
    ]


@pytest.mark.parametrize("text", ["", "x", "a home page", "東京都の京都", "APPLE apple Apple a-b"])
def test_a_text_alone(text):
    assert marked([text]) == [Glossary(TERMS).mark(text)]


def test_terms_of_a_request_come_first():
    text = term_markup.term("apple", "Apfel") + " a"
    assert marked([text]) == [text]
