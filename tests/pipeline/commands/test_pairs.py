"""`verbatim pairs`: training data out of two files with the same keys."""

import json

import pytest

from pipeline.commands import main

ENGLISH = """<resources xmlns:x="urn:x">
    <string name="a">Don\\'t <x:g id="n">Verbatim</x:g></string>
    <string name="b">Only here</string>
    <string name="n" translatable="false">Name</string>
    <plurals name="p"><item quantity="one">%d file</item><item quantity="other">%d files</item>
    </plurals>
</resources>"""
RUSSIAN = """<resources xmlns:x="urn:x">
    <plurals name="p"><item quantity="one">%d файл</item><item quantity="few">%d файла</item>
        <item quantity="many">%d файлов</item><item quantity="other">%d файла</item></plurals>
    <string name="a">Не надо <x:g id="n">Verbatim</x:g></string>
</resources>"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    return main.main(["pairs", *arguments])


def pairs(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [(record["source"], record["target"]) for record in records]


def test_strings_of_android(folder, capsys):
    (folder / "en.xml").write_text(ENGLISH)
    (folder / "ru.xml").write_text(RUSSIAN)
    assert call("en.xml", "ru.xml", "--output", "pairs.jsonl", "--json", "facts.json") == 0
    assert pairs(folder / "pairs.jsonl") == [
        ('Don\'t <x:g id="n"/>', 'Не надо <x:g id="n"/>'),
        ("%d file", "%d файл"),
        ("%d files", "%d файла"),
    ]
    assert capsys.readouterr().out == "pairs.jsonl: 3 pairs, 1 texts left out\n"
    assert json.loads((folder / "facts.json").read_text()) == {
        "pairs": 3,
        "left_out": [{"line": 3, "key": "string/b", "reason": "untranslated"}],
    }


def test_messages_of_icu(folder):
    (folder / "en.json").write_text(
        '{"a": {"b": "{n, plural, one {# file} other {# files}}"}, "c": "{x} {y}"}'
    )
    (folder / "fr.json").write_text(
        '{"a": {"b": "{n, plural, one {# fichier} other {# fichiers}} d\'\'{x}"}, "c": "{x"}'
    )
    assert call("en.json", "fr.json", "--output", "out.jsonl") == 0
    assert pairs(folder / "out.jsonl") == [
        ("# file", "# fichier d'{x}"),
        ("# files", "# fichiers d'{x}"),
    ]


def test_yaml_of_rails(folder):
    (folder / "en.yml").write_text("en:\n  a: one\n  b: two\n")
    (folder / "de.yml").write_text("de:\n  a: eins\n  b: ''\n")
    assert call("en.yml", "de.yml", "--output", "out.jsonl") == 0
    assert pairs(folder / "out.jsonl") == [("one", "eins")]


def test_what_cannot_be_paired(folder, capsys):
    (folder / "a.json").write_text('{"a": "x"}')
    (folder / "b.json").write_text('{"b": "y"}')
    (folder / "a.po").write_text('msgid "a"\nmsgstr "b"\n')
    assert call("a.json", "b.json", "--output", "out.jsonl") == 1
    assert "share no translated key" in capsys.readouterr().err
    assert call("a.po", "a.po", "--output", "out.jsonl") == 1
    assert "give it to verbatim run" in capsys.readouterr().err
    assert call("a.json", "none.json", "--output", "out.jsonl") == 1
    assert not (folder / "out.jsonl").exists()
    assert call("a.json", "a.json", "--output", "b.json") == 1
    assert (folder / "b.json").read_text() == '{"b": "y"}'
