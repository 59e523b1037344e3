"""Rare words as one token each, and Unicode's normal form, in the graph and in Python."""

import functools
import unicodedata

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.recipes.choices import RARE_WORDS
from pipeline.text.character_cut import CONTROL
from pipeline.text.placeholders.protected_syntax import compiled
from pipeline.text.tokenization import JOINER, Tokenizer
from pipeline.text.word_patterns import BY_RARE_WORDS
from tests.pipeline.text.test_tokenization import (
    CHARACTERS,
    PROTECTED,
    SPICES,
    TYPOGRAPHY,
    readable,
)

WHOLE = (
    *("1,234.56", "1'234.56", "1\u202f234,56", "12\u00a0345\u00a0678", "1,23,456", "٣٬٤", "-5"),
    *("+1-555-0100", "1.5e-10", "2024-01-02", "3D", ".5", "-1,5"),
    *("O'Brien", "O’Hara-Smith", "o'clock", "N'Djamena", "rock'n'roll", "об'єкт", "צה״ל", 'צה"ל'),
    *("AT&T", "R&D", "H&M", "C++", "g++", "C++11", "Notepad++", "C#", "F#", ".NET", ".htaccess"),
    *("std::vector", "a::b::c", "col·lecció", "x\u2011y", "Donau\u00addampf", "می‌خواهم", "क्‍ष"),
    *("/usr/bin/x", "/a", "~/x.txt", "../x", "./a-b/c.py", "/var/log/", "//cdn.x.org/a", "~me/x"),
    *(r"C:\x", r"C:\Users\é\a.txt", "C:\\", "D:/x", r"\\server\share", r"..\x", r".\a\b"),
    *("#tag", "#日本", "#fff", "@user", "@first.last"),
    *("😀", "👩‍👩‍👧", "👍🏽", "🇫🇷", "1️⃣", "*️⃣", "❤️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🏳️‍🌈", "👨🏿‍🚀"),
)
# What is cut, and remains so.
CUT = {
    "d'utilisateur": ["d'￭", "utilisateur"],
    "L'Europe": ["L'￭", "Europe"],
    "user's don't": ["user", "￭'￭", "s", "don", "￭'￭", "t"],
    "İzmir'de": ["İzmir", "￭'￭", "de"],
    "dell'URL": ["dell", "￭'￭", "URL"],
    "E&xit": ["E", "￭&￭", "xit"],
    "wait...and": ["wait", "￭...￭", "and"],
    "5 %, 3 / 4": ["5", "%", "￭,", "3", "/", "4"],
    "C ++ # a": ["C", "+", "￭+", "#", "a"],
    "1, 2": ["1", "￭,", "2"],
}
# Letters and marks of many scripts, so that words are more than single characters.
WORDS = st.text(
    st.characters(whitelist_categories=("Ll", "Lu", "Lo", "Mn", "Nd")).filter(
        lambda c: unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c)
    ),
    min_size=1,
    max_size=4,
)
TEXTS = st.lists(
    st.one_of(
        WORDS,
        st.text(CHARACTERS, max_size=4),
        st.sampled_from(PROTECTED + WHOLE),
        st.sampled_from(TYPOGRAPHY + SPICES),
        st.sampled_from(list(".,'’&+#@/\\:~-\u200d\u200c\u00ad\ufe0f\u20e3🇫👩0a")),
    ),
    max_size=8,
).map("".join)


@functools.cache
def graph(**options):
    import tensorflow as tf

    tokenizer = Tokenizer(**options)

    def both(texts):
        tokens = tokenizer.tokenize(texts)
        return tokens, tokenizer.detokenize(tokens)

    return tokenizer, tf.function(both, input_signature=[tf.TensorSpec([None], tf.string)])


def cut(*texts, **options):
    """Returns (tokens, text again) of each text."""
    import tensorflow as tf

    _, both = graph(**options)
    tokens, joined = both(tf.constant([text.encode() for text in texts], tf.string))
    rows = [[token.decode() for token in row] for row in tokens.to_list()]
    return list(zip(rows, [text.decode() for text in joined.numpy()]))


@pytest.mark.parametrize("word", WHOLE)
def test_a_rare_word_is_one_token_wherever_it_stands(word):
    behind = ("", " b", ", b", "!", "\n", ")", "”", " .")
    texts = [
        f"{left}{word}{right}" for left in ("", "a ", "(", "“", "a, ", "a\t") for right in behind
    ]
    for text, (tokens, joined) in zip(texts, cut(*texts, rare_words="whole")):
        assert word in tokens, text
        assert joined == text
        assert word in graph(rare_words="whole")[0].words(text)


