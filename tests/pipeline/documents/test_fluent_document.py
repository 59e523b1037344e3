"""Fluent's files, read by `fluent.runtime`."""

import hypothesis
import hypothesis.strategies as st
import pytest
from fluent.runtime import FluentBundle, FluentResource

from pipeline.documents.document import DocumentError
from pipeline.documents.fluent_document import FluentDocument
from pipeline.documents.options import Options
from tests.pipeline.documents.filling import filled, shout

FILE = """# A licence

-brand = Firefox

# A note
title = Welcome to { -brand }, { $name }!
    .tooltip =   Go <b>on</b>

lines =
    First
      second { "{" }x{ "}" }

    last
files = { $count ->
    [0] none
    [one] { $count } file
   *[other] { $count } files
}
system = { PLATFORM() ->
    [macos] On a Mac
   *[other] On another
}
within = You have { $count ->
    [one] a file
   *[other] files
  } here
"""


def read(text, language="fr"):
    return FluentDocument("en.ftl", text.encode(), Options(language=language))


def bundle_of(text, language):
    bundle = FluentBundle([language], use_isolating=False, functions={"PLATFORM": lambda: "macos"})
    bundle.add_resource(FluentResource(text))
    return bundle


def formatted(text, message, language="ru", **values):
    bundle = bundle_of(text, language)
    shown, errors = bundle.format_pattern(bundle.get_message(message).value, values)
    assert not errors
    return shown


def test_texts_are_replaced():
    document = read(FILE, "ru")
    assert [line for line, _ in document.problems] == [23]
    after = filled(document, shout)
    assert formatted(after, "title", name="ann") == "WELCOME TO Firefox, ann!"
    message = bundle_of(after, "ru").get_message("title")
    assert bundle_of(after, "ru").format_pattern(message.attributes["tooltip"])[0] == "GO <b>ON</b>"
    assert formatted(after, "lines") == "FIRST\n  SECOND {x}\n\nLAST"
    assert formatted(after, "system") == "ON A MAC"
    expected = {0: "NONE", 1: "1 FILE", 3: "3 FILES", 5: "5 FILES", 21: "21 FILE"}
    for count, text in expected.items():
        assert formatted(after, "files", count=count) == text
    for category in ("[0]", "[one]", "[few]", "[many]", "*[other]"):
        assert after.count(category) == 1 + 2 * (category == "*[other]") + (category == "[one]")


def test_only_the_texts_change():
    after = filled(read(FILE, "de"), lambda text: text.replace("Welcome", "Hallo"))
    assert after == FILE.replace("Welcome", "Hallo")
    assert read(FILE, "de").filled({}, "").decode() == FILE


def test_line_ends_of_windows():
    after = filled(read(FILE.replace("\n", "\r\n"), "ru"), shout)
    assert "\n" not in after.replace("\r\n", "")
    assert after.replace("\r\n", "\n") == filled(read(FILE, "ru"), shout)


def test_syntax_errors_are_named():
    document = read(FILE + "junk junk\n", "de")
    assert (27, "not valid Fluent syntax") in document.problems


@pytest.mark.parametrize("content", ["", "# nothing", "junk", "-term = a"])
def test_what_has_no_message_is_refused(content):
    with pytest.raises(DocumentError, match="^en.ftl .*\\.$"):
        read(content)


TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1)
SYNTAX = st.text('{}[]*.#-= \n"\\a\r', min_size=1)


@pytest.mark.parametrize("before", ["a = x\n", "a =\n  x\n", "a = x\n      y\nb = c"])
@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=TEXTS | SYNTAX)
def test_any_text_comes_back(before, text):
    after = read(before).filled({0: text}, "").decode()
    assert formatted(after, "a") == text
