"""Android's strings.xml, read by an XML parser and Android's rules, written again for this test."""

import re
import xml.etree.ElementTree as ElementTree

import hypothesis
import hypothesis.strategies as st
import pytest

from pipeline.documents.android_document import AndroidDocument
from pipeline.documents.document import DocumentError
from pipeline.documents.options import Options
from tests.pipeline.documents import filling
from tests.pipeline.documents.filling import shout

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
FILE = (
    HEAD
    + """<!-- A licence. -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">

    <!-- A title -->
    <string name="title">A &amp; B</string>
    <string   name='odd' >  Don\\'t
        go  </string  >
    <string name="app" translatable="false">Verbatim</string>
    <string name="link">Open <b>the <i>first</i></b> &lt;file&gt;</string>
    <string name="size"><xliff:g id="n" example="3">%1$s</xliff:g> of
        <xliff:g id="app">Verbatim</xliff:g></string>
    <string name="html"><![CDATA[<a href=\\"x\\">Don\\'t</a>]]></string>
    <string name="reference">@string/title</string>
    <string name="none"></string>
    <string-array name="days"><item>Monday</item><item>@string/title</item></string-array>
    <plurals name="files">
        <!-- Of one -->
        <item quantity="one">%d file</item>
        <item quantity="other">%d files</item>
    </plurals>
    <color name="red">#f00</color>
</resources>
"""
)


def document_of(text, language="fr"):
    return AndroidDocument("strings.xml", text.encode(), Options(language=language))


def filled(text, answer, language="fr"):
    return filling.filled(document_of(text, language), answer)


def android(element):
    """Reads a string as aapt2 does: its text, with a tag for each element in it."""
    parts, quoted, spaces = [], False, True

    def read(text):
        nonlocal quoted, spaces
        for escape, letter in re.findall(r"\\(u[0-9a-fA-F]{4}|.)|(.)", text or "", re.DOTALL):
            if escape:
                special = {"n": "\n", "t": "\t"}
                many = len(escape) > 1
                parts.append(chr(int(escape[1:], 16)) if many else special.get(escape, escape))
                spaces = False
            elif letter == '"':
                quoted = not quoted
            elif letter in " \t\n\r" and not quoted:
                if not spaces:
                    parts.append(" ")
                spaces = True
            else:
                assert quoted or letter != "'", "an apostrophe without a backslash"
                parts.append(letter)
                spaces = False

    def walk(one):
        read(one.text)
        for child in one:
            name = child.tag.rpartition("}")[2]
            parts.append(f"<{name}>")
            walk(child)
            parts.append(f"</{name}>")
            read(child.tail)

    walk(element)
    assert not (element.text or "").startswith(("@", "?")), "a reference"
    if parts and parts[-1] == " " and spaces:
        parts.pop()
    return "".join(parts)


def strings(text):
    root = ElementTree.fromstring(text.encode())
    return {one.get("name"): one for one in root}


def test_texts_are_replaced():
    after = strings(filled(FILE, shout))
    assert android(after["title"]) == "A & B"
    assert android(after["odd"]) == "DON'T GO"
    assert android(after["app"]) == "Verbatim"
    assert android(after["link"]) == "OPEN <b>THE <i>FIRST</i></b> <file>"
    assert android(after["size"]) == "<g>%1$s</g> OF <g>Verbatim</g>"
    assert after["size"][0].attrib == {"id": "n", "example": "3"}
    assert android(after["html"]) == '<a href="x">DON\'T</a>'
    assert after["reference"].text == "@string/title"
    assert [item.text for item in after["days"]] == ["MONDAY", "@string/title"]


def test_only_the_texts_change():
    texts = {"A & B": "a", "Don't go": "b", "Monday": "c", "%d files": "%d d"}
    expected = FILE.replace("A &amp; B", "a").replace("Don\\'t\n        go", "b")
    expected = expected.replace("Monday", "c")
    document = document_of(FILE, "")
    places = {n: texts[s.text] for n, s in enumerate(document.segments) if s.text in texts}
    assert document.filled(places, "").decode() == expected
    assert document.filled({}, "").decode() == FILE
    assert document.blank == [15]


def test_cdata_stays():
    assert '<![CDATA[<a href=\\"x\\">DON\\\'T</a>]]>' in filled(FILE, shout)


