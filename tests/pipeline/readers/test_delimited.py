"""TSV and CSV files: columns with and without a header; what is wrong with a row."""

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Pair, format_reject, reason_kind
from tests.pipeline.readers.data_files import config, fails, read, write

NOT_CSV = "not valid CSV: a quote is not closed, or one within a quoted cell is not doubled"


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
        (6, NOT_CSV),
        (7, "not valid UTF-8"),
    ]
    # A file that has a header all the same.
    with_header = write(tmp_path / "header.csv", "class,target,source\n1,a,b\n")
    assert read(with_header, columns)[0] == [Pair("b", "a", "header.csv", 2)]
    assert read(with_header)[0] == [Pair("b", "a", "header.csv", 2)]


def test_csv_with_an_open_quote_loses_no_record(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.csv", 'a,b\nc,"d\ne,f\ng,"h"\n'))
    assert [(pair.source, pair.line) for pair in pairs] == [("a", 1), ("e", 3), ("g", 4)]
    assert rejects == [("a.csv", 2, NOT_CSV, 'c,"d')]


@pytest.mark.parametrize(
    ("rows", "kept", "rejected"),
    [
        # The quote of line 6 may end the cell of line 2: nothing between them is sure.
        ('"a,b\nc,d\ne,f\ng,h\ndisk 6",disque\nk,l\n', [7], [2, 3, 4, 5, 6]),
        ('"Hello\nfoo, bar\nworld" x,Bonjour\nk,l\n', [5], [2, 3, 4]),
        ('"Hello "x" w\nfoo, bar\nmore",Bonjour\nk,l\n', [5], [2, 3, 4]),
        ('"He said \\"hi\\"",Il dit\nk,l\n', [3], [2]),
        ('"a\nb,c\n"d,e\n"f",g\n', [3, 5], [2, 4]),
        ('"a", "c"\nk,l\n', [3], [2]),
        ('a,"b\nc"\n"d\0","e\nf"\nk,l\n', [2, 6], [4]),
    ],
)
def test_csv_quotes_that_are_wrong_cost_no_more_than_their_lines(tmp_path, rows, kept, rejected):
    pairs, rejects = read(write(tmp_path / "a.csv", "source,target\n" + rows))
    assert [pair.line for pair in pairs] == kept
    assert [reject.line for reject in rejects] == rejected


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_row_with_other_cells_than_the_header_is_rejected(tmp_path, suffix):
    rows = ["id,Source,TARGET", "1,Hello,Bonjour, monde", "Hello,Bonjour,", "3,a,b,,", "Yes,Oui"]
    rows += ["id,source,target", "4,c,d"]
    content = "\n".join(rows).replace(",", "," if suffix == ".csv" else "\t")
    pairs, rejects = read(write(tmp_path / f"a{suffix}", content))
    assert [pair.source for pair in pairs] == ["a", "c"]
    assert [(reject.line, reason_kind(reject.reason)) for reject in rejects] == [
        (2, "more cells than the header"),
        (3, "empty target"),
        (5, "missing column"),
        (6, "a header among the rows"),
    ]


def test_rows_without_a_header_are_as_long_as_most(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.csv", "Hello,Bonjour, monde\nYes,Oui\nNo,Non\n"))
    assert [pair.line for pair in pairs] == [2, 3]
    assert [reason_kind(reject.reason) for reject in rejects] == ["more cells than most rows"]


def test_a_row_without_its_first_cell_is_not_shifted(tmp_path):
    content = "id,source,target,note\nHello,Bonjour,x\n1,a,b,\n"
    pairs, rejects = read(write(tmp_path / "a.csv", content))
    assert [pair.source for pair in pairs] == ["a"]
    assert reason_kind(rejects[0].reason) == "fewer cells than the header"


def test_another_separator_is_named_and_can_be_set(tmp_path):
    for separator in (";", "|", "\t"):
        shown = repr(separator).replace("'", '"')
        for content in ("source;target\nYes;Oui\n", "Yes, yes;Oui, oui\nNo, no;Non, non\n"):
            path = write(tmp_path / "a.csv", content.replace(";", separator))
            fails(path, f"data.separator = {shown}")
            pairs, _ = read(path, config(separator=separator))
            assert pairs[0].target in ("Oui", "Oui, oui")
    fails(write(tmp_path / "a.csv", "sep=;\nsource;target\na;b\n"), "data.separator", "sep=;")
    fails(write(tmp_path / "a.tsv", "source,target\na,b\n"), 'data.format = "csv"')
    fails(write(tmp_path / "a.csv", "source,target,source\n"), "two columns 'source'")


def test_every_line_end_is_one(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        path = write(tmp_path / "a.csv", '\n\nsource,target\na,b\n"c\nd",e\n'.replace("\n", end))
        pairs, _ = read(path)
        assert [(pair.source, pair.line) for pair in pairs] == [("a", 4), (f"c{end}d", 5)]
        path = write(tmp_path / "a.tsv", "\nsource\ttarget\na\tb\nc\td\n".replace("\n", end))
        assert [(pair.source, pair.line) for pair in read(path)[0]] == [("a", 3), ("c", 4)]


@pytest.mark.parametrize(
    ("rows", "kept", "rejected"),
    [
        ('"Hello\nworld"\t"Bonjour\nmonde"\nYes\tOui\n', [5], [2, 3, 4]),
        ('Hello\t"Bonjour\n\nmonde"\nYes\tOui\n', [5], [2, 3, 4]),
        ('"a ""b"""\t"c"\nx\t""\nYes\tOui\n', [4], [2, 3]),
        # Quotes that belong to the text.
        ('"Yes\tOui\n"Hello.\t"Bonjour.\nNo"\tNon"\n5"\t6"\n', [2, 3, 4, 5], []),
        ('"Why?" "So."\t"Quoi ?""Eh."\n"a"\t"b"\n', [2, 3], []),
    ],
)
def test_tsv_cells_in_quotes(tmp_path, rows, kept, rejected):
    path = write(tmp_path / "a.tsv", "source\ttarget\n" + rows)
    pairs, rejects = read(path)
    assert [pair.line for pair in pairs] == kept
    assert [reject.line for reject in rejects] == rejected
    assert all('data.separator = "\\t"' in reject.reason for reject in rejects)
    quoted = config(format="csv", separator="\t")
    if rejected:
        # The hint works, for a folder too.
        assert not read(tmp_path, quoted)[1] or '""' in rows


def test_tsv_with_a_header_in_quotes(tmp_path):
    path = write(tmp_path / "a.tsv", '"source"\t"target"\n"a\nb"\t"c ""d"""\n')
    fails(path, "are quoted", 'data.format = "csv"')
    assert read(path, config(format="csv", separator="\t"))[0] == [
        Pair("a\nb", 'c "d"', "a.tsv", 2)
    ]


_CELLS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=9)
_TEXTS = st.tuples(_CELLS, st.sampled_from(["", "\n", ",", '"', ";", "\t"]), _CELLS).map("".join)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(
    rows=st.lists(st.tuples(_TEXTS, _TEXTS), min_size=1, max_size=8),
    separator=st.sampled_from([",", ";", "|", "\t"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_the_csv_module_writes_comes_back(tmp_path, rows, separator, quoting):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, quoting=quoting)
    writer.writerows([("source", "target"), *rows])
    path = write(tmp_path / "a.csv", buffer.getvalue())
    unit = InputUnit("csv", ("a.csv",), (str(path),))
    records = list(read_unit(unit, config(separator=separator)))
    assert len(records) == len(rows)
    for record, (source, target) in zip(records, rows, strict=True):
        if isinstance(record, Pair):
            assert (record.source, record.target) == (source.strip(), target.strip())
        else:
            assert record.reason in ("empty source", "empty target") or "blank" in record.reason


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)
@given(st.text(st.sampled_from('ab," \t\n\r;'), max_size=60), st.sampled_from(["csv", "tsv"]))
def test_every_line_of_any_file_is_accounted_for(tmp_path, content, suffix):
    path = write(
        tmp_path / f"a.{suffix}",
        "source,target\n".replace(",", {"csv": ",", "tsv": "\t"}[suffix]) + content,
    )
    unit = InputUnit(suffix, ("a",), (str(path),))
    records = list(read_unit(unit, config()))
    lines = [record.line for record in records]
    assert lines == sorted(set(lines))
    if suffix == "tsv" and content:
        assert len(lines) == len(path.read_bytes().split(b"\n")[1:]) - content.endswith("\n")
