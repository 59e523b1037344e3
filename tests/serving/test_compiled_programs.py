"""What XLA compiled in one process is read in the next, and no file can do harm."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import compiled_programs
from serving.compiled_programs import CompiledProgramsError

ROOT = pathlib.Path(__file__).parents[2]
# TensorFlow reads the setting once, so each process is a new one.
PROGRAM = """
import json, sys
from serving import compiled_programs
folder = compiled_programs.keep(sys.argv[1])
import tensorflow as tf

@tf.function(jit_compile=True)
def step(x):
    return tf.nn.softmax(tf.linalg.matmul(x, x)) * 3.0

x = tf.reshape(tf.range(16.0), (4, 4)) / 16.0
print(json.dumps({"sum": float(tf.reduce_sum(step(x)[:, 0])), "folder": str(folder)}))
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No process of these tests reads the user's own programs, or changes the environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv(compiled_programs.VARIABLE, raising=False)
    monkeypatch.setenv("TF_XLA_FLAGS", "")


def in_a_process(folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def program_of(*lengths):
    """A file with the three fields of TensorFlow's message, of so many bytes."""
    content = b""
    for tag, length in zip((b"\x0a", b"\x12", b"\x1a"), lengths):
        low = bytes([length & 0x7F | 0x80]) + bytes([length >> 7])
        content += tag + low + bytes(length)
    return content


def test_a_program_is_compiled_once_and_a_damaged_one_again(tmp_path, monkeypatch):
    root = tmp_path / "programs"
    first = in_a_process(root)
    (program,) = pathlib.Path(first["folder"]).iterdir()
    content, written = program.read_bytes(), program.stat().st_mtime_ns
    assert in_a_process(root) == first
    assert program.stat().st_mtime_ns == written
    for damaged in (content[:-1], content[: len(content) // 2], b"", bytes(2000)):
        program.write_bytes(damaged)
        monkeypatch.setenv("TF_XLA_FLAGS", "")
        compiled_programs.keep(root)
        assert not program.exists()
    program.write_bytes(content[:-1])
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    assert in_a_process(root) == first
    assert program.stat().st_size == len(content)


def test_the_folder_is_among_the_users_caches_and_its_users_alone(tmp_path, monkeypatch):
    own = compiled_programs.keep()
    assert own.parent == tmp_path / "caches" / "verbatim" / "compiled_programs"
    assert own.stat().st_mode & 0o777 == own.parent.stat().st_mode & 0o777 == 0o700
    assert f"='{own}' " in os.environ["TF_XLA_FLAGS"]
    # A second call, and a user's own setting, change nothing.
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory=/elsewhere")
    assert compiled_programs.keep() is None
    assert os.environ["TF_XLA_FLAGS"] == "--tf_xla_persistent_cache_directory=/elsewhere"


def test_nothing_is_kept_for_a_user_without_a_home(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert compiled_programs.keep() is None and os.environ["TF_XLA_FLAGS"] == ""


def test_other_settings_of_the_user_stay(monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_clustering_debug")
    assert compiled_programs.keep()
    assert os.environ["TF_XLA_FLAGS"].startswith("--tf_xla_clustering_debug --tf_xla_persistent")


def test_it_can_be_turned_off_and_moved(tmp_path, monkeypatch):
    monkeypatch.setenv(compiled_programs.VARIABLE, "off")
    assert compiled_programs.keep() is None and os.environ["TF_XLA_FLAGS"] == ""
    monkeypatch.setenv(compiled_programs.VARIABLE, str(tmp_path / "named"))
    assert compiled_programs.keep().parent == tmp_path / "named"


@pytest.mark.parametrize("name", ["TF_NUM_INTRAOP_THREADS", "XLA_FLAGS"])
def test_what_changes_a_program_has_a_folder_of_its_own(name, monkeypatch):
    first = compiled_programs.keep()
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    monkeypatch.setenv(name, "7")
    assert compiled_programs.keep() != first


def others_may_write(root):
    root.mkdir()
    root.chmod(0o777)
    return root


def others_may_replace(root):
    parent = others_may_write(root)
    (parent / "own").mkdir(mode=0o700)
    return parent / "own"


def of_another_kind_of_owner(root):
    """The folder was made private after someone else had made one in it."""
    own = compiled_programs.keep(root)
    os.environ["TF_XLA_FLAGS"] = ""
    own.chmod(0o777)
    return root


def a_file(root):
    root.write_text("")
    return root


def with_a_quote(root):
    return root / "user's"


@pytest.mark.parametrize(
    "make,why",
    [
        (others_may_write, "other users may write to it"),
        (others_may_replace, "other users may write to it, or replace it"),
        (of_another_kind_of_owner, "other users may write to [0-9a-f]{16} in it"),
        (a_file, "File exists"),
        (with_a_quote, "no path with a single quote"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_if_it_was_named(tmp_path, monkeypatch, make, why):
    root = make(tmp_path / "root")
    with pytest.raises(CompiledProgramsError, match=why):
        compiled_programs.keep(root)
    # The user of a command did not ask for it.
    monkeypatch.setattr(compiled_programs, "_of_user", lambda: root)
    assert compiled_programs.keep() is None and os.environ["TF_XLA_FLAGS"] == ""


def test_a_folder_of_another_owner_is_refused(tmp_path, monkeypatch):
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(CompiledProgramsError, match="other users may write to it"):
        compiled_programs.keep(tmp_path / "programs")


def test_white_space_is_part_of_a_path(tmp_path):
    facts = in_a_process(tmp_path / "of all")
    assert list(pathlib.Path(facts["folder"]).iterdir())


def test_a_file_of_flags_is_left_alone(monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "/etc/flags")
    assert compiled_programs.keep() is None and os.environ["TF_XLA_FLAGS"] == "/etc/flags"


def test_nothing_is_kept_where_the_disk_is_nearly_full(monkeypatch):
    monkeypatch.setattr(compiled_programs, "_LEAST_FREE_BYTES", 1 << 60)
    assert compiled_programs.keep() is None


def test_the_oldest_programs_are_removed_and_all_else_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_programs, "MOST_BYTES", 700)
    root = tmp_path / "programs"
    root.mkdir(mode=0o700)
    # Of several kinds of process, what a process left that was killed, and files of the user.
    paths = [
        root / folder / name
        for folder, name in (
            ("a" * 16, "xla_compile_cache__1.pb"),
            ("b" * 16, "xla_compile_cache__2.pb"),
            ("a" * 16, "xla_compile_cache__3.pb.tmp"),
            ("b" * 16, "xla_compile_cache__4.pb"),
            ("a" * 16, "thesis.pb"),
            ("Documents", "xla_compile_cache__5.pb"),
        )
    ]
    for index, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(program_of(80, 80, 80))
        os.utime(path, (index, index))
    (root / ("a" * 16) / "xla_compile_cache__6.pb").mkdir()
    compiled_programs.keep(root)
    assert [path.exists() for path in paths] == [False, False, True, True, True, True]


lengths = st.tuples(*[st.integers(0, 300)] * 3)


@given(lengths, st.data())
def test_no_file_that_was_cut_off_or_goes_on_is_whole(tmp_path_factory, found, data):
    path = tmp_path_factory.mktemp("whole") / "made.pb"
    content = program_of(*found)
    path.write_bytes(content)
    assert compiled_programs._is_whole(path)
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert not compiled_programs._is_whole(path)
    path.write_bytes(content + data.draw(st.binary(min_size=1, max_size=20)))
    assert not compiled_programs._is_whole(path)


@given(st.binary(max_size=60))
def test_only_whole_programs_stay(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "xla_compile_cache__1.pb"
    path.write_bytes(content)
    whole = compiled_programs._is_whole(path)
    compiled_programs._remove_damaged(path.parent)
    assert path.exists() == whole
