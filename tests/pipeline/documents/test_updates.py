"""Translated files that exist: what they have stays, and what they lack is added."""

import itertools

import hypothesis
import hypothesis.strategies as st
import pytest

from pipeline.documents.document import DocumentError
from pipeline.documents.formats import FORMATS
from pipeline.documents.options import Options
from tests.pipeline.documents.filling import filled, shout

ANDROID = """<resources>
    <!-- A section -->

    <!-- Of a -->
    <string name="a">one</string> <!-- of a, too -->
    <!-- Of b -->
    <string name="b">two</string>
    <string name="c">three</string>
    <plurals name="d">
        <item quantity="one">%d file</item>
        <item quantity="other">%d files</item>
    </plurals>
    <string name="e">four</string>
</resources>
"""
ANDROID_FR = """<resources>
  <!-- Titre -->

  <string name="own">à nous</string>
  <string name="c">trois</string>
  <string name="e"> </string>
</resources>
"""
ANDROID_RESULT = """<resources>
  <!-- Titre -->

    <!-- Of a -->
    <string name="a">ONE</string>
    <!-- Of b -->
    <string name="b">TWO</string>
  <string name="own">à nous</string>
  <string name="c">trois</string>
    <plurals name="d">
        <item quantity="one">%d FILE</item>
        <item quantity="many">%d FILES</item>
        <item quantity="other">%d FILES</item>
    </plurals>
  <string name="e">FOUR</string>
</resources>
"""
JSON = '{\n  "a": "one",\n  "b": {"c": "two", "d": "three"},\n  "e": {"f": "four"},\n  "g": ""\n}\n'
JSON_FR = '{"x": "à nous", "b": {\n "d": "trois"},\n "e": {}\n}'
JSON_RESULT = (
    '{\n  "a": "ONE","x": "à nous", "b": {"c": "TWO",\n "d": "trois"},\n "e": {"f": "FOUR"}\n}'
)
YAML = (
    "en:\n    # Of a\n    a: one\n\n    b:\n        c: two # note\n        d: three\n    e: four\n"
)
YAML_FR = "# Titre\nfr:\n  b:\n    d: trois\n  x: à nous\n"
YAML_RESULT = (
    "# Titre\nfr:\n  # Of a\n  a: ONE\n  b:\n    c: TWO # note\n    d: trois\n  e: FOUR\n"
    "  x: à nous\n"
)
PROPERTIES = "# A licence\n\n# Of a\na=one\nb = two\nc=three"
PROPERTIES_FR = "# Titre\n\nb=deux\nc="
PROPERTIES_RESULT = "# Titre\n\n# Of a\na=ONE\nb=deux\nc=THREE"
STRINGS = '/* Of a */\n"a" = "one";\n\n/* Of b */\n"b" = "two";\n"c" = "three";\n'
STRINGS_FR = '/* Titre */\n\n"b" = "deux";\n'
STRINGS_RESULT = '/* Titre */\n\n/* Of a */\n"a" = "ONE";\n"b" = "deux";\n"c" = "THREE";\n'
PHP = """<?php
return [
    'a' => 'one', // of a
    'b' => 'two',
    'c' => ['d' => 'three'],
];
"""
PHP_FR = "<?php\nreturn [\n  'b' => 'deux', // de b\n  'c' => [],\n];\n"
PHP_RESULT = (
    "<?php\nreturn [\n    'a' => 'ONE',\n  'b' => 'deux', // de b\n  'c' => ['d' => 'THREE'],\n];\n"
)
CODEIGNITER = "<?php\n$lang['a'] = 'one';\n$lang['b'] = 'two';\n"
CODEIGNITER_FR = "<?php\n$lang['a'] = 'un';\n"
CODEIGNITER_RESULT = "<?php\n$lang['a'] = 'un';\n$lang['b'] = 'TWO';\n"
FLUENT = "# Of a\na = one\n    .title = two\nb = three\n"
FLUENT_FR = "a = un\n\n# De c\nc = quatre\n"
FLUENT_RESULT = "a = un\n    .title = TWO\nb = THREE\n\n# De c\nc = quatre\n"
RESX = """<root>
 <data name="a"><value>one</value></data>
 <data name="b"><value>two</value></data>
</root>"""
RESX_FR = '<root>\n  <data name="b"><value>deux</value></data>\n</root>'
RESX_RESULT = """<root>
 <data name="a"><value>ONE</value></data>
  <data name="b"><value>deux</value></data>
</root>"""
CASES = {
    "android": (ANDROID, ANDROID_FR, ANDROID_RESULT),
    "json": (JSON, JSON_FR, JSON_RESULT),
    "yaml": (YAML, YAML_FR, YAML_RESULT),
    "properties": (PROPERTIES, PROPERTIES_FR, PROPERTIES_RESULT),
    "strings": (STRINGS, STRINGS_FR, STRINGS_RESULT),
    "php": (PHP, PHP_FR, PHP_RESULT),
    "php of assignments": (CODEIGNITER, CODEIGNITER_FR, CODEIGNITER_RESULT),
    "fluent": (FLUENT, FLUENT_FR, FLUENT_RESULT),
    "resx": (RESX, RESX_FR, RESX_RESULT),
}


