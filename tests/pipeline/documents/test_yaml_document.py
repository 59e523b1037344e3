"""YAML catalogues, read by ruamel.yaml."""

import io

import hypothesis
import hypothesis.strategies as st
import pytest
import ruamel.yaml

from pipeline.documents.document import DocumentError
from pipeline.documents.options import Options
from pipeline.documents.yaml_document import YamlDocument
from tests.pipeline.documents.filling import filled, shout

RAILS = """# A licence
---
en:
  title: "Caf\\u00e9 <b class=\\"x\\">go</b>"   # a note
  plain: Open %{name} now
  'odd key': 'It''s'

  long: |
    First line
      second

    last
  folded: >-
    One
    sentence
  count: 3
  empty: ""
  list: [one, "two"]
  items:
    - red
    - name: blue
  shared: &shared
    a: Same
  again: *shared
  files:
    # Of one
    one: "%{count} file"
    other: "%{count} files"   # of more
  done: Done
"""


def read(text, language="fr"):
    return YamlDocument("en.yml", text.encode(), Options(language=language))


def load(text):
    yaml = ruamel.yaml.YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    return yaml.load(io.StringIO(text))


def test_texts_are_replaced():
    after = load(filled(read(RAILS, "ru"), shout))["ru"]
    assert after == {
        "title": 'CAFÉ <b class="x">GO</b>',
        "plain": "OPEN %{name} NOW",
        "odd key": "IT'S",
        "long": "FIRST LINE\n  SECOND\n\nLAST\n",
        "folded": "ONE SENTENCE",
        "count": 3,
        "empty": "",
        "list": ["ONE", "TWO"],
        "items": ["RED", {"name": "BLUE"}],
        "shared": {"a": "SAME"},
        "again": {"a": "SAME"},
        "files": {
            "one": "%{count} FILE",
            "few": "%{count} FILES",
            "many": "%{count} FILES",
            "other": "%{count} FILES",
        },
        "done": "DONE",
    }


def test_only_the_texts_change():
    expected = RAILS.replace("en:", "de:").replace("Open", "OPEN").replace("now\n", "NOW\n")
    expected = expected.replace("} file", "} FILE").replace('FILEs"', 'FILES"')
    expected = expected.replace("First line", "FIRST LINE").replace("  second", "  SECOND")
    expected = expected.replace("    last", "    LAST")

    def answer(text):
        return shout(text) if "%{" in text or "First" in text else text

    after = filled(read(RAILS, "de"), answer).replace("\xe9", "\\u00e9")
    expected = expected.replace("    One\n    sentence", "    One sentence")
    assert after == expected


def test_line_ends_of_windows():
    before = RAILS.replace("\n", "\r\n")
    after = filled(read(before, "ru"), shout)
    assert "\n" not in after.replace("\r\n", "")
    assert load(after) == load(filled(read(RAILS, "ru"), shout))


def test_a_root_without_a_language_stays():
    assert filled(read("a: b\n", ""), shout) == "a: B\n"
    with pytest.raises(DocumentError, match="'en'.*--target-language"):
        read(RAILS, "")


@pytest.mark.parametrize(
    "content",
    [
        "a: [",
        "- a",
        "a: b\na: c",
        "a: 'b",
        "",
        "a: *b",
        "a",
        "--- a\n--- b",
        "{a: b\n\x07",
        "[" * 3000,
    ],
)
def test_what_is_no_catalogue_is_refused(content):
    with pytest.raises(DocumentError, match="^en.yml .*\\.$"):
        read(content)


LETTERS = st.characters(blacklist_categories=["Cs"], blacklist_characters="\ufeff")
TEXTS = st.text(LETTERS, min_size=1) | st.text("a: #'\"\n -|>[]{},&*!%@`?yn01~\\\t", min_size=1)
STYLES = ['"x"', "'x'", "x", "|\n  x\n", "|-\n  x", ">\n  x\n", ">-\n    x\n"]


@pytest.mark.parametrize("style", STYLES)
@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=TEXTS)
def test_any_text_comes_back(style, text):
    document = read(f"a: {style}\nb: why\nc: {{d: z}}\n".replace("\n\n", "\n"))
    after = document.filled({0: text, 2: text}, "").decode()
    assert load(after) == {"a": text, "b": "why", "c": {"d": text}}
