"""A glossary: which terms a text has, and what is refused."""

import pytest

from serving import term_markup
from serving.errors import RequestError
from serving.glossary import Glossary

ACCUEIL = {"homepage": "page d'accueil"}


def found(terms, text):
    """Returns (phrase, translation) of each term of a text."""
    return [(match.phrase, match.translation) for match in Glossary(terms).matches(text)]


@pytest.mark.parametrize(
    "text",
    [
        *("homepages", "myhomepage", "homepage2", "e-homepage", "homepage.html", "a/homepage"),
        *("home page", "homepage\u0301", "", "homepage_x", "x@homepage"),
    ],
)
def test_parts_of_words_do_not_match(text):
    assert found(ACCUEIL, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "homepage",
        "(homepage)",
        "homepage.",
        "l'homepage",
        "homepage's",
        "a homepage, b",
        "«homepage»",
    ],
)
def test_whole_words_match(text):
    assert found(ACCUEIL, text) == [("homepage", "page d'accueil")]


@pytest.mark.parametrize(
    ("terms", "text", "phrases"),
    [
        (("ホーム",), "ホームページを開く", []),
        (("ホームページ",), "ホームページを開く", ["ホームページ"]),
        (("開く",), "ホームページを開く", ["開く"]),
        (("東京", "東京都"), "東京都と東京", ["東京都", "東京"]),
        (("Web",), "Webサイト", ["Web"]),
        (("หน้าแรก",), "เปิดหน้าแรกเลย", ["หน้าแรก"]),
        (("홈페이지",), "홈페이지를 열기", ["홈페이지"]),
        (("페이지",), "홈페이지를 열기", []),
    ],
)
def test_scripts_without_blanks(terms, text, phrases):
    assert [phrase for phrase, _ in found(dict.fromkeys(terms, "x"), text)] == phrases


def test_the_longest_term_that_begins_first_matches():
    terms = {"home": "1", "home page": "2", "page layout": "3", "layout": "4"}
    assert found(terms, "home page layout, home") == [
        ("home page", "2"),
        ("layout", "4"),
        ("home", "1"),
    ]


def test_case():
    terms = {"apple": "pomme", "Apple": "Apple", "read-me": "lisez-moi", "API": "interface"}
    text = "Apple apple APPLE Read-Me READ-ME api API"
    assert found(terms, text) == [
        ("Apple", "Apple"),
        ("apple", "pomme"),
        ("APPLE", "POMME"),
        ("Read-Me", "lisez-moi"),
        ("READ-ME", "LISEZ-MOI"),
        ("API", "interface"),
    ]


def test_letters_whose_lower_case_is_longer_do_not_shift_matches():
    assert found({"x": "y"}, "İİ x İ x") == [("x", "y")] * 2


def test_characters_of_the_markup_in_a_text_are_escaped():
    text = term_markup.term("homepage", "b") + " homepage \ufffa"
    marked = Glossary(ACCUEIL).mark(text)
    assert marked.count(term_markup.term("homepage", "page d'accueil")) == 2
    assert term_markup.term("homepage", "b") not in marked


@pytest.mark.parametrize("text", ["", "a", "\ufff9", "a\ufff9b\ufffbc", "\ufffa\ufffb"])
def test_a_text_that_is_no_markup_is_sent_as_it_is(text):
    assert term_markup.plain(text) == Glossary(ACCUEIL).mark(text) == text


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({}, "The glossary is empty"),
        ({"a": ""}, "The translation of the glossary's term 'a' is blank."),
        ({" \t": "b"}, "The phrase of the glossary's term ' .t' is blank."),
        ({"a": 1}, "The translation of the glossary's term 'a' must be a str; got int."),
        ({"a": "b\ufffac"}, "contains U.FFFA"),
        ({"a\ufff9": "b"}, "contains U.FFF9"),
        ({"a": "b\nc"}, "contains U.000A"),
        ({"a": "b￭c"}, "contains U.FFED"),
        ({"a": "\ud800"}, "contains U.D800"),
        ({"a  b": "1", "a b": "2"}, 'translates "a b" as "1" and as "2": give one'),
        ([("a", "1"), ("a", "2")], 'translates "a" as "1" and as "2": give one'),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(terms, sentence):
    with pytest.raises(RequestError, match=sentence):
        Glossary(terms)


@pytest.mark.parametrize("terms", ["homepage", 3, [("a", "b")], None])
def test_an_argument_of_another_type_is_refused(terms):
    with pytest.raises(RequestError, match="must be a dict from phrases"):
        Glossary.of(terms)


def test_the_same_term_twice_is_one():
    assert Glossary([("a", "b"), (" a ", "b ")]).terms == {"a": "b"}
