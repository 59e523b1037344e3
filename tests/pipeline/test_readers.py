"""Readers: every record comes out once, as a pair or as a reject with its reason."""

import json
import os
import subprocess
import sys

import polib
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import readers
from pipeline.configs import DataConfig


def config(**changes):
    return DataConfig(**changes)


def read(path, data_config=None):
    """Plans and reads; returns (pairs, rejects)."""
    data_config = data_config or config()
    records = list(readers.read_plan(readers.plan_inputs(path, data_config), data_config))
    pairs = [record for record in records if isinstance(record, readers.Pair)]
    return pairs, [record for record in records if isinstance(record, readers.Reject)]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fails(path, *words, **changes):
    """Checks that planning fails with one sentence that holds the words."""
    with pytest.raises(readers.DataError) as caught:
        readers.plan_inputs(path, config(**changes))
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    for word in words:
        assert str(word) in message


def test_importing_needs_no_tensorflow():
    code = "import sys, pipeline.readers; assert not {'tensorflow', 'apache_beam', 'tfx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tsv_without_header_takes_the_first_two_columns(tmp_path):
    path = write(tmp_path / "a.tsv", "\ufeffHello\tBonjour\tCC-BY\r\n  Yes \t Oui\n")
    pairs, rejects = read(path)
    assert (
        pairs == [readers.Pair("Hello", "Bonjour", "a.tsv", 1), readers.Pair("Yes", "Oui", "a.tsv", 2)] and not rejects
    )


def test_tsv_header_names_the_columns_in_any_place(tmp_path):
    path = write(tmp_path / "a.tsv", "id\ttarget\tsource\n7\tBonjour\tHello\n")
    assert read(path)[0] == [readers.Pair("Hello", "Bonjour", "a.tsv", 2)]
    path = write(tmp_path / "b.tsv", "fr\ten\nBonjour\tHello\n")
    assert read(path, config(source_column="en", target_column="fr"))[0] == [
        readers.Pair("Hello", "Bonjour", "b.tsv", 2)
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
    pairs, rejects = read(write(tmp_path / "a.tsv", b"\n".join(lines)), config(max_characters=20, drop_identical=True))
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
    assert readers.format_reject(rejects[2]) == "a.tsv\t4\tnot valid UTF-8\t\\\\xff\\\\xfe\\tx"


def test_a_long_reject_is_shortened(tmp_path):
    _, (reject,) = read(write(tmp_path / "a.tsv", "x" * 5000), config())
    assert len(reject.text) < 1100 and "5000 characters" in reject.text


def test_identical_pairs_stay_unless_asked(tmp_path):
    path = write(tmp_path / "a.tsv", "same\tsame\n")
    assert len(read(path)[0]) == 1


def test_jsonl(tmp_path):
    values = [
        {"source": "Hello\nyou", "target": "Bonjour"},
        {"source": "x"},
        {"source": 1, "target": "y"},
        ["source", "target"],
        {"source": "\ud800", "target": "y"},
    ]
    content = "\n".join([*map(json.dumps, values), "{", "", "[" * 100000])
    pairs, rejects = read(write(tmp_path / "a.jsonl", content))
    assert pairs == [readers.Pair("Hello\nyou", "Bonjour", "a.jsonl", 1)]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (2, "missing column"),
        (3, "value is not a text"),
        (4, "not a JSON object"),
        (5, "not valid UTF-8"),
        (6, "not valid JSON"),
        (7, "empty line"),
        (8, "not valid JSON"),
    ]
    readers.format_reject(rejects[3]).encode()


def test_aligned_files_by_comma_by_folder_and_by_one_of_them(tmp_path):
    source = write(tmp_path / "train.en", "Hello\r\n\nNo\tyes\n")
    target = write(tmp_path / "train.fr", "Bonjour\nx\nNon")
    expected = [readers.Pair("Hello", "Bonjour", "train.en", 1), readers.Pair("No\tyes", "Non", "train.en", 3)]
    for path in (f"{source},{target}", f"{source}, {target}", tmp_path, source, target):
        pairs, rejects = read(path)
        assert pairs == expected
        assert rejects == [("train.en", 2, "empty source", "\tx")]