@pytest.mark.parametrize("text", CUT)
def test_what_is_no_rare_word_is_cut_as_before(text):
    assert cut(text, rare_words="whole") == [(CUT[text], text)]


def test_rare_words_are_cut_by_default():
    assert cut("AT&T, 1,234.56")[0][0] == ["AT", "￭&￭", "T", "￭,", "1", "￭,￭", "234.56"]


@hypothesis.given(TEXTS)
@hypothesis.settings(max_examples=400, deadline=None)
def test_whole_words_come_back_byte_for_byte_and_python_cuts_like_the_graph(text):
    ((tokens, joined),) = cut(text, rare_words="whole")
    assert joined == readable(text)
    tokenizer, _ = graph(rare_words="whole")
    clean = compiled(tokenizer.patterns.word)
    assert tokenizer.words(text) == [
        token
        for token in tokens
        if token != JOINER and (clean.fullmatch(token) or tokenizer.syntax.is_protected(token))
    ]
    assert tokenizer.count(text) == len(tokens)
    plain, _ = graph()
    assert tokenizer.protected_tokens(text) == plain.protected_tokens(text)


PARTS = {
    "self.set_cookie(a)": ["self", "￭.￭", "set_cookie", "￭(￭", "a", "￭)"],
    "fr-CA x@y:z/1": ["fr", "￭-￭", "CA", "x", "￭@￭", "y", "￭:￭", "z", "￭/￭", "1"],
    "L'état d'e\u0301te\u0301": ["L", "￭'￭", "état", "d", "￭'￭", "e\u0301te\u0301"],
    # Protected tokens stay whole.
    "%(a.b)s --dry-run a@b.org": ["%(a.b)s", "--dry-run", "a@b.org"],
}


@pytest.mark.parametrize("text", PARTS)
def test_names_are_cut_into_parts(text):
    assert cut(text, rare_words="parts") == [(PARTS[text], text)]


def test_a_recipe_names_every_pattern():
    assert tuple(BY_RARE_WORDS) == RARE_WORDS


def test_names_are_cut_into_letters():
    text = "t0.last_name = __init__ %(first_name)s"
    name = ["t0", "￭.￭", "last", "￭_￭", "name"]
    # Protected tokens stay whole.
    assert cut(text, rare_words="letters") == [([*name, "=", "__init__", "%(first_name)s"], text)]


@pytest.mark.parametrize("value", ["parts", "letters"])
@hypothesis.given(TEXTS)
@hypothesis.settings(max_examples=200, deadline=None)
def test_parts_come_back_byte_for_byte_and_keep_protected_tokens(value, text):
    ((tokens, joined),) = cut(text, rare_words=value)
    assert joined == readable(text)
    tokenizer, _ = graph(rare_words=value)
    assert tokenizer.count(text) == len(tokens)
    plain, _ = graph()
    assert tokenizer.protected_tokens(text) == plain.protected_tokens(text)


COMPOSED = {
    "e\u0301te\u0301 \u1100\u1161": "été 가",
    "A\u030a \u212b": "Å Å",
    "=\u0338 x": "≠ x",
    # Protected tokens, and what touches them, stay as they are.
    "{cafe\u0301}\u0301 <b>\u0338": "{cafe\u0301}\u0301 <b>\u0338",
    "https://x.org/e\u0301 e\u0301": "https://x.org/e\u0301 é",
}


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_texts_are_composed_but_for_protected_tokens(kind):
    made = cut(*COMPOSED, kind=kind, nfc=True)
    tokenizer, _ = graph(kind=kind, nfc=True)
    assert [text for _, text in made] == list(COMPOSED.values())
    assert list(map(tokenizer.normalize, COMPOSED)) == list(COMPOSED.values())
    assert cut("e\u0301", kind=kind)[0][1] == "e\u0301"


def test_the_translation_of_a_term_is_not_composed():
    from serving import term_markup

    text = "e\u0301 " + term_markup.term("e\u0301", "e\u0301")
    expected = "é " + term_markup.term("é", "e\u0301")
    assert graph(nfc=True)[0].normalize(text) == expected
    assert cut(text, nfc=True)[0][0] == ["é", "\0é\0e\u0301\0"]


@hypothesis.given(TEXTS)
@hypothesis.settings(max_examples=300, deadline=None)
def test_composing_is_the_same_in_graph_and_python_and_happens_once(text):
    ((tokens, joined),) = cut(text, nfc=True, lowercase=True, rare_words="whole")
    tokenizer, _ = graph(nfc=True, lowercase=True, rare_words="whole")
    normal = tokenizer.normalize(text)
    assert joined == compiled(CONTROL).sub(" ", normal)
    assert tokenizer.count(normal) == len(tokens)
    assert tokenizer.normalize(normal) == normal
