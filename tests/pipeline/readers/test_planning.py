"""Planning: which files are read, and what is said of those that cannot be."""

import glob

import pytest

from pipeline.readers.files import LocalFiles
from pipeline.readers.formats import read_plan
from pipeline.readers.planning import find_inputs, plan_inputs, readable_patterns
from pipeline.readers.splits import divided_shares
from tests.pipeline.readers.data_files import TAGS, config, fails, read, write


def test_a_folder_tells_what_it_ignores(tmp_path):
    write(tmp_path / "b.tsv", "a\tb\n")
    write(tmp_path / "a.txt", "a\tb\n")
    write(tmp_path / "notes.txt", "no tabs here\n")
    write(tmp_path / "image.png", b"\x89PNG")
    write(tmp_path / ".hidden", "x")
    (tmp_path / "folder").mkdir()
    plan = plan_inputs(tmp_path, config())
    assert [unit.names for unit in plan.units] == [("a.txt",), ("b.tsv",)]
    assert plan.ignored_files == ("image.png", "notes.txt")
    plan = plan_inputs(tmp_path / "notes.txt", config(format="tsv"))
    assert [unit.format for unit in plan.units] == ["tsv"]


def test_a_given_format_takes_only_its_own_files(tmp_path):
    write(tmp_path / "a.tsv", "a\tb\n")
    write(tmp_path / "b.jsonl", '{"source": "a", "target": "b"}\n')
    plan = plan_inputs(tmp_path, config(format="jsonl"))
    assert [unit.names for unit in plan.units] == [("b.jsonl",)] and plan.ignored_files == (
        "a.tsv",
    )


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
    fails(
        write(tmp_path / "c.tsv", "en\tfrench\na\tb\n"),
        "'fr'",
        source_column="en",
        target_column="fr",
    )
    fails(write(tmp_path / "d.tsv", ""), "d.tsv", "empty")
    fails(write(tmp_path / "e.tsv", "a\tb".encode("utf-16")), "e.tsv", "UTF-16")
    fails(write(tmp_path / "e.tsv", "abc\tb\nabc\tb\n".encode("utf-16-le")), "e.tsv is UTF-16")
    write(tmp_path / "l.en", "1\n2\n")
    # Its number of line feeds would be another's.
    write(tmp_path / "l.fr", "\u010a\n2\n".encode("utf-16"))
    fails(tmp_path / "l.en", "l.fr is UTF-16:")
    fails(write(tmp_path / "f.json", '[{"source": "a"}]'), "f.json", "JSON Lines")
    fails(write(tmp_path / "g.po", '\nmsgid "c" nonsense "d"\nmsgstr "e"\n'), "g.po, line 2")
    fails(write(tmp_path / "h.po", 'msgid "cut"\n'), "h.po, line 1", "msgstr")
    fails(write(tmp_path / "h.po", ""), "h.po", "empty")
    fails(write(tmp_path / "i.mo", b"\xde\x12\x04\x95\0\0"), "i.mo", "msgfmt")
    fails(write(tmp_path / "j.mo", b"nonsense"), "j.mo")
    fails(
        write(tmp_path / "k.po", b'"Content-Type: text/plain; charset=hex\\n"\nmsgid "a\xff"\n'),
        "k.po",
        "charset hex",
    )


