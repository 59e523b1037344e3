"""Memory is given back, and nothing is lost with it."""

import json
import pathlib
import subprocess
import sys

import pytest

from serving import memory

# What other tests have given back is not resident, so the process is a new one.
PROGRAM = """
import json, re
import serving.lean_tensorflow
import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from serving import memory

def resident_library():
    total, counts = 0, False
    for line in open("/proc/self/smaps"):
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            file = line.split(maxsplit=5)[-1]
            is_library = re.search("/tensorflow(_text)?/", file) and ".so" in file
            counts = is_library and "w" not in line.split()[1]
        elif counts and line.startswith("Rss:"):
            rss = int(line.split()[1])
        elif counts and line.startswith("Anonymous:") and line.split()[1] == "0":
            total += rss
    return total

values = tf.constant(np.arange(12.0).reshape(3, 4))

def results():
    normalized = tf_text.normalize_utf8(["e\\u0301 \\uff21"], "NFKC").numpy()[0].decode()
    return [float(tf.linalg.det(values[:, :3] + 1)), normalized]

facts = {"first": results(), "before": resident_library()}
memory.give_back()
facts["after"], facts["second"] = resident_library(), results()
try:
    tf.matmul(values, values)
except tf.errors.InvalidArgumentError:
    facts["refused"] = True
print(json.dumps(facts))
"""


@pytest.mark.skipif(
    not pathlib.Path("/proc/self/smaps").is_file(), reason="only Linux tells what is resident"
)
def test_libraries_are_let_go_and_work_on():
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    facts = json.loads(finished.stdout)
    assert facts["before"] > 50_000 and facts["after"] < facts["before"] / 4
    assert facts["first"] == facts["second"] and facts["first"][1] == "\u00e9 A"
    assert facts["refused"]


def test_a_system_without_the_functions_is_left_alone(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda *_, **__: object())
    memory.give_back()


def test_a_system_without_proc_is_left_alone(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(memory.pathlib.Path, "read_text", missing)
    memory.give_back()


def test_only_libraries_that_stay_loaded_are_let_go(monkeypatch):
    packages = "/home/me/tensorflow/lib/site-packages"
    files = (
        f"{packages}/tensorflow/libtensorflow_cc.so.2",
        f"{packages}/tensorflow_text/python/ops/_normalize_ops.so",
        f"{packages}/tensorflow/python/_pywrap.so",
        "/opt/libtensorflow_framework.so.2",
        f"{packages}/numpy/core.so",
        f"{packages}/tensorflow/data.bin",
        "",
    )
    smaps = "".join(
        f"{number}000-{number}800 r-xp 00000000 08:01 7 {file}\nRss: 4 kB\nAnonymous: 0 kB\n"
        for number, file in enumerate(files, start=1)
    )
    monkeypatch.setattr(memory.pathlib.Path, "read_text", lambda *_, **__: smaps)
    assert [start >> 12 for start, _ in memory._unchanged_parts()] == [1, 2, 3, 4]
