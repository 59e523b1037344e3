"""A pipeline that is killed and run again does what it was killed in again, and nothing else;
one that finds the disk full, or loses its job server, says so.
"""

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys

import grpc
import pytest

from pipeline.runners import local_runner

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = pathlib.Path(__file__).with_name("killed_pipeline.py")


@pytest.mark.slow
def test_what_was_finished_is_not_done_again(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    runs = json.loads((tmp_path / "runs.json").read_text())
    assert [run["signal"] for run in runs] == [signal.SIGKILL, signal.SIGKILL, 0, 0]
    gen, vocabulary = "ParallelTextExampleGen", "Vocabulary"
    # By run: how often each has written, and whose last output counts.
    assert [len(run["made"][gen]) for run in runs] == [1, 2, 2, 2]
    assert [len(run["made"].get(vocabulary, ())) for run in runs] == [0, 1, 2, 2]
    assert [set(run["finished"]) for run in runs] == [
        set(),
        {gen},
        {gen, vocabulary},
        {gen, vocabulary},
    ]
    # What the killed executions left is nobody's output.
    last = runs[-1]
    assert last["finished"] == {gen: last["made"][gen][1], vocabulary: last["made"][vocabulary][1]}


def test_a_full_disk_is_one_sentence():
    error = RuntimeError(
        f"{OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'model.keras')} [while running 'Write']"
    )
    sentence = local_runner._failure_sentence("Trainer", error, "out/run.log")
    assert sentence.startswith(
        "Trainer failed because the disk is full: free some space and run the same command again"
    )
    assert sentence.endswith("The full log is out/run.log.")


@pytest.mark.parametrize("error", [grpc.RpcError("<_Rendezvous of RPC"), grpc.FutureTimeoutError()])
def test_a_job_server_that_is_gone_is_one_sentence(error):
    assert local_runner._failure_sentence("Lexicon", error, "out/run.log") == (
        "Lexicon failed because the job server of the engine has ended or cannot be reached: start "
        "it and run the same command again to resume this run. The full log is out/run.log."
    )


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (
            "tensorflow.python.framework.errors_impl.FailedPreconditionError: /x; Directory not "
            "empty",
            "TextTransform failed in a worker of the engine (FailedPreconditionError: /x; Directory"
            " not empty): run the same command again to resume this run.",
        ),
        (
            "pipeline.readers.DataError: a.tsv:3 has more than 63 tokens.",
            "TextTransform failed: a.tsv:3 has more than 63 tokens.",
        ),
    ],
)
def test_what_a_worker_of_an_engine_raised_is_one_sentence(raised, sentence):
    error = RuntimeError(
        "Pipeline BeamApp-1 failed in state FAILED: java.lang.RuntimeException: Error received from"
        " SDK harness for instruction 68: Traceback (most recent call last):\n"
        '  File "apache_beam/runners/common.py", line 1495, in process\n'
        f"    raise it\n{raised} [while running 'Write']\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "sdk_worker.py", line 311, in _execute\n'
        "RuntimeError: another\n"
    )
    assert local_runner._failure_sentence("TextTransform", error, "out/run.log") == (
        f"{sentence} The full log is out/run.log."
    )
