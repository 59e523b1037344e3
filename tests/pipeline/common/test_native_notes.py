"""Notes of C++ libraries do not reach a user; everything else does, whatever happens."""

import os
import pathlib
import signal
import subprocess
import sys

from pipeline.common import native_notes

ROOT = pathlib.Path(__file__).parents[3]
NOTES = b"""\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
E0000 00:00:1764110400.123456    1234 cuda_fft.cc:477] Unable to register cuFFT factory: Attempting
E0000 00:00:1764110400.123456    1234 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting
2026-11-25 22:40:29.2: E xla/cuda_blas.cc:1442] Unable to register cuBLAS factory: Attempting
I0000 00:00:1764110400.123456    1234 cpu_feature_guard.cc:227] This TensorFlow binary is optimized
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow
2026-11-25 22:40:29.275355: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow
[libprotobuf ERROR text_format.cc:337] Error parsing text-format tensorflow.XlaSerializedCacheEntry
E0000 00:00:1764110400.1 4 aot.cc:2] Loading XLA:CPU AOT result. Target machine feature +prefer-256
trainer_interface.cc(428) LOG(INFO) Loaded all 10 sentences
normalizer.cc(51) LOG(INFO) precompiled_charsmap is empty. use identity normalization.
"""
MATTERS = b"""\
F0000 00:00:1764110400.123456    1234 tensor.cc:1] Check failed: a == b
E0000 00:00:1764110400.123456    1234 cuda_platform.cc:52] failed call to cuInit
E0000 00:00:1764110400.1 4 aot.cc:2] Loading XLA:CPU AOT result. Target machine feature +avx512f
trainer_interface.cc(428) LOG(ERROR) no sentences
terminate called after throwing an instance of 'std::bad_alloc'
"""


def run(block, after=""):
    """Runs code in a process of its own whose notes are left out; returns the process."""
    code = (
        f"import os, subprocess, sys, time\nfrom pipeline.common import native_notes\n"
        f"NOTES, MATTERS = {NOTES!r}, {MATTERS!r}\n"
        f"with native_notes.left_out():\n    {block}\n{after}"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60)


def test_only_notes_are_left_out():
    done = run("os.write(2, NOTES + MATTERS)", "os.write(2, b'end')")
    assert done.returncode == 0 and done.stdout == b""
    assert done.stderr == MATTERS + b"end"


def test_what_python_writes_comes_as_it_is():
    done = run("print('I0000 00:00: of Python', file=sys.stderr); print('out')")
    assert done.stderr == b"I0000 00:00: of Python\n" and done.stdout == b"out\n"


def test_a_question_without_a_line_end_is_passed_on_at_once():
    done = run("os.write(2, b'Password: '); time.sleep(0.5); print('slept', file=sys.stderr)")
    assert done.stderr == b"Password: slept\n"


def test_the_last_words_of_a_crash_are_passed_on():
    done = run("os.write(2, NOTES + MATTERS + b'no line end'); os.abort()")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == MATTERS + b"no line end"


def test_a_process_that_goes_on_alone_is_not_waited_for():
    """Nobody waits for it, and yet what it writes is passed on."""
    program = "import os, time; time.sleep(3); os.write(2, b'I0000 00:00: note\\nlater\\n')"
    done = run(f"subprocess.Popen([sys.executable, '-c', {program!r}])", "print('ended')")
    assert done.stdout == b"ended\n" and done.stderr == b"later\n"


def test_where_standard_error_is_somebody_elses_nothing_happens(capfd):
    with native_notes.left_out():
        os.write(2, NOTES)
    assert capfd.readouterr().err == NOTES.decode()