def test_aligned_files_in_two_folders(tmp_path):
    for folder, text in (("en", "Hello"), ("fr", "Bonjour")):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a.txt", text)
    plan = readers.plan_inputs(f"{tmp_path}/en/a.txt,{tmp_path}/fr/a.txt", config())
    assert plan.base_directory == str(tmp_path)
    assert plan.units[0].names == ("en/a.txt", "fr/a.txt")
    assert list(readers.read_plan(plan, config())) == [readers.Pair("Hello", "Bonjour", "en/a.txt", 1)]


def test_aligned_files_that_shrink_after_planning_lose_no_record(tmp_path):
    source, target = write(tmp_path / "a.en", "1\n2\n3\n"), write(tmp_path / "a.fr", "un\ndeux\ntrois\n")
    plan = readers.plan_inputs(tmp_path, config())
    target.write_text("un\n")
    assert [type(record).__name__ for record in readers.read_plan(plan, config())] == ["Pair", "Reject", "Reject"]
    source.write_text("")
    assert [record.reason for record in readers.read_plan(plan, config())] == ["no partner line"]


def test_split_base_works_for_addresses_too():
    for paths in (
        ["/a/b/x.en", "/a/bc/y.fr"],
        ["gs://b/d/x", "gs://b/d/y"],
        ["gs://one/x", "gs://two/y"],
        ["/x"],
        ["/a/x"],
    ):
        base, names = readers.split_base(paths)
        assert [os.path.join(base, name) for name in names] == paths


PO = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=n > 1;\n"

msgid "Hello %(name)s"
msgstr "Bonjour %(name)s"

#, fuzzy
msgid "Fuzzy"
msgstr "Flou"

msgid "Untranslated"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

#. Default: "The \"site\" is ready,"
#. " ${name}"
msgid "label_ready"
msgstr "Le site est prêt, ${name}"

msgid "one"
msgid_plural "many"
msgstr[0] "un"

