"""A file is there whole, or the one before it still is."""

import json
import os

import pytest

from pipeline.common import whole_files


def test_what_fails_leaves_the_file_before(tmp_path):
    path = tmp_path / "facts.json"
    whole_files.write_json(path, {"a": "é"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é"}
    with pytest.raises(KeyError), whole_files.whole_file(path) as file:
        file.write("half")
        raise KeyError
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é"}
    assert os.listdir(tmp_path) == ["facts.json"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_files.whole_file(tmp_path / "link", "wb", durable=True) as file:
        file.write(b"after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "after"


def test_a_device_is_written_in_place():
    whole_files.write_text("/dev/null", "x")
    assert not os.path.exists("/dev/null.partial")


def test_an_address_is_not_a_path_of_this_machine():
    assert whole_files.is_remote("gs://bucket/file") and not whole_files.is_remote("/a/b")


def test_a_file_at_an_address_is_whole_too():
    import tensorflow as tf

    path = "ram://whole_files/facts.json"
    whole_files.write_text(path, "before")
    with pytest.raises(KeyError), whole_files.whole_file(path) as file:
        file.write("half")
        raise KeyError
    with tf.io.gfile.GFile(path) as file:
        assert file.read() == "before"
    assert tf.io.gfile.listdir("ram://whole_files") == ["facts.json"]
