"""TSV and CSV files: columns with and without a header; what is wrong with a row."""

from pipeline.readers.records import Pair, format_reject
from tests.pipeline.readers.data_files import config, read, write


def test_tsv_without_header_takes_the_first_two_columns(tmp_path):
    path = write(tmp_path / "a.tsv", "\ufeffHello\tBonjour\tCC-BY\r\n  Yes \t Oui\n")
    pairs, rejects = read(path)
    assert (
        pairs == [Pair("Hello", "Bonjour", "a.tsv", 1), Pair("Yes", "Oui", "a.tsv", 2)]
        and not rejects
    )


def test_tsv_header_names_the_columns_in_any_place(tmp_path):
    path = write(tmp_path / "a.tsv", "id\ttarget\tsource\n7\tBonjour\tHello\n")
    assert read(path)[0] == [Pair("Hello", "Bonjour", "a.tsv", 2)]
    path = write(tmp_path / "b.tsv", "fr\ten\nBonjour\tHello\n")
    assert read(path, config(source_column="en", target_column="fr"))[0] == [
        Pair("Hello", "Bonjour", "b.tsv", 2)
    ]


def test_tsv_rejects_say_line_and_reason(tmp_path):
    lines = [
        b"ok\tbon",
        b"",
        b"one column",
        b"\xff\xfe\tx",
        b"a\x00b\tc",
        b"\tx",
        b"x\t ",
        b"x" * 30 + b"\ty",
        b"same\tsame",
    ]
    pairs, rejects = read(
        write(tmp_path / "a.tsv", b"\n".join(lines)), config(max_characters=20, drop_identical=True)
    )
    assert [pair.line for pair in pairs] == [1]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (2, "empty line"),
        (3, "missing column"),
        (4, "not valid UTF-8"),
        (5, "control character"),
        (6, "empty source"),
        (7, "empty target"),
        (8, "longer than 20 characters"),
        (9, "target equals source"),
    ]
    assert rejects[2].text == "\\xff\\xfe\tx"
    assert format_reject(rejects[2]) == "a.tsv\t4\tnot valid UTF-8\t\\\\xff\\\\xfe\\tx"


def test_tsv_columns_without_a_header(tmp_path):
    path = write(tmp_path / "a.tsv", "Question?\tSELECT x\t1-2\n")
    named = config(columns=("source", "target", "table"))
    assert read(path, named)[0] == [Pair("Question?", "SELECT x", "a.tsv", 1)]
    swapped = config(columns=("a", "b", "c"), source_column="c", target_column="a")
    assert read(path, swapped)[0] == [Pair("1-2", "Question?", "a.tsv", 1)]


def test_csv_takes_quotes_line_ends_and_columns_without_a_header(tmp_path):
    content = (
        '"1","A ""quoted"" title","First, with\na line end"\r\n2,Plain,Second\n\n3,only '
        'two\n"4","x"y,z\n5,\xff,Fünf\n'
    )
    content = "\ufeff".encode() + content.encode().replace("\xff".encode(), b"\xff")
    path = write(tmp_path / "news.csv", content)
    columns = config(columns=("class", "target", "source"), drop_identical=True)
    pairs, rejects = read(path, columns)
    assert [tuple(pair[:4]) for pair in pairs] == [
        ("First, with\na line end", 'A "quoted" title', "news.csv", 1),
        ("Second", "Plain", "news.csv", 3),
    ]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (4, "empty line"),
        (5, "missing column"),
        (6, "not valid CSV"),
        (7, "not valid UTF-8"),
    ]
    # A file that has a header all the same.
    with_header = write(tmp_path / "header.csv", "class,target,source\n1,a,b\n")
    assert read(with_header, columns)[0] == [Pair("b", "a", "header.csv", 2)]
    assert read(with_header)[0] == [Pair("b", "a", "header.csv", 2)]


def test_csv_with_an_open_quote_loses_no_record(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.csv", 'a,b\nc,"d\ne,f\n'))
    assert [pair.source for pair in pairs] == ["a"]
    assert rejects == [("a.csv", 2, "not valid CSV", 'c,"d\ne,f')]