#~ msgid "Old"
#~ msgstr "Vieux"
"""


def test_po(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.po", PO))
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("Hello %(name)s", "Bonjour %(name)s"),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
        ('The "site" is ready, ${name}', "Le site est prêt, ${name}"),
        ("one", "un"),
    ]
    assert [(reject.reason, reject.text) for reject in rejects] == [
        ("fuzzy", "Fuzzy\tFlou"),
        ("untranslated", "Untranslated\t"),
        ("no such plural form", "many\t"),
        ("obsolete", "Old\tVieux"),
    ]
    assert pairs[0].line == 7 and rejects[0].line == 10


def test_po_default_over_several_lines_that_begins_empty(tmp_path):
    content = (
        '#. Default: ""\n#. "<p>Hello</p>\\n"\n#. "<p>you</p>"\n#: x.pt:3\nmsgid "body"\nmsgstr "<p>Bonjour</p>"\n'
    )
    (pair,), _ = read(write(tmp_path / "a.po", content))
    assert pair.source == "<p>Hello</p>\n<p>you</p>"


def test_po_in_another_charset(tmp_path):
    content = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "summer"\nmsgstr "été"\n'
    (pair,), rejects = read(write(tmp_path / "a.po", content.encode("latin-1")))
    assert pair.target == "été" and not rejects


def test_po_with_one_bad_byte_loses_one_entry(tmp_path):
    content = b'msgid "a"\nmsgstr "\xe9t\xe9"\n\nmsgid "b"\nmsgstr "line\xe2\x80\xa8separator"\n'
    pairs, rejects = read(write(tmp_path / "a.po", content))
    assert [pair.target for pair in pairs] == ["line\u2028separator"]
    assert [reject.reason for reject in rejects] == ["not valid UTF-8"]


def test_po_that_ends_in_a_comment_keeps_its_last_entry(tmp_path):
    pairs, _ = read(write(tmp_path / "a.po", '\ufeffmsgid "a"\r\nmsgstr "b"\r\n#~| msgid "c"\r\n'))
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "b")]


def test_mo_and_po_agree_and_the_po_is_preferred(tmp_path):
    write(tmp_path / "a.po", PO)
    catalogue = polib.pofile(str(tmp_path / "a.po"))
    catalogue.save_as_mofile(str(tmp_path / "b.mo"))
    pairs, _ = read(tmp_path / "b.mo")
    assert ("%d files", "%d fichiers") in [(pair.source, pair.target) for pair in pairs]
    assert ("label_ready", "Le site est prêt, ${name}") in [(pair.source, pair.target) for pair in pairs]
    (tmp_path / "b.mo").rename(tmp_path / "a.mo")
    plan = readers.plan_inputs(tmp_path, config())
    assert [unit.names for unit in plan.units] == [("a.po",)] and not plan.ignored_files


def test_mo_with_one_bad_byte_loses_one_entry(tmp_path):
    catalogue = polib.POFile(encoding="latin-1")
    catalogue.append(polib.POEntry(msgid="a", msgstr="été"))
    catalogue.append(polib.POEntry(msgid="b", msgstr="bon"))
    catalogue.save_as_mofile(str(tmp_path / "a.mo"))
    pairs, rejects = read(tmp_path / "a.mo")
    assert [pair.target for pair in pairs] == ["bon"]
    assert [reject.reason for reject in rejects] == ["not valid UTF-8"]


def test_a_folder_tells_what_it_ignores(tmp_path):
    write(tmp_path / "b.tsv", "a\tb\n")
    write(tmp_path / "a.txt", "a\tb\n")
    write(tmp_path / "notes.txt", "no tabs here\n")
    write(tmp_path / "image.png", b"\x89PNG")
    write(tmp_path / ".hidden", "x")
    (tmp_path / "folder").mkdir()
    plan = readers.plan_inputs(tmp_path, config())
    assert [unit.names for unit in plan.units] == [("a.txt",), ("b.tsv",)]
    assert plan.ignored_files == ("image.png", "notes.txt")
    plan = readers.plan_inputs(tmp_path / "notes.txt", config(format="tsv"))
    assert [unit.format for unit in plan.units] == ["tsv"]


def test_a_given_format_takes_only_its_own_files(tmp_path):
    write(tmp_path / "a.tsv", "a\tb\n")
    write(tmp_path / "b.jsonl", '{"source": "a", "target": "b"}\n')
    plan = readers.plan_inputs(tmp_path, config(format="jsonl"))
    assert [unit.names for unit in plan.units] == [("b.jsonl",)] and plan.ignored_files == ("a.tsv",)


def test_a_comma_in_a_name_is_part_of_the_name(tmp_path):
    assert len(read(write(tmp_path / "a,b.tsv", "x\ty\n"))[0]) == 1


def test_errors_name_the_file_and_what_to_do(tmp_path):
    fails(tmp_path / "nothing", tmp_path / "nothing")
    fails(f"{tmp_path}/a.en,{tmp_path}/a.fr", tmp_path / "a.en")
    fails("a,b,c", "3 files")
    fails(tmp_path, tmp_path, "no files")
    write(tmp_path / "a.png", "x")
    fails(tmp_path, "no readable file", ".tsv")
    fails(tmp_path / "a.png", "a.png", "data.format")
    write(tmp_path / "a.tsv", "a\tb")
    fails(tmp_path, "gettext", format="gettext")
    fails(tmp_path / "a.tsv", "two files", format="lines")
    fails(f"{tmp_path}/a.tsv,{tmp_path}/a.png", "tsv", format="tsv")
    write(tmp_path / "a.en", "1\n2\n")
    fails(tmp_path, "a.en", "a.fr")
    write(tmp_path / "a.fr", "1\n2\n3")
    fails(tmp_path, "a.en has 2 lines", "a.fr has 3")
    fails(write(tmp_path / "b.tsv", "source\tcible\na\tb\n"), "b.tsv", "'target'", "'cible'")
    fails(write(tmp_path / "c.tsv", "en\tfrench\na\tb\n"), "'fr'", source_column="en", target_column="fr")
    fails(write(tmp_path / "d.tsv", ""), "d.tsv", "empty")
    fails(write(tmp_path / "e.tsv", "a\tb".encode("utf-16")), "e.tsv", "UTF-16")
    fails(write(tmp_path / "f.json", '[{"source": "a"}]'), "f.json", "JSON Lines")
    fails(write(tmp_path / "g.po", 'msgid "a"\nmsgstr "b"\n\nmsgid "c" nonsense "d"\nmsgstr "e"\n'), "g.po, line 4")
    fails(write(tmp_path / "h.po", 'msgid "a"\nmsgstr "b"\n\nmsgid "cut"\n'), "h.po, line 4", "msgstr")
    fails(write(tmp_path / "i.mo", b"\xde\x12\x04\x95\0\0"), "i.mo", "msgfmt")
    fails(write(tmp_path / "j.mo", b"nonsense"), "j.mo")
    fails(
        write(tmp_path / "k.po", b'"Content-Type: text/plain; charset=hex\\n"\nmsgid "a\xff"\n'), "k.po", "charset hex"
    )


def test_what_cannot_be_opened_is_one_sentence_too(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tsv", "a\tb")

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(readers._LocalFiles, "open", staticmethod(refuse))
    fails(path, path, "Permission denied")


def test_split_of_is_fixed_and_blind_to_small_differences():
    assert readers.split_of("Save", "verbatim", 0.05, 0.05) == readers.split_of("  save… !", "verbatim", 0.05, 0.05)
    shares = [readers.split_of(f"text number {number}", "salt", 0.1, 0.2) for number in range(5000)]
    assert abs(shares.count("eval") / 5000 - 0.1) < 0.02 and abs(shares.count("test") / 5000 - 0.2) < 0.02
    # Written down, so that a change of the function cannot go unnoticed: it would leak test data into training.
    assert shares[:12] == ["train", "test", "test", *["train"] * 6, "test", "test", "train"]
    assert readers.split_of("Hello", "a", 0, 1) == "test" and readers.split_of("Hello", "a", 1, 0) == "eval"


def test_reason_kinds_are_few():
    reject = readers.reject_duplicate(readers.Pair("a", "b", "x.tsv", 9), "x.tsv", 2)
    assert reject == ("x.tsv", 9, "duplicate of x.tsv:2", "a\tb")
    assert readers.reason_kind(reject.reason) == "duplicate" and readers.reason_kind("fuzzy") == "fuzzy"


_LINES = st.lists(
    st.one_of(st.binary(max_size=12), st.text(max_size=8).map(lambda text: f"{text}\tx".encode("utf-8", "replace")))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(lines=_LINES, format_=st.sampled_from(["tsv", "jsonl", "lines"]))
def test_nothing_vanishes(tmp_path, lines, format_):
    lines = [line.replace(b"\n", b" ") for line in lines]
    content = b"".join(line + b"\n" for line in lines)
    paths = [str(write(tmp_path / name, content)) for name in ("x", "y")]
    count = 2 if format_ == "lines" else 1
    unit = readers.InputUnit(format_, ("x", "y")[:count], tuple(paths[:count]))
    try:
        records = list(readers.read_unit(unit, config()))
    except readers.DataError:  # a first line that reads "source" or "target" is a header with a column missing
        assert format_ == "tsv"
        return
    # Each line is one record, in order: kept and rejected together are what was read.
    header = format_ == "tsv" and lines and {b"source", b"target"} <= {cell.strip() for cell in lines[0].split(b"\t")}
    assert [record.line for record in records] == list(range(1, len(lines) + 1))[bool(header) :]
    for record in records:
        if isinstance(record, readers.Pair):
            assert record.source.strip() == record.source and record.source and record.target
            record.source.encode()
        else:
            assert record.reason
            assert readers.format_reject(record).count("\t") == 3 and "\n" not in readers.format_reject(record)
            readers.format_reject(record).encode()


_MESSAGES = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(entries=st.lists(st.tuples(_MESSAGES.filter(bool), _MESSAGES, st.booleans())))
def test_nothing_vanishes_from_a_catalogue(tmp_path, entries):
    catalogue = polib.POFile()
    for msgid, msgstr, fuzzy in entries:
        catalogue.append(polib.POEntry(msgid=msgid, msgstr=msgstr, flags=["fuzzy"] if fuzzy else []))
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    path = write(tmp_path / "a.po", str(catalogue))
    unit = readers.InputUnit("gettext", ("a.po",), (str(path),))
    records = list(readers.read_unit(unit, config()))
    assert len(records) == len(entries)
    for record, (msgid, msgstr, _) in zip(records, entries, strict=True):
        if isinstance(record, readers.Pair):
            assert (record.source, record.target) == (msgid.strip(), msgstr.strip())


def test_csv_takes_quotes_line_ends_and_columns_without_a_header(tmp_path):
    content = (
        '"1","A ""quoted"" title","First, with\na line end"\r\n2,Plain,Second\n\n3,only two\n"4","x"y,z\n5,\xff,Fünf\n'
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
    assert read(with_header, columns)[0] == [readers.Pair("b", "a", "header.csv", 2)]
    assert read(with_header)[0] == [readers.Pair("b", "a", "header.csv", 2)]


def test_csv_with_an_open_quote_loses_no_record(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.csv", 'a,b\nc,"d\ne,f\n'))
    assert [pair.source for pair in pairs] == ["a"]
    assert rejects == [("a.csv", 2, "not valid CSV", 'c,"d\ne,f')]


def test_tsv_columns_without_a_header(tmp_path):
    path = write(tmp_path / "a.tsv", "Question?\tSELECT x\t1-2\n")
    named = config(columns=("source", "target", "table"))
    assert read(path, named)[0] == [readers.Pair("Question?", "SELECT x", "a.tsv", 1)]
    swapped = config(columns=("a", "b", "c"), source_column="c", target_column="a")
    assert read(path, swapped)[0] == [readers.Pair("1-2", "Question?", "a.tsv", 1)]


def test_lower_case_on_both_sides(tmp_path):
    (pair,), _ = read(write(tmp_path / "a.tsv", "Was ist ÄRGER?\tSELECT Ä\n"), config(lowercase=True))
    assert pair[:2] == ("was ist ärger?", "select ä")


TAGS = {"tokenization": "whitespace", "source_features": ("pos", "answer")}


@pytest.mark.parametrize("format_", ["tsv", "csv", "jsonl"])
def test_source_features_are_one_tag_a_token(tmp_path, format_):
    rows = [("a  b c", "x", "N  V N", "O B I"), ("a b", "x", "N V", "O"), ("a b", "y", "N", "O B"), ("d", "z", "", "")]
    names = ("source", "target", "pos", "answer")
    if format_ == "jsonl":
        content = "".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
    else:
        separator = "\t" if format_ == "tsv" else ","
        content = "".join(separator.join(row) + "\n" for row in (names, *rows))
    pairs, rejects = read(write(tmp_path / f"a.{format_}", content), config(**TAGS))
    assert [pair.features for pair in pairs] == [("N V N", "O B I")]
    assert [reject.reason for reject in rejects] == [
        "'answer' has not one tag for each token of the source",
        "'pos' has not one tag for each token of the source",
        "'answer' has not one tag for each token of the source",
    ]
    assert rejects[0].text == "a b\tx\tN V\tO"


def test_a_missing_column_of_tags_is_told_before_any_work(tmp_path):
    fails(write(tmp_path / "a.tsv", "source\ttarget\tpos\na\tb\tN\n"), "a.tsv", "'answer'", **TAGS)
    fails(write(tmp_path / "b.tsv", "a\tb\tN\tO\n"), "'source'", "data.columns", **TAGS)
    write(tmp_path / "c.en", "a\n")
    fails(write(tmp_path / "c.fr", "a\n"), "no columns", **TAGS)
    _, rejects = read(write(tmp_path / "d.jsonl", '{"source": "a", "target": "b", "pos": "N"}\n'), config(**TAGS))
    assert [reject.reason for reject in rejects] == ["missing column"]


def test_given_files_alone_are_read_and_decide_the_split(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("train1.tsv", "train2.tsv", "sub/dev.tsv", "other.tsv"):
        write(tmp_path / name, f"{name}\tx\n")
    write(tmp_path / "sub/a.src", "s\n")
    write(tmp_path / "sub/a.tgt", "t\n")
    given = config(train_files=("train*.tsv", "sub/a.src,sub/a.tgt"), test_files=("sub/dev.tsv",))
    plan = readers.plan_inputs(tmp_path, given)
    assert [(unit.format, unit.names, unit.split) for unit in plan.units] == [
        ("tsv", ("train1.tsv",), "train"),
        ("tsv", ("train2.tsv",), "train"),
        ("lines", ("sub/a.src", "sub/a.tgt"), "train"),
        ("tsv", ("sub/dev.tsv",), "test"),
    ]
    assert [pair.file for pair in readers.read_plan(plan, given)][-2:] == ["sub/a.src", "sub/dev.tsv"]
    assert readers.divided_shares(given) == (given.eval_share, 0.0)
    assert readers.divided_shares(config()) == (config().eval_share, config().test_share)


def test_given_files_may_be_pairs_of_patterns(tmp_path):
    for name in ("1.en", "2.en", "1.de", "2.de"):
        write(tmp_path / name, "x\n")
    plan = readers.plan_inputs(tmp_path, config(train_files=("*.en,*.de",)))
    assert [unit.names for unit in plan.units] == [("1.en", "1.de"), ("2.en", "2.de")]
    write(tmp_path / "3.en", "x\n")
    fails(tmp_path, "3 source and 2 target", train_files=("*.en,*.de",))


def test_given_files_that_cannot_be_are_told_before_any_work(tmp_path):
    write(tmp_path / "a.tsv", "a\tb\n")
    fails(tmp_path, "dev.tsv", "data.test_files", tmp_path, train_files=("a.tsv",), test_files=("dev.tsv",))
    fails(tmp_path, "b*.tsv", "data.train_files", train_files=("b*.tsv",))
    fails(tmp_path, "x/a.tsv", "data.train_files", train_files=("x/a.tsv",))
    fails(tmp_path, "data.train_files and in data.test_files", train_files=("a.tsv",), test_files=("*.tsv",))
    fails(tmp_path, "3 files", train_files=("a,b,c",))
    fails(tmp_path / "a.tsv", "not a folder", train_files=("a.tsv",))
    write(tmp_path / "b.src", "1\n2\n")
    write(tmp_path / "b.tgt", "1\n")
    fails(tmp_path, "b.src has 2 lines", train_files=("b.src,b.tgt",))


def test_why_a_training_pair_is_held_back():
    reject = readers.reject_held_back(readers.Pair("a", "b", "train.tsv", 9), "test", "dev.tsv", 2)
    assert reject == ("train.tsv", 9, "also in a given test file: dev.tsv:2", "a\tb")
    assert readers.reason_kind(reject.reason) == "also in a given test file"
