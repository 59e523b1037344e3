"""The measurements on an accelerator: their report, failures, and equal ways of decoding."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.accelerator import measure
from benchmarks.peers import processes
from benchmarks.peers.lengths import WrongLength


class Scripted:
    """A program that answers every request of a task with the same facts."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def ask(self, task, **arguments):
        self.asked.append((task, arguments))
        answer = self.answers[task]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def report(tmp_path):
    facts = {"processor": "some", "cores": 2, "memory_gb": 1.0, "system": "any", "load": 0.0}
    return measure.Report(tmp_path, 60, facts)


def written(report):
    facts = json.loads((report.output / "accelerator.json").read_text(encoding="utf-8"))
    return facts, (report.output / "accelerator.md").read_text(encoding="utf-8")


def test_a_part_that_fails_is_reported_and_the_rest_goes_on(report):
    def fails():
        raise processes.ProgramError("no memory")

    report.attempt("first", fails)
    report.attempt("second", lambda: report.found["training"].append({"network": "any"} | MEASURED))

    facts, text = written(report)
    assert facts["left_out"] == ["first: no memory"] and len(facts["training"]) == 1
    assert "- first: no memory" in text and "| any | float32 | 2,000 |" in text


def test_what_does_not_fit_into_the_time_is_named(report):
    report.ends = 0
    report.attempt("late", lambda: pytest.fail("it must not begin"))
    assert written(report)[0]["left_out"] == ["late: the time was over"]


MEASURED = {"dtype": "float32", "rate": 2000.0, "parameters": 10, "operations": 3e12}


def test_training_stands_beside_what_the_device_allows(report):
    report.found["rates"] = {"float32": 6e12, "bfloat16": 12e12, "bytes": 1e12}
    for dtype in ("float32", "mixed_bfloat16"):
        program = Scripted(train_pairs=dict(MEASURED))
        measure.measure_training(report, program, "rnn", dtype, "train_pairs", batch=2)
        assert program.asked == [("train_pairs", {"dtype": dtype, "batch": 2})]
    report.write()
    assert [one["share"] for one in written(report)[0]["training"]] == [0.5, 0.25]


def test_decoding_is_compared_with_the_peer_and_with_itself_uncompiled(report):
    job = measure.SMALL.jobs[1]
    report.found["rates"] = {"float32": 6e12, "bfloat16": 12e12, "bytes": 1e6}
    answers = {"ours": 0.01, "hugging_face": 0.05}
    programs = {
        name: Scripted(decode={"seconds": seconds, "lengths": [job.length] * 2})
        for name, seconds in answers.items()
    }
    names = ["ours", "ours, bfloat16", "ours, eager", "hugging_face"]

    report.attempt("decoding", lambda: measure.measure_decoding(report, programs, job, names, 2, 1))

    facts, text = written(report)
    figures = facts["decoding"][0]["figures"]
    assert (
        figures["ours"]["hugging_face"]["median"] == 5 and figures["ours"]["eager"]["median"] == 1
    )
    assert figures["ours"]["tokens"] == pytest.approx(2 * job.length / 0.01)
    # Half the bytes in as much time.
    assert figures["ours"]["share"] == pytest.approx(2 * figures["ours, bfloat16"]["share"])
    assert "| transformer | 2 | ours | 10.0 (10.0 to 10.0) |" in text


def test_outputs_of_another_length_are_no_measurement(report):
    job = measure.SMALL.jobs[0]
    programs = {"ours": Scripted(decode={"seconds": 1.0, "lengths": [job.length, job.length + 1]})}
    with pytest.raises(WrongLength):
        measure.measure_decoding(report, programs, job, ["ours"], 2, 1)


_BOTH_WAYS = """
from benchmarks.accelerator import measure, ours
import numpy as np
job = measure.SMALL.jobs[0]
ours.load("any", job.to_json(), "float32")
_, _, search = ours._loaded["any"]
inputs = ours.pairs(job, 2, 4, 1)
compiled, eager = (search[how](inputs) for how in ("compiled", "eager"))
np.testing.assert_array_equal(compiled.tokens, eager.tokens)
np.testing.assert_allclose(compiled.scores, eager.scores, rtol=1e-5)
assert ours.decode("any", "compiled", 2, 4, 1)["lengths"] == [job.length] * 2
"""


@pytest.mark.slow
def test_compiled_and_uncompiled_decoding_find_the_same():
    # Each operation is compiled and runs a few times.
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    environment = {**os.environ, "KERAS_BACKEND": "jax", "XLA_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, "-c", _BOTH_WAYS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_programs_compute_with_jax_on_all_cores(monkeypatch, tmp_path):
    started = {}

    class Fake:
        def __init__(self, python, module, threads, log, package="", cores=None, variables=None):
            started[module] = (package, cores, variables["KERAS_BACKEND"])

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

    monkeypatch.setattr(processes, "Program", Fake)
    measure.main(["--output", str(tmp_path), "--small", "--minutes", "0"])
    assert started == {
        name: ("benchmarks.accelerator", None, "jax") for name in ("ours", "hugging_face")
    }
