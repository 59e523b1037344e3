"""Text, tables and JSON Lines: same format back, every place kept, the rest byte for byte."""

import csv
import io
import json

import pytest

from pipeline.documents.document import DocumentError, with_ends_of
from pipeline.documents.formats import FORMATS, format_of
from pipeline.documents.options import Options


def read(name, content):
    content = content if isinstance(content, bytes) else content.encode()
    return FORMATS[name].read(f"file.{name}", content, Options())


def shouted(document):
    """Fills a document with its texts in upper case."""
    texts = {n: segment.text.upper() for n, segment in enumerate(document.segments)}
    return document.filled(texts, "by a test").decode()


def test_lines_keep_their_places():
    document = read("text", "a\n\n  b c\r\nd\u2028e\n \nf")
    assert [segment.text for segment in document.segments] == ["a", "  b c", "d\u2028e", "f"]
    assert [segment.line for segment in document.segments] == [1, 3, 4, 6]
    assert document.blank == [2, 5]
    assert shouted(document) == "A\n\n  B C\r\nD\u2028E\n \nF"


def test_a_refused_line_becomes_empty():
    document = read("text", "a\nb\nc\n")
    assert document.filled({0: "A", 2: "C"}, "") == b"A\n\nC\n"


def test_an_answer_of_several_lines_is_one_line():
    assert read("text", "a\nb\n").filled({0: "A\n A\n", 1: "B"}, "") == b"A A\nB\n"


def test_a_byte_order_mark_stays():
    assert shouted(read("text", b"\xef\xbb\xbfa\n")) == "\ufeffA\n"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"", b"\n \n", "ab".encode("utf-16"), b"a\n\xff\n"])
def test_what_is_no_text_is_refused(name, content):
    if name == "properties" and b"\xff" in content and b"\0" not in content:
        pytest.skip("ISO 8859-1 is what these files were once written in")
    if name == "strings" and b"\0" in content:
        pytest.skip("UTF-16 is what these files were once written in")
    with pytest.raises(DocumentError, match=f"^file.{name} .*\\.$"):
        read(name, content)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("source\na\n\nb\n", "source\ttarget\na\tA\n\nb\tB\n"),
        ("id\tsource\n1\ta\n2\t\n", "id\tsource\ttarget\n1\ta\tA\n2\t\t\n"),
        ("target\tsource\n\ta\nalt\tb\n", "target\tsource\nA\ta\nalt\tb\n"),
        ("a\nb\n", "a\tA\nb\tB\n"),
        ('source\tid\n"q" x\t1\r\n', 'source\tid\ttarget\n"q" x\t1\t"Q" X\r\n'),
    ],
)
def test_tsv(before, after):
    assert shouted(read("tsv", before)) == after


def test_csv_has_the_same_rows_and_the_translations():
    before = 'id,source,note\r\n1,"a, b",x\r\n2,"c ""d""\nend","y\n"\r\n3,,z\r\n'
    document = read("csv", before)
    assert document.blank == [6]
    rows = list(csv.reader(io.StringIO(shouted(document), newline="")))
    assert rows == [
        ["id", "source", "note", "target"],
        ["1", "a, b", "x", "A, B"],
        ["2", 'c "d"\nend', "y\n", 'C "D"\nEND'],
        ["3", "", "z", ""],
    ]
    assert '1,"a, b",x,"A, B"\r\n' in shouted(document)


def test_translations_of_a_table_are_not_touched():
    before = 'source,target\na,"alt"\nb,\n'
    document = read("csv", before)
    assert document.translated_before == 1
    assert shouted(document) == 'source,target\na,"alt"\nb,B\n'


def test_a_table_without_the_column_is_refused():
    with pytest.raises(DocumentError, match="no column 'source', but id, text"):
        read("csv", "id,text\n1,a\n")


def test_a_row_that_is_too_long_is_named():
    document = read("tsv", "source\na\tb\nc\n")
    assert document.problems == [(2, "more cells than the first row")]
    assert shouted(document) == "source\ttarget\na\tb\nc\tC\n"


def test_csv_that_is_not_valid_is_refused():
    with pytest.raises(DocumentError, match="not valid CSV: see line 2"):
        read("csv", 'source\n"a" b\n')


def test_json_lines():
    lines = [
        '{"source": "é", "n": 1}',
        "",
        '{"source":"b",  "target":"alt"}',
        "{",
        '{"source":" "}',
    ]
    document = read("jsonl", "\n".join(lines))
    assert document.problems == [(4, "not valid JSON")]
    assert (document.translated_before, document.blank) == (1, [5])
    after = shouted(document).split("\n")
    assert json.loads(after[0]) == {"source": "é", "n": 1, "target": "É"}
    assert after[1:] == lines[1:]


def test_white_space_at_the_ends_is_that_of_the_source():
    assert with_ends_of("\n a\n", "b c \n\n") == "\n b c\n"


def test_formats_by_suffix():
    assert format_of("a/b.PO") == "gettext"
    with pytest.raises(DocumentError, match="no known suffix"):
        format_of("a.docx")
