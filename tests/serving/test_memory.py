"""Memory is given back, and nothing is lost with it."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from serving import memory

SMAPS = pathlib.Path("/proc/self/smaps")


def resident_library():
    """The resident kilobytes of TensorFlow's libraries that are as they are on the disk."""
    total, counts = 0, False
    for line in SMAPS.read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counts = "libtensorflow_" in line and "w" not in line.split()[1]
        elif counts and line.startswith("Rss:"):
            rss = int(line.split()[1])
        elif counts and line.startswith("Anonymous:") and line.split()[1] == "0":
            total += rss
    return total


@pytest.mark.skipif(not SMAPS.is_file(), reason="only Linux tells what is resident")
def test_libraries_are_let_go_and_work_on():
    values = tf.constant(np.arange(12.0).reshape(3, 4))
    before, product = resident_library(), tf.matmul(values, values, transpose_b=True).numpy()
    assert before > 50_000
    memory.give_back()
    assert resident_library() < before / 2
    np.testing.assert_array_equal(tf.matmul(values, values, transpose_b=True).numpy(), product)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.matmul(values, values)


def test_a_system_without_the_functions_is_left_alone(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda *_, **__: object())
    memory.give_back()


def test_a_system_without_proc_is_left_alone(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(memory.pathlib.Path, "read_text", missing)
    memory.give_back()