def read(name, source, existing, language="fr"):
    options = Options(language=language, existing=("fr", existing.encode()))
    return FORMATS[name.split()[0]].read("en", source.encode(), options)


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_added(name):
    source, existing, result = CASES[name]
    assert filled(read(name, source, existing), shout) == result


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_to_do_afterwards(name):
    source, _, result = CASES[name]
    document = read(name, source, result)
    assert not document.segments and not document.problems
    assert document.filled({}, "").decode() == result


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_is_not_added(name):
    source, existing, _ = CASES[name]
    assert read(name, source, existing).filled({}, "").decode() == existing


def test_plurals_of_i18next():
    source = '{"a_one": "{{n}} file", "a_other": "{{n}} files", "b": "x"}'
    japanese = '{"a_other": "{{n}}"}'
    document = read("json", source, japanese, "ja")
    assert document.translated_before == 1
    assert filled(document, shout) == '{"a_other": "{{n}}", "b": "X"}'
    after = filled(read("json", source, '{"b": "y"}', "ja"), shout)
    assert after == '{ "a_other": "{{n}} FILES","b": "y"}'


def test_another_style_is_named():
    document = read("yaml", "a:\n  b: one\n  c: two\n", "a: {b: un}\n")
    assert [line for line, _ in document.problems] == [3]
    assert filled(document, shout) == "a: {b: un}\n"


def test_a_translated_file_that_cannot_be_read():
    with pytest.raises(DocumentError, match="^fr is not valid JSON"):
        read("json", JSON, "{")
    with pytest.raises(DocumentError, match="^fr has no keys yet: replace it with --force.$"):
        read("json", JSON, "{}")


# The head, an entry, what stands between entries, and the end of a file.
LAYOUTS = {
    "android": ("<resources>", '\n  <string name="{}">{}</string>', "", "\n</resources>\n"),
    "json": ("{", '\n "{}": "{}"', ",", "\n}\n"),
    "yaml": ("---\n# Head\n\n", "{}: {}", "\n", "\n"),
    "properties": ("# Head\n\n", "{} = {}", "\n", ""),
    "strings": ("/* Head */\n", '\n"{}" = "{}";', "", "\n"),
    "php": ("<?php\nreturn [", "\n    '{}' => '{}'", ",", ",\n];\n"),
    "fluent": ("# Head\n\n", "{} = {}", "\n", "\n"),
    "resx": ("<root>", '\n<data name="{}"><value>{}</value></data>', "", "</root>"),
}
KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


def file_of(layout, keys, text):
    head, entry, separator, end = LAYOUTS[layout]
    return head + separator.join(entry.format(key, text) for key in keys) + end


@pytest.mark.parametrize("layout", LAYOUTS)
@hypothesis.settings(deadline=None, derandomize=True, max_examples=60)
@hypothesis.given(keys=KEYS, existing=KEYS)
def test_any_keys_are_merged(layout, keys, existing):
    before = file_of(layout, existing, "alt")
    document = read(layout, file_of(layout, keys, "new"), before)
    missing = [key for key in keys if key not in existing]
    assert len(document.segments) == len(missing)
    after = filled(document, shout)
    entries = {node.key.rpartition("/")[2]: node for node in read(layout, after, after).nodes}
    texts = {key: node.value.parts[0].text for key, node in entries.items()}
    assert texts == dict.fromkeys(existing, "alt") | dict.fromkeys(missing, "NEW")
    # Neighbours of the source that were both added follow one another.
    order = [key for key in entries if key in keys]
    for first, second in itertools.pairwise(keys):
        if first in missing and second in missing:
            assert order.index(second) == order.index(first) + 1
    # All that was there is there, in its order.
    rest = iter(after)
    assert all(letter in rest for letter in before)