def test_what_cannot_be_opened_is_one_sentence_too(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tsv", "a\tb")

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(LocalFiles, "open", staticmethod(refuse))
    fails(path, path, "Permission denied")


def test_a_missing_column_of_tags_is_told_before_any_work(tmp_path):
    fails(write(tmp_path / "a.tsv", "source\ttarget\tpos\na\tb\tN\n"), "a.tsv", "'answer'", **TAGS)
    fails(write(tmp_path / "b.tsv", "a\tb\tN\tO\n"), "'source'", "data.columns", **TAGS)
    write(tmp_path / "c.en", "a\n")
    fails(write(tmp_path / "c.fr", "a\n"), "no columns", **TAGS)
    _, rejects = read(
        write(tmp_path / "d.jsonl", '{"source": "a", "target": "b", "pos": "N"}\n'), config(**TAGS)
    )
    assert [reject.reason for reject in rejects] == ["missing column"]


def test_given_files_alone_are_read_and_decide_the_split(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("train1.tsv", "train2.tsv", "sub/dev.tsv", "other.tsv"):
        write(tmp_path / name, f"{name}\tx\n")
    write(tmp_path / "sub/a.src", "s\n")
    write(tmp_path / "sub/a.tgt", "t\n")
    given = config(train_files=("train*.tsv", "sub/a.src,sub/a.tgt"), test_files=("sub/dev.tsv",))
    plan = plan_inputs(tmp_path, given)
    assert [(unit.format, unit.names, unit.split) for unit in plan.units] == [
        ("tsv", ("train1.tsv",), "train"),
        ("tsv", ("train2.tsv",), "train"),
        ("lines", ("sub/a.src", "sub/a.tgt"), "train"),
        ("tsv", ("sub/dev.tsv",), "test"),
    ]
    assert [pair.file for pair in read_plan(plan, given)][-2:] == ["sub/a.src", "sub/dev.tsv"]
    assert divided_shares(given) == (given.eval_share, 0.0)
    assert divided_shares(config()) == (config().eval_share, config().test_share)


def test_given_files_may_be_pairs_of_patterns(tmp_path):
    for name in ("1.en", "2.en", "1.de", "2.de"):
        write(tmp_path / name, "x\n")
    plan = plan_inputs(tmp_path, config(train_files=("*.en,*.de",)))
    assert [unit.names for unit in plan.units] == [("1.en", "1.de"), ("2.en", "2.de")]
    write(tmp_path / "3.en", "x\n")
    fails(tmp_path, "3 source and 2 target", train_files=("*.en,*.de",))


def test_given_files_that_cannot_be_are_told_before_any_work(tmp_path):
    write(tmp_path / "a.tsv", "a\tb\n")
    fails(
        tmp_path,
        "dev.tsv",
        "data.test_files",
        tmp_path,
        train_files=("a.tsv",),
        test_files=("dev.tsv",),
    )
    fails(tmp_path, "b*.tsv", "data.train_files", train_files=("b*.tsv",))
    fails(tmp_path, "x/a.tsv", "data.train_files", train_files=("x/a.tsv",))
    fails(
        tmp_path,
        "data.train_files and in data.test_files",
        train_files=("a.tsv",),
        test_files=("*.tsv",),
    )
    fails(tmp_path, "3 files", train_files=("a,b,c",))
    fails(tmp_path / "a.tsv", "not a folder", train_files=("a.tsv",))
    write(tmp_path / "b.src", "1\n2\n")
    write(tmp_path / "b.tgt", "1\n")
    fails(tmp_path, "b.src has 2 lines", train_files=("b.src,b.tgt",))


@pytest.mark.parametrize("format_", ["auto", "tsv", "lines", "gettext"])
def test_patterns_match_what_a_folder_plan_reads(tmp_path, format_):
    """Kubeflow's driver knows files by patterns; it must miss none that is read."""
    for name in ("a.TSV", "b.csv", "c.txt", "d.po", "e.en", "e.fr", "f.jsonl", "g.md", ".h.tsv"):
        (tmp_path / name).write_text("source\ttarget\n")
    (tmp_path / "d.po").write_text('msgid "a"\nmsgstr "b"\n')
    settings = config(format=format_)
    planned = {path for unit in find_inputs(tmp_path, settings).units for path in unit.paths}
    matched = {
        path
        for pattern in readable_patterns(settings)
        for path in glob.glob(f"{glob.escape(str(tmp_path))}/{pattern}")
    }
    assert matched == planned


def test_each_training_file_has_a_corpus_and_each_corpus_a_file(tmp_path):
    for name in ("news.tsv", "crawl.tsv", "dev.tsv"):
        write(tmp_path / name, "a\tb\n")
    given = {"train_files": ("news.tsv", "crawl.tsv"), "eval_files": ("dev.tsv",)}
    plan = plan_inputs(tmp_path, config(**given, corpora=("news*", "*")))
    assert len(plan.units) == 3
    fails(tmp_path, "news.tsv matches no pattern", "data.corpora", **given, corpora=("crawl*",))
    fails(tmp_path, "'dev*'", "names no training file", **given, corpora=("news*", "*", "dev*"))
    fails(tmp_path, "'news*'", "the first pattern", **given, corpora=("*", "news*"))
    # Without given files, all are training files.
    fails(tmp_path, "dev.tsv matches no pattern", corpora=("news*", "crawl*"))


def test_aligned_files_belong_to_the_corpus_of_the_source(tmp_path):
    for name in ("news.en", "news.fr", "web.en", "web.fr"):
        write(tmp_path / name, "a\n")
    assert len(plan_inputs(tmp_path, config(corpora=("news.en", "web*"))).units) == 2
    fails(tmp_path, "'news.fr'", "names no training file", corpora=("news.fr", "*"))