def test_what_a_model_sees():
    assert [segment.text for segment in document_of(FILE).segments] == [
        "A & B",
        "Don't go",
        "Open <b>the <i>first</i></b> <file>",
        '%1$s of <xliff:g id="app"/>',
        '<a href="x">Don\'t</a>',
        "Monday",
        "%d file",
        "%d files",
    ]


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("fr", {"one": "%d FILE", "many": "%d FILES", "other": "%d FILES"}),
        ("ja", {"other": "%d FILES"}),
        ("ru", {"one": "%d FILE", "few": "%d FILES", "many": "%d FILES", "other": "%d FILES"}),
    ],
)
def test_plurals_have_the_forms_of_the_target(language, forms):
    after = filled(FILE, shout, language)
    items = strings(after)["files"]
    assert {item.get("quantity"): item.text for item in items} == forms
    assert after.count("<!-- Of one -->") == ("one" in forms)


def test_one_file_does_not_stand_for_21_files():
    after = strings(filled(FILE.replace("%d file<", "One file<"), shout, "ru"))["files"]
    assert after[0].text == "%d FILES"
    german = strings(filled(FILE.replace("%d file<", "One file<"), shout, "de"))["files"]
    assert german[0].text == "ONE FILE"


def test_plurals_need_the_language():
    document = document_of(FILE, "")
    assert [line for line, _ in document.problems] == [17]
    assert "--target-language" in document.problems[0][1]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("link", "</b>", ""),
        ("link", "<b>", ""),
        ("link", "</i></b>", "</b></i>"),
        ("size", "%1$s", "%2$s"),
        ("size", 'id="app"', 'id="other"'),
    ],
)
def test_lost_markup_is_refused(name, old, new):
    after = strings(filled(FILE, lambda text: shout(text).replace(old, new)))
    assert ElementTree.tostring(after[name]) == ElementTree.tostring(strings(FILE)[name])


def test_apostrophes_within_tags():
    before = HEAD + '<resources><string name="a">of <b>the friend</b> &amp; co</string></resources>'
    after = filled(before, lambda text: text.replace("of <b>the ", "d'un <b>l'"))
    assert after == before.replace("of <b>the ", "d\\'un <b>l\\'")


def test_tags_and_text_that_looks_like_them():
    before = HEAD + '<resources><string name="a"><b>x</b> &lt;b> y</string></resources>'
    assert filled(before, lambda text: text.replace("x<", "é<")) == before.replace("x<", "é<")


def test_a_comment_within_a_text_stays():
    before = HEAD + '<resources><string name="a">go <!-- <b>\'s --> on</string></resources>'
    assert filled(before, shout) == before.replace("go", "GO").replace("on<", "ON<")


def test_an_entity_of_the_file_stays():
    before = (
        HEAD + '<!DOCTYPE resources [<!ENTITY app "It\'s > [me]">]>\n'
        '<resources><string name="a">Go &app;</string></resources>'
    )
    assert filled(before, shout) == before.replace("Go", "GO")


def test_a_plural_that_is_not_valid_is_named():
    document = document_of(FILE.replace('quantity="one"', 'quantiti="one"'))
    assert document.problems == [(17, "a plural with a form that names no quantity")]
    document = document_of(FILE.replace('quantity="other"', 'quantity="few"'))
    assert document.problems == [(17, "a plural without the form other")]


@pytest.mark.parametrize("name", ["ISO-8859-1", "utf-7", "x-none"])
def test_other_encodings_are_refused(name):
    with pytest.raises(DocumentError, match=f"names the encoding {name}: convert it to UTF-8"):
        document_of(FILE.replace("utf-8", name))


@pytest.mark.parametrize(
    "content", ["<resources>", "<a/>", "<resources><string></resources>", "", "&"]
)
def test_what_is_no_resources_is_refused(content):
    with pytest.raises(DocumentError, match="^strings.xml .*\\.$"):
        document_of(content)


TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1)


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=TEXTS, cdata=st.booleans())
def test_any_text_comes_back(text, cdata):
    value = "<![CDATA[x]]>" if cdata else "x"
    before = HEAD + f'<resources><string name="a">{value}</string></resources>'
    after = document_of(before).filled({0: text}, "").decode()
    assert android(strings(after)["a"]) == text
