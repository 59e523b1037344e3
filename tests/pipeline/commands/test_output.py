"""What commands write: JSON without infinite numbers, and files that are whole."""

import json
import math
import os

import pytest

from pipeline.commands import output
from pipeline.commands.command_error import CommandError


def test_json_holds_no_infinite_numbers(tmp_path):
    output.write_json(
        str(tmp_path / "x.json"), {"a": [math.inf, math.nan, 1.5], "b": {"c": -math.inf}}
    )
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "a": [None, None, 1.5],
        "b": {"c": None},
    }
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_file_is_written_whole_and_a_device_in_place(tmp_path, monkeypatch):
    path = tmp_path / "facts.json"
    path.write_text("before")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        with pytest.raises(CommandError, match="No space left"):
            output.write_text(str(path), "after")
    assert path.read_text() == "before" and [file.name for file in tmp_path.iterdir()] == [
        "facts.json"
    ]
    output.write_text("/dev/null", "x")
    assert not os.path.exists("/dev/null.partial")
