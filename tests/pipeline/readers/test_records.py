"""Records: what a pair must be, and what a reject says."""

import json

import pytest

from pipeline.readers.records import Pair, reason_kind, reject_duplicate, reject_held_back
from tests.pipeline.readers.data_files import TAGS, config, read, write


def test_a_long_reject_is_shortened(tmp_path):
    _, (reject,) = read(write(tmp_path / "a.tsv", "x" * 5000), config())
    assert len(reject.text) < 1100 and "5000 characters" in reject.text


def test_identical_pairs_stay_unless_asked(tmp_path):
    path = write(tmp_path / "a.tsv", "same\tsame\n")
    assert len(read(path)[0]) == 1


def test_lower_case_on_both_sides(tmp_path):
    (pair,), _ = read(
        write(tmp_path / "a.tsv", "Was ist ÄRGER?\tSELECT Ä\n"), config(lowercase=True)
    )
    assert pair[:2] == ("was ist ärger?", "select ä")


@pytest.mark.parametrize("format_", ["tsv", "csv", "jsonl"])
def test_source_features_are_one_tag_a_token(tmp_path, format_):
    rows = [
        ("a  b c", "x", "N  V N", "O B I"),
        ("a b", "x", "N V", "O"),
        ("a b", "y", "N", "O B"),
        ("d", "z", "", ""),
    ]
    names = ("source", "target", "pos", "answer")
    if format_ == "jsonl":
        content = "".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
    else:
        separator = "\t" if format_ == "tsv" else ","
        content = "".join(separator.join(row) + "\n" for row in (names, *rows))
    pairs, rejects = read(write(tmp_path / f"a.{format_}", content), config(**TAGS))
    assert [pair.features for pair in pairs] == [("N V N", "O B I")]
    assert [reject.reason for reject in rejects] == [
        "'answer' does not have one tag per token of the source",
        "'pos' does not have one tag per token of the source",
        "'answer' does not have one tag per token of the source",
    ]
    assert rejects[0].text == "a b\tx\tN V\tO"


def test_reason_kinds_are_few():
    reject = reject_duplicate(Pair("a", "b", "x.tsv", 9), "x.tsv", 2)
    assert reject == ("x.tsv", 9, "duplicate of x.tsv:2", "a\tb")
    assert reason_kind(reject.reason) == "duplicate" and reason_kind("fuzzy") == "fuzzy"


def test_why_a_training_pair_is_held_back():
    reject = reject_held_back(Pair("a", "b", "train.tsv", 9), "test", "dev.tsv", 2)
    assert reject == ("train.tsv", 9, "also in a given test file: dev.tsv:2", "a\tb")
    assert reason_kind(reject.reason) == "also in a given test file"
