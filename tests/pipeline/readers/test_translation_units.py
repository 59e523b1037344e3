"""TMX memories, XLIFF files, and compressed files."""

import gzip

import pytest

from pipeline.readers import DataError, translation_units
from tests.pipeline.readers.data_files import config, fails, read, write

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header srclang="en" datatype="plaintext"/>
  <body>
    <tu tuid="1">
      <tuv xml:lang="en-US"><seg>Delete &lt;b&gt; &amp; <bpt i="1">[</bpt>go<ept
       i="1">]</ept></seg></tuv>
      <tuv xml:lang="FR"><seg><bpt i="1">[</bpt>Aller<ept
       i="1">]</ept>, supprimer &lt;b&gt;</seg></tuv>
    </tu>
    <tu><tuv lang="fr"><seg>Ouvrir</seg></tuv><tuv lang="en"><seg>Open</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg>Only</seg></tuv><tuv xml:lang="de"><seg>Nur</seg></tuv></tu>
    <tu><tuv xml:lang="en"><seg>Bad</seg></tuv><tuv xml:lang="fr"><seg>Mal</tuv></tu>
    <tu><tuv xml:lang="en"><seg> </seg></tuv><tuv xml:lang="fr"><seg>Rien</seg></tuv></tu>
  </body>
</tmx>
"""
XLIFF = """<xliff version="1.2">
<file source-language="{}" target-language="{}" original="a" datatype="x"><body>
<trans-unit id="1"><source>Go <x id="1"/></source><target>Aller <x id="1"/></target></trans-unit>
<trans-unit id="2"><source>New</source></trans-unit>
<trans-unit id="3"><source>Sure?</source>
<target state="needs-review-translation">Sûr ?</target></trans-unit>
<trans-unit id="4" translate="no"><source>App</source><target>App</target></trans-unit>
</body></file>
</xliff>
"""


def test_tmx(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.tmx", TMX))
    assert [(pair.source, pair.target, pair.line) for pair in pairs] == [
        (
            'Delete <b> & <bpt id="1"/>go<ept id="1"/>',
            '<bpt id="1"/>Aller<ept id="1"/>, supprimer <b>',
            6,
        ),
        ("Open", "Ouvrir", 12),
    ]
    assert [(reject.reason, reject.line) for reject in rejects] == [
        ("no text in this language: fr", 13),
        ("not well-formed XML", 14),
        ("empty source", 15),
    ]


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16"])
def test_tmx_of_other_charsets(tmp_path, charset):
    pairs, _ = read(write(tmp_path / "a.tmx", TMX.replace("Open", "Öpen").encode(charset)))
    assert [pair.source for pair in pairs][1:] == ["Öpen"]


def test_tmx_with_bad_bytes_and_without_an_end(tmp_path):
    content = TMX.replace("Open", "\xff\xff").encode("latin-1").partition(b"<tu><tuv xml:lang")[0]
    _, rejects = read(write(tmp_path / "a.tmx", content + b"<tu>"))
    assert [(reject.reason, reject.line) for reject in rejects] == [
        ("not valid UTF-8", 12),
        ("a unit that does not end", 13),
    ]


def test_units_beyond_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(translation_units, "_BLOCK", 64)
    unit = '<tu><tuv lang="en"><seg>{0}</seg></tuv>\n<tuv lang="fr"><seg>x{0}</seg></tuv></tu>\n'
    count = 300
    write(tmp_path / "a.tmx", "<tmx>\n" + "".join(unit.format(n) for n in range(count)) + "</tmx>")
    pairs, rejects = read(tmp_path / "a.tmx")
    assert not rejects
    assert [pair.source for pair in pairs] == [str(n) for n in range(count)]
    assert [pair.line for pair in pairs] == [2 + 2 * n for n in range(count)]


@pytest.mark.parametrize("languages", [("en", "fr"), ("fr-FR", "en-US")])
def test_xliff(tmp_path, languages):
    pairs, rejects = read(write(tmp_path / "a.xlf", XLIFF.format(*languages)))
    texts = ('Go <x id="1"/>', 'Aller <x id="1"/>')
    assert [(pair.source, pair.target) for pair in pairs] == [
        texts if languages[0] == "en" else texts[::-1]
    ]
    assert [(reject.reason, reject.line) for reject in rejects] == [
        ("untranslated", 4),
        ("fuzzy", 5),
        ("not to be translated", 7),
    ]


@pytest.mark.parametrize("name", ["a.tmx", "a.xliff"])
def test_what_is_no_such_file_is_refused(tmp_path, name):
    fails(write(tmp_path / name, "<a/>"), name)
    fails(write(tmp_path / name, b"\xff<"), name)
    fails(write(tmp_path / name, ""), name)


def test_one_bad_file_does_not_stop_the_others(tmp_path):
    write(tmp_path / "a.xlf", "<xliff>")
    write(tmp_path / "b.tmx", TMX)
    pairs, rejects = read(tmp_path)
    assert len(pairs) == 2
    assert rejects[0].reason.startswith("not a readable catalogue: ")


def zipped(text):
    return gzip.compress(text.encode())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv.gz", "source\ttarget\na\tb\n"),
        ("a.TXT.GZ", "source\ttarget\na\tb\n"),
        ("a.csv.gz", "source,target\na,b\n"),
        ("a.jsonl.gz", '{"source": "a", "target": "b"}\n'),
        ("a.po.gz", 'msgid "a"\nmsgstr "b"\n'),
        (
            "a.tmx.gz",
            '<tmx><tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="fr"><seg>b</seg></tuv></tu>',
        ),
        (
            "a.xlf.gz",
            '<xliff version="1.2"><file><body><trans-unit><source>a</source><target>b</target>'
            "</trans-unit></body></file></xliff>",
        ),
    ],
)
def test_compressed_files(tmp_path, name, content):
    write(tmp_path / name, zipped(content))
    for path in (tmp_path / name, tmp_path):
        pairs, rejects = read(path)
        assert [(pair.source, pair.target, pair.file) for pair in pairs] == [("a", "b", name)]
        assert not rejects


def test_compressed_aligned_files(tmp_path):
    write(tmp_path / "a.en.gz", zipped("one\ntwo\n"))
    write(tmp_path / "a.fr.gz", zipped("un\ndeux\n"))
    pairs, _ = read(tmp_path)
    assert [(pair.source, pair.target) for pair in pairs] == [("one", "un"), ("two", "deux")]
    (tmp_path / "a.fr.gz").unlink()
    fails(tmp_path, "a.fr.gz", "partner")


def test_a_broken_compressed_file_is_named(tmp_path):
    whole = zipped("source\ttarget\n" + "".join(f"{n}\t{n * n}\n" for n in range(5_000)))
    path = write(tmp_path / "a.tsv.gz", b"no gzip")
    fails(path, "a.tsv.gz", "not a complete gzip file")
    write(path, whole[: len(whole) // 2])
    with pytest.raises(DataError, match="a.tsv.gz is not a complete gzip file"):
        read(path, config())
