"""A worker ends with the process that started it, and says at once why it cannot begin."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from pipeline.entry_points import worker_processes
from pipeline.training import meeting
from tests.pipeline.training.training_operator import ROOT, cluster_of, tf_config

_CHILD = """
import time
from pipeline.entry_points import worker_processes
worker_processes._end_with({parent})
print("watches", flush=True)
time.sleep(3600)
"""
_PARENT = f"""
import os, subprocess, sys
child = {_CHILD!r}.replace("{{parent}}", str(os.getpid()))
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
"""


def is_alive(number):
    try:
        state = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    # Nobody may be there to ask a process that has ended for its status.
    return state != "Z"


def test_a_worker_ends_with_a_run_that_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 60
    while is_alive(child):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("in_use", [True, False])
def test_a_worker_that_cannot_meet_the_others_says_so(tmp_path, monkeypatch, capsys, in_use):
    monkeypatch.setattr(meeting, "_PORT_SECONDS", 0.3)
    cluster = cluster_of(2)
    port = int(cluster["worker"][1].rpartition(":")[2])
    monkeypatch.setenv("TF_CONFIG", tf_config(cluster, 1))
    (tmp_path / worker_processes.ARGUMENTS_FILE).write_text("{}")
    with socket.create_server(("", port if in_use else 0)):
        assert worker_processes.work(str(tmp_path), 0.3) == 1
    sentence = (
        f"Port {port}, which TF_CONFIG gives worker 1, cannot be used (Address already in use)"
        if in_use
        else f"Worker 1 waited 0.3 seconds for worker 0 at {cluster['worker'][0]}: start"
    )
    assert f"Error: {sentence}" in capsys.readouterr().err
    error = json.loads((tmp_path / "worker_error.json").read_text())
    assert error["error"].startswith(sentence)
