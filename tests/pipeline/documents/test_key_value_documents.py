"""Keys and values: .properties, .strings, .stringsdict and .resx, read by other readers."""

import plistlib
import re

import hypothesis
import hypothesis.strategies as st
import javaproperties
import lxml.etree
import openstep_plist
import pytest

from pipeline.documents.document import DocumentError
from pipeline.documents.formats import FORMATS
from pipeline.documents.options import Options
from tests.pipeline.documents.filling import filled, shout

PROPERTIES = (
    "# A title = x\n! Another\n\ntitle = Caf\\u00e9 \\\n    bar\nplain:go\\n  \nempty=\n"
    "odd\\ key\\:\t  a\\tb\nargument={0} isn''t\\ {1,number}\r\nlast go"
)
STRINGS = """/* A title = "x"; */
"title" = "Say \\"hi\\" \\U00e9 %@";
// Another
key   =   "two\\nlines" ;
"none" = "";
NSName = Value;
"""
STRINGSDICT = """<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
    <key>files</key>
    <dict>
        <key>NSStringLocalizedFormatKey</key>
        <string>%#@files@ in all</string>
        <key>files</key>
        <dict>
            <key>NSStringFormatSpecTypeKey</key>
            <string>NSStringPluralRuleType</string>
            <key>NSStringFormatValueTypeKey</key>
            <string>d</string>
            <!-- One -->
            <key>one</key>
            <string>%d file</string>
            <key>other</key>
            <string>%d files &amp; more</string>
        </dict>
    </dict>
</dict>
</plist>
"""
RESX = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <!-- A licence -->
  <resheader name="version"><value>2.0</value></resheader>
  <data name="title" xml:space="preserve"><value>Open {0} &amp; &lt;b&gt;go&lt;/b&gt;</value>
    <comment>Not this</comment></data>
  <data name="icon" type="System.Drawing.Bitmap"><value>a.png</value></data>
  <data name="&gt;&gt;label.Name"><value>label</value></data>
