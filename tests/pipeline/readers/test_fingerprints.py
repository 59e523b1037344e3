"""Fingerprints of files: by content, name and order."""

import os

from pipeline.readers.fingerprints import fingerprint_of


def test_a_fingerprint_goes_by_content_names_and_order(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"abc")
    second.write_bytes(b"abd")
    files = [("a", str(first)), ("b", str(second))]
    before = fingerprint_of(files)
    os.utime(first, (1, 1))
    assert fingerprint_of(iter(files)) == before
    assert fingerprint_of(files[::-1]) != before
    assert fingerprint_of([("c", str(first)), files[1]]) != before
    assert fingerprint_of(files[:1]) != before
    first.write_bytes(b"abd")
    assert fingerprint_of(files) != before


def test_a_name_need_not_be_utf8(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"\xff.tsv")
    with open(path, "wb") as file:
        file.write(b"x")
    assert fingerprint_of([(r"\xff.tsv", os.fsdecode(path))])
