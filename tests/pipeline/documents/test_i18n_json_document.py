"""JSON catalogues and ARB, read by `json` and a parser of ICU messages that is not ours."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest
from pyicumessageformat import Parser

from pipeline.documents.document import DocumentError
from pipeline.documents.i18n_json_document import ArbDocument, I18nJsonDocument
from pipeline.documents.options import Options
from tests.pipeline.documents.filling import filled, shout

NESTED = """{
  "title": "Caf\\u00e9 &  bar",
  "menu": { "open":"Open", "empty" : "", "count": 3, "none": null },
  "list": ["One", {"x": "Two"}],

  "files_one": "{{count}} file",
  "files_other":   "{{count}} files",
  "place_ordinal_one": "{{count}}st",
  "place_ordinal_other": "{{count}}th",
  "days": {"one": "a day", "other": "%{count} days"},
  "option_other": "Other"
}
"""


def read(text, language="fr", kind=I18nJsonDocument):
    return kind("en.json", text.encode(), Options(language=language))


def icu(message):
    """Returns the parts of an ICU message: text, and names of arguments."""
    parts = Parser({"loose_submessages": True}).parse(message)
    return [part if isinstance(part, str) else part["name"] for part in parts]


def test_texts_are_replaced():
    after = json.loads(filled(read(NESTED, "ru"), shout))
    assert after == {
        "title": "CAFÉ &  BAR",
        "menu": {"open": "OPEN", "empty": "", "count": 3, "none": None},
        "list": ["ONE", {"x": "TWO"}],
        "files_one": "{{count}} FILE",
        "files_few": "{{count}} FILES",
        "files_many": "{{count}} FILES",
        "files_other": "{{count}} FILES",
        "place_ordinal_other": "{{count}}TH",
        "days": {
            "one": "%{count} DAYS",
            "few": "%{count} DAYS",
            "many": "%{count} DAYS",
            "other": "%{count} DAYS",
        },
        "option_other": "OTHER",
    }


def test_only_the_texts_change():
    before = NESTED.replace("_ordinal", "")
    after = filled(read(before, "en"), lambda text: text.replace("Open", '"Ö\t"'))
    assert after == before.replace('"Open"', '"\\"\\u00d6\\t\\""')
    before = before.replace("\\u00e9", "é")
    after = filled(read(before, "en"), lambda text: text.replace("Open", "é"))
    assert after == before.replace("Open", "é")
    assert read(NESTED, "").filled({}, "").decode() == NESTED


def test_plurals_need_the_language():
    document = read(NESTED, "")
    assert [line for line, _ in document.problems] == [6, 8, 10]


ICU_FILE = """{
  "a": "of {count}",
  "b": "It''s '{quoted}' {name}'s",
  "c": "{n, plural,\\n  =0 {none}\\n  one {# file}\\n  other {# files}}",
  "d": "You have {n, plural, one {# file} other {# files}} of {who}.",
  "e": "{g, select, male {He} other {They}} said {x, number, percent}",
  "f": "broken {n, plural, one {x}"
}
"""


def test_icu_messages():
    document = read(ICU_FILE)
    assert [segment.text for segment in document.segments] == [
        "of {count}",
        "It's '{quoted}' {name}'s",
        "none",
        "# file",
        "# files",
        "# files",
        "You have # file of {who}.",
        "You have # files of {who}.",
        "You have # files of {who}.",
        "He said {x, number, percent}",
        "They said {x, number, percent}",
    ]
    assert document.problems == [(7, "a plural or select that is not valid")]
    after = json.loads(filled(document, lambda text: shout(text).replace("OF ", "D'")))
    assert after["a"] == "D''{count}"
    assert after["b"] == "IT'S '{quoted}' {name}'S"
    assert after["c"] == (
        "{n, plural,\n  =0 {NONE}\n  one {# FILE}\n  many {# FILES}\n  other {# FILES}}"
    )
    assert after["d"] == (
        "{n, plural, one {YOU HAVE # FILE D''{who}.} many {YOU HAVE # FILES D''{who}.} "
        "other {YOU HAVE # FILES D''{who}.}}"
    )
    assert after["e"] == (
        "{g, select, male {HE SAID {x, number, percent}} other {THEY SAID {x, number, percent}}}"
    )
    assert after["f"] == json.loads(ICU_FILE)["f"]
    assert icu(after["a"]) == ["D'", "count"]
    assert icu(after["b"]) == ["IT'S {quoted} ", "name", "'S"]


def test_a_form_may_begin_with_an_argument():
    document = read('{"a": "{n, plural, one {{n} file} other {{n}}}"}', "de")
    assert [segment.text for segment in document.segments] == ["{n} file", "{n}"]
    document = read('{"a": "{{n}} files {$x}", "b": "d\'{{x}}"}')
    assert filled(document, shout) == '{"a": "{{n}} FILES {$x}", "b": "D\'{{x}}"}'


def test_a_number_in_a_nested_plural_stays_that_of_its_own():
    before = '{"a": "{n, plural, other {# of {m, plural, other {#}}}} {x}"}'
    after = json.loads(filled(read(before, "ja"), shout))
    assert after["a"] == "{n, plural, other {{m, plural, other {{n, number} OF # {x}}}}}"


def test_arb():
    before = '{"@@locale": "en", "a": "Go, {b}", "@a": {"description": "Not this"}}'
    after = filled(read(before, "pt-BR", ArbDocument), shout)
    assert after == before.replace('"en"', '"pt_BR"').replace("Go", "GO")
    with pytest.raises(DocumentError, match="@@locale.*--target-language"):
        read(before, "", ArbDocument)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"a": "b", "a": "c"}', "3", "", "[" * 100_000, '{"a":' * 900 + "1" + "}" * 900],
)
def test_what_is_no_catalogue_is_refused(content):
    with pytest.raises(DocumentError, match="^en.json .*\\.$"):
        read(content)


def test_tags_of_a_text_have_its_escapes():
    before = '{"a": "<a href=\\"x\\">Go</a> \\"now\\""}'
    assert filled(read(before), shout) == before.replace("Go", "GO").replace("now", "NOW")


def test_forms_between_pipes_are_texts_of_their_own():
    document = read('{"a": "apple|<b>apples</b>", "b": "|"}')
    assert [segment.text for segment in document.segments] == ["apple", "<b>apples</b>", "|"]
    assert filled(document, shout) == '{"a": "APPLE|<b>APPLES</b>", "b": "|"}'


def test_json_lines_are_pointed_out():
    with pytest.raises(DocumentError, match="JSON Lines need --format jsonl"):
        read('{"a": "b"}\n{"a": "c"}\n')


TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1)
SYNTAX = st.text("{}'#<>a \"\\|", min_size=1)


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=TEXTS, escaped=st.booleans())
def test_any_text_comes_back(text, escaped):
    document = read('{"a": "x\\u00e9"}' if escaped else '{"a": "x"}')
    after = document.filled({0: text}, "").decode()
    assert json.loads(after) == {"a": text}
    assert not escaped or after.isascii()


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=SYNTAX | TEXTS, end=SYNTAX | TEXTS)
def test_any_text_comes_back_from_a_plural(text, end):
    hypothesis.assume("#" not in text + end)
    document = read('{"a": "{n, plural, other {#}}"}', "ja")
    after = document.filled({0: text + "#" + end}, "").decode()
    (plural,) = Parser().parse(json.loads(after)["a"])
    first, number, last = plural["options"]["other"]
    assert (first, number["name"], last) == (text, "n", end)


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=SYNTAX | TEXTS, end=SYNTAX | TEXTS)
def test_any_text_comes_back_from_icu(text, end):
    hypothesis.assume("{x}" not in text and "{x}" not in end)
    document = read('{"a": "{x}"}')
    after = document.filled({0: text + "{x}" + end}, "").decode()
    assert icu(json.loads(after)["a"]) == [text, "x", end]