</root>
"""


def read(name, text, language="fr"):
    content = text if isinstance(text, bytes) else text.encode()
    return FORMATS[name].read(f"file.{name}", content, Options(language=language))


def read_resx(text):
    root = lxml.etree.fromstring(text.encode())
    return {one.get("name"): one.findtext("value") for one in root.iter("data")}


def test_properties():
    before = javaproperties.loads(PROPERTIES)
    after = filled(read("properties", PROPERTIES), shout)
    assert javaproperties.loads(after) == {
        "title": "CAFÉ BAR",
        "plain": "GO\n  ",
        "empty": "",
        "odd key:": "A\tB",
        "argument": "{0} ISN''T {1,number}",
        "last": "GO",
    }
    assert set(before) == set(javaproperties.loads(after))
    assert after.startswith("# A title = x\n! Another\n\ntitle = CAF\\u00c9 BAR\nplain:GO")
    assert read("properties", PROPERTIES).filled({}, "").decode() == PROPERTIES


@pytest.mark.parametrize(
    "line", ["k\\\n  ey=go", "key \\\n  : go", "key=\\\n go", "key\\\n\tgo", "key = = go", "key"]
)
def test_keys_and_values_over_several_lines(line):
    expected = {key: value.upper() for key, value in javaproperties.loads(line).items()}
    assert javaproperties.loads(filled(read("properties", line), shout)) == expected


def test_apostrophes_of_java():
    """MessageFormat reads texts with arguments alone, and drops an apostrophe that stands alone."""
    before = "a=of {0}\nb=of it\n"
    after = filled(read("properties", before), lambda text: text.replace("of ", "d'"))
    assert after == "a=d''{0}\nb=d'it\n"
    # A file with such apostrophes is read by something else.
    before += "c=It's {1}, said {0}\n"
    after = filled(read("properties", before), lambda text: text.replace("of ", "l'un d'"))
    assert after == "a=l'un d''{0}\nb=l'un d'it\nc=It's {1}, said {0}\n"


def test_properties_of_other_charsets():
    latin = "a=caf\xe9\nb=go".encode("latin-1")
    document = read("properties", latin)
    assert [segment.text for segment in document.segments] == ["café", "go"]
    assert document.filled({1: "é\u0416"}, "") == latin[:-2] + b"\\u00e9\\u0416"
    assert read("properties", "a=é\nb=go").filled({1: "é"}, "").decode() == "a=é\nb=é"


def test_apple_strings():
    expected = STRINGS.replace('Say \\"hi\\" \\U00e9', 'SAY \\"HI\\" É').replace("two", "TWO")
    expected = expected.replace("lines", "LINES")
    document = read("strings", STRINGS)
    after = filled(document, shout)
    assert after == expected
    assert openstep_plist.loads(after) == {
        "title": 'SAY "HI" É %@',
        "key": "TWO\nLINES",
        "none": "",
        "NSName": "Value",
    }
    assert document.blank == [5]


def test_apple_strings_of_utf_16():
    before = STRINGS.encode("utf-16")
    document = read("strings", before)
    after = document.filled({0: "É😀"}, "").decode("utf-16")
    assert openstep_plist.loads(after)["title"] == "É😀"
    assert document.filled({}, "") == before


def test_stringsdict():
    after = filled(read("stringsdict", STRINGSDICT, "ru"), shout)
    files = plistlib.loads(after.encode())["files"]
    assert files["NSStringLocalizedFormatKey"] == "%#@files@ IN ALL"
    assert files["files"] == {
        "NSStringFormatSpecTypeKey": "NSStringPluralRuleType",
        "NSStringFormatValueTypeKey": "d",
        "one": "%d FILE",
        "few": "%d FILES & MORE",
        "many": "%d FILES & MORE",
        "other": "%d FILES & MORE",
    }
    same = re.sub("<string>(%[^<]*)", lambda m: "<string>" + m[1].upper(), STRINGSDICT)
    same = same.replace("%#@FILES@", "%#@files@").replace("%D", "%d").replace("&AMP;", "&amp;")
    assert filled(read("stringsdict", STRINGSDICT, "de"), shout) == same


def test_resx():
    after = filled(read("resx", RESX), shout)
    assert after == RESX.replace("Open", "OPEN").replace("go&", "GO&")
    assert read_resx(after)["title"] == "OPEN {0} & <b>GO</b>"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("properties", "a=\\u12"),
        ("strings", '"a" = "b"'),
        ("strings", '"a" = "b";\n"c"'),
        ("strings", '"a" = "b'),
        ("strings", b"bplist00\x01"),
        ("strings", b"\xff\xfe\x00\xd8"),
        ("strings", "/* nothing */"),
        ("stringsdict", "<plist><dict><key>a</key></dict></plist>"),
        ("stringsdict", "<plist><array/></plist>"),
        ("resx", "<resources/>"),
        ("resx", RESX[:-3]),
    ],
)
def test_what_is_not_valid_is_refused(name, content):
    with pytest.raises(DocumentError, match=f"^file.{name} .*\\.$"):
        read(name, content)


ANY = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1)
LETTERS = st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff")
IN_XML = st.text(LETTERS | st.sampled_from("\t\n\r<>&]\"'"), min_size=1)


def java_message(message):
    """Reads a message as `java.text.MessageFormat` does; NUL stands for {0}."""
    read, quoted = "", False
    for part in re.findall(r"''|'|\{0\}|.", message):
        if part == "''":
            read += "'"
        elif part == "'":
            quoted = not quoted
        elif quoted:
            read += part
        else:
            assert part == "{0}" or part not in "{}"
            read += "\0" if part == "{0}" else part
    assert not quoted
    return read


def value_of(name, text):
    document = read(name, text)
    return lambda translation: document.filled({0: translation}, "").decode()


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(
    text=ANY | st.text(":= \\#!a\n", min_size=1),
    before=st.sampled_from(["a=x", "a = x\nb=é\n", "a x"]),
)
def test_any_text_comes_back_from_properties(text, before):
    after = value_of("properties", before)(text)
    assert javaproperties.loads(after)["a"] == text
    assert "é" in before or after.isascii()


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=st.text("{}'a #\"", min_size=1))
def test_any_text_comes_back_from_java_messages(text):
    hypothesis.assume("{0}" not in text)
    written = javaproperties.loads(value_of("properties", "a={0}")(text + "{0}"))["a"]
    assert java_message(written) == text + "\0"


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=ANY)
def test_any_text_comes_back_from_apple_strings(text):
    assert openstep_plist.loads(value_of("strings", '"a" = "x";')(text)) == {"a": text}


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=IN_XML)
def test_any_text_comes_back_from_xml(text):
    assert read_resx(value_of("resx", RESX)(text))["title"] == text
    after = plistlib.loads(value_of("stringsdict", STRINGSDICT)(text).encode())
    assert after["files"]["NSStringLocalizedFormatKey"] == text
