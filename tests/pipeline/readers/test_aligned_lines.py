"""Two line-aligned files, however they are named."""

from pipeline.readers.formats import read_plan
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair
from tests.pipeline.readers.data_files import config, read, write


def test_aligned_files_by_comma_by_folder_and_by_one_of_them(tmp_path):
    source = write(tmp_path / "train.en", "Hello\r\n\nNo\tyes\n")
    target = write(tmp_path / "train.fr", "Bonjour\nx\nNon")
    expected = [Pair("Hello", "Bonjour", "train.en", 1), Pair("No\tyes", "Non", "train.en", 3)]
    for path in (f"{source},{target}", f"{source}, {target}", tmp_path, source, target):
        pairs, rejects = read(path)
        assert pairs == expected
        assert rejects == [("train.en", 2, "empty source", "\tx")]


def test_aligned_files_in_two_folders(tmp_path):
    for folder, text in (("en", "Hello"), ("fr", "Bonjour")):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a.txt", text)
    plan = plan_inputs(f"{tmp_path}/en/a.txt,{tmp_path}/fr/a.txt", config())
    assert plan.base_directory == str(tmp_path)
    assert plan.units[0].names == ("en/a.txt", "fr/a.txt")
    assert list(read_plan(plan, config())) == [Pair("Hello", "Bonjour", "en/a.txt", 1)]


def test_aligned_files_that_shrink_after_planning_lose_no_record(tmp_path):
    source, target = (
        write(tmp_path / "a.en", "1\n2\n3\n"),
        write(tmp_path / "a.fr", "un\ndeux\ntrois\n"),
    )
    plan = plan_inputs(tmp_path, config())
    target.write_text("un\n")
    assert [type(record).__name__ for record in read_plan(plan, config())] == [
        "Pair",
        "Reject",
        "Reject",
    ]
    source.write_text("")
    assert [record.reason for record in read_plan(plan, config())] == ["no partner line"]
