"""A run's folder: names that TFX would take for patterns, and two runs at once."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from pipeline.runners import local_runner, run_folder
from pipeline.runners.run_error import RunError

HOLD = """
import pathlib, sys, time
from pipeline.runners import run_folder
with run_folder.locked(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", ["runs [1]", "a?b", "a*b", "a\\b", "below*/run"])
def test_a_name_with_wildcards_is_refused(tmp_path, name):
    with pytest.raises(RunError, match="wildcard: give another --output"):
        run_folder.checked_path(tmp_path / name)


def test_an_address_is_refused_before_work_begins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="gs://bucket/run is an address, but a run on this machine"):
        run_folder.checked_path("gs://bucket/run")
    assert not list(tmp_path.iterdir())


def test_the_folder_above_counts_too(tmp_path, monkeypatch):
    (tmp_path / "[1]").mkdir()
    monkeypatch.chdir(tmp_path / "[1]")
    with pytest.raises(RunError, match="wildcard"):
        run_folder.checked_path("run")


def test_other_names_are_taken(tmp_path):
    for name in ("runs (1)", "a{b}", "été 日本", "a,b", "50% #1;'\"", "a\nb", "x]"):
        assert run_folder.checked_path(tmp_path / name) == tmp_path / name
    with pytest.raises(RunError, match="UTF-8"):
        run_folder.checked_path(os.fsdecode(b"/\xff"))


def test_a_second_run_in_a_folder_is_refused_in_one_sentence(tmp_path, recipe_and_data):
    recipe, data = recipe_and_data
    with run_folder.locked(tmp_path / "run"):
        with pytest.raises(RunError, match=rf"Another run \(process {os.getpid()}\) is using"):
            local_runner.run(recipe, data, tmp_path / "run")
        # Another folder is another run.
        with run_folder.locked(tmp_path / "other"):
            pass
    with run_folder.locked(tmp_path / "run"):
        pass
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [run_folder.LOCK_FILE]


def test_a_killed_run_leaves_its_folder_free(tmp_path):
    root = pathlib.Path(run_folder.__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, cwd=root
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(RunError, match=f"process {process.pid}"):
            with run_folder.locked(tmp_path):
                pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with run_folder.locked(tmp_path):
            pass


@pytest.fixture
def recipe_and_data(tmp_path):
    from pipeline.recipes import loading

    (tmp_path / "pairs.tsv").write_text("one\tun\ntwo\tdeux\n")
    return loading.load_recipe("localization_en_fr", ["data.format=tsv"]), str(
        tmp_path / "pairs.tsv"
    )
