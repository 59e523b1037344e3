"""Terms of a glossary in texts: one token each; everything else is cut as without a glossary."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.text import terms
from pipeline.text.tokenization import JOINER, Tokenizer
from serving import term_markup
from serving.glossary import Glossary
from tests.pipeline.text.test_tokenization import CHARACTERS

KINDS = ("text", "whitespace", "characters")
PIECES = st.sampled_from(
    [
        *("a", "b", "homepage", "ab", " ", "  ", "\n", ".", "%s", "{ ", " }", "<b>", "</b>", "5%"),
        *('<a title="', '">', "{", "%(a", ")s", "--a", "http://a.b/", "ホーム", "を", "\u0301"),
        *term_markup.MARKS,
        term_markup.term("a", "b"),
    ]
)
TEXTS = st.lists(st.one_of(PIECES, CHARACTERS), max_size=12).map("".join)
GLOSSARIES = st.dictionaries(
    st.sampled_from(["a", "b", "ab", "homepage", "a b", "ホーム", "s", "A"]),
    st.sampled_from(["x", "X y", "%s", "{ ", "l'été", "を"]),
    min_size=1,
)


@functools.cache
def in_graph(kind, lowercase):
    """The tokenizer's graph."""
    import tensorflow as tf

    tokenizer = Tokenizer(kind, lowercase)
    return tf.function(lambda texts: tokenizer.tokenize(texts), [tf.TensorSpec([None], tf.string)])


def cut(texts, kind="text", lowercase=False):
    """Returns the tokens of texts by the graph, after checking that Python's are the same."""
    import tensorflow as tf

    rows = in_graph(kind, lowercase)(tf.constant(texts, tf.string)).to_list()
    tokens = [[token.decode() for token in row] for row in rows]
    tokenizer = Tokenizer(kind, lowercase)
    for text, row in zip(texts, tokens):
        bare = [token.strip(JOINER) if kind == "text" else token for token in row]
        assert tokenizer.tokens(tokenizer.normalize(text)) == [token for token in bare if token]
    return tokens


def token(phrase, translation):
    return f"\0{phrase}\0{translation}\0"


def test_a_term_is_one_token():
    marked = Glossary({"home page": "page d'accueil"}).mark("Open the Home page, now")
    term = token("Home page", "page d'accueil")
    assert cut([marked]) == [["Open", "the", term, "￭,", "now"]]
    assert cut([marked], "characters") == [[*"Openthe", term, *",now"]]
    # Of an already tokenized text a term is whole tokens.
    assert cut([marked], "whitespace") == [["Open", "the", "Home", "page,", "now"]]
    marked = Glossary({"home page": "page d'accueil"}).mark("the home page , now")
    assert cut([marked], "whitespace") == [
        ["the", token("home page", "page d'accueil"), ",", "now"]
    ]
    # Lower case is for the text, not for the translation.
    marked = Glossary({"nasa": "La NASA"}).mark("THE Nasa")
    assert cut([marked], lowercase=True) == [["the", token("nasa", "La NASA")]]


@pytest.mark.parametrize("kind", ["text", "characters"])
def test_no_term_is_in_a_protected_token(kind):
    text = '<a title="homepage">homepage</a> {homepage} --homepage'
    (tokens,) = cut([Glossary({"homepage": "x"}).mark(text)], kind)
    protected = ['<a title="homepage">', token("homepage", "x"), "</a>", "{homepage}", "--homepage"]
    assert [token for token in tokens if token != JOINER] == protected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lowercase", [False, True])
@hypothesis.given(st.lists(st.tuples(TEXTS, GLOSSARIES), min_size=1, max_size=4))
@hypothesis.settings(max_examples=40)
def test_any_text_with_any_glossary(kind, lowercase, cases):
    """Without its terms, a marked text is cut as the text; each term is a token, or in one."""
    marked = [Glossary(glossary).mark(text) for text, glossary in cases]
    plain = [term_markup.plain(text) for text, _ in cases]
    expected = {}
    for tokens, before, (text, glossary) in zip(
        cut(marked, kind, lowercase), cut(plain, kind, lowercase), cases
    ):
        allowed = {
            token(match.phrase.lower() if lowercase else match.phrase, match.translation)
            for match in Glossary(glossary).matches(text)
        }
        assert {one for one in tokens if "\0" in one} <= allowed
        assert not any("\0" in one for one in before)
        # The same characters but for white space, whatever is a term.
        joined = "".join(tokens).replace(JOINER, "")
        for one in allowed:
            joined = joined.replace(one, one.split("\0")[1])
        squeezed = "".join(before).replace(JOINER, "")
        assert "".join(joined.split(" ")) == squeezed.replace(" ", ""), expected


@hypothesis.given(TEXTS)
def test_what_is_escaped_is_read_as_it_is(text):
    import tensorflow as tf

    escaped = term_markup.escape(text)
    assert terms.without_markup(tf.constant(escaped)).numpy().decode() == text
    assert cut([escaped]) == cut([term_markup.plain(text)])


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Open", token("homepage", "page")], ["Open", "page"]),
        ([token("Homepage", "élan"), "a"], ["Élan", "a"]),
        ([token("homepage", "page")], ["page"]),
        (["the", token("Homepage", "page")], ["the", "page"]),
        (["Done", "￭.", token("Homepage", "page")], ["Done", "￭.", "Page"]),
        ([token("Homepage", "ホーム")], ["ホーム"]),
    ],
)
def test_a_capital_begins_sentences(tokens, text):
    import tensorflow as tf

    assert [one.decode() for one in terms.written(tf.constant([tokens])).numpy()[0]] == text
