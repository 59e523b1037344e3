"""Files with a glossary."""

import pytest

from serving.errors import RequestError
from serving.glossary_files import read_glossary

TERMS = {"home page": "page d'accueil", "a, b": "c"}
TBX = """<?xml version="1.0"?>
<!-- terms -->
<martif type="TBX">{body}</martif>"""
CONCEPT = """<termEntry><langSet xml:lang="en"><tig><term>home page</term></tig>
<ntig><termGrp><term>start page</term></termGrp></ntig></langSet>
<langSet xml:lang="fr"><tig><term>page <b>d'accueil</b></term></tig>
<tig><term>accueil</term></tig></langSet></termEntry>"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'home page,page d\'accueil\n"a, b",c\n'),
        ("a.csv", '\ufeffsource,target\r\nhome page,page d\'accueil\r\n\r\n"a, b",c\r\n'),
        ("a.CSV", 'Target,note,Source\npage d\'accueil,x,home page\nc,,"a, b"\n'),
        ("a.tsv", "home page\tpage d'accueil\na, b\tc"),
    ],
)
def test_tables(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode())
    assert read_glossary(tmp_path / name).terms == TERMS


def test_tbx(tmp_path):
    path = tmp_path / "a.tbx"
    path.write_text(TBX.format(body=CONCEPT), "utf-8")
    accueil = "page d'accueil"
    assert read_glossary(path).terms == {"home page": accueil, "start page": accueil}
    namespace = '<tbx xmlns="urn:iso:std:iso:30042:ed-2" type="TBX-Core">'
    body = CONCEPT.replace("termEntry", "conceptEntry").replace("langSet", "langSec")
    path.write_text(f"{namespace}{body}</tbx>", "utf-8")
    assert len(read_glossary(path).terms) == 2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"a,b", "must be a .csv, .tsv or .tbx file"),
        ("a.csv", b"", "cannot be used: The glossary is empty"),
        ("a.csv", b"source,target\n", "cannot be used: The glossary is empty"),
        ("a.csv", b"a,b,c\n", "has 3 columns: name two of them"),
        ("a.csv", b"a\n", "has one column: write phrase and"),
        ("a.csv", b"a,b\nc\n", "Line 2 of .* has no translation"),
        ("a.csv", b'a,"b', "Line 1 of .* is not valid"),
        ("a.csv", b"a,\xff\n", "is not UTF-8"),
        ("a.csv", b"a,b\na,c\n", 'translates "a" as "b" and as "c"'),
        ("a.csv", b"a,\n", "translation of the glossary's term 'a' is blank"),
        ("a.tbx", b"<a>", "is not valid XML"),
        ("a.tbx", b"<a/>", "must have two languages, the source's first; it has none"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RequestError, match=sentence) as caught:
        read_glossary(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(RequestError, match="does not exist"):
        read_glossary(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RequestError, match="cannot be read: Is a directory"):
        read_glossary(tmp_path / "folder.csv")
