"""Programs in processes of their own, asked by lines of JSON; they stay loaded, and only the one that is asked works.

Standard library alone, because peers' environments import it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ProgramError(RuntimeError):
    """What a program could not do."""


def environment(threads):
    """Returns the environment variables that hold every library to so many threads, and to the CPU."""
    number = str(threads)
    counts = (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    )
    return {
        **os.environ,
        **dict.fromkeys(counts, number),
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONPATH": str(ROOT),
    }


class Program:
    """A module that benchmarks have in a process of its own; use it in a `with` statement.

    Args:
        python: the interpreter, that of the environment it needs.
        module: name of the module, which calls `serve`.
        threads: how many threads it may use, on as many cores.
        log: path of the file that gets what it prints.
        package: the module's package.
        variables: dict of further environment variables; a value of None takes one away.
    """

    def __init__(self, python, module, threads, log, package=__package__, variables=None):
        self._log_path = pathlib.Path(log)
        self._log = self._log_path.open("a", encoding="utf-8")
        cores = sorted(os.sched_getaffinity(0))[:threads]
        given = {**environment(threads), **(variables or {})}
        self._process = subprocess.Popen(
            [str(python), "-m", f"{package}.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={name: value for name, value in given.items() if value is not None},
            # Whatever a library thinks of the variables above, it has no more cores.
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def ask(self, task, **arguments):
        """Returns what the program answers, a dict.

        Raises:
            ProgramError: it failed, or ended.
        """
        try:
            self._process.stdin.write(json.dumps({"task": task, "arguments": arguments}) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it ended: no line comes
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"it ended with status {self._process.wait()}"}
        if "error" in answer:
            raise ProgramError(f"{answer['error']} (see {self._log_path})")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


def serve(tasks):
    """Answers lines of standard input until it ends; what libraries print goes to standard error.

    Args:
        tasks: dict from a task's name to the function of its arguments, which returns a dict.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {**tasks[request["task"]](**request["arguments"]), "peak_bytes": peak_bytes()}
        except BaseException as error:  # a library's sys.exit too
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Timer:
    """What passes in a `with` statement: its seconds, and those that this process' threads worked, waiting in loops included.

    The latter say something even where other programs take their share of the cores.
    """

    def __enter__(self):
        self._started, self._worked = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception):
        self.facts = {"seconds": time.perf_counter() - self._started, "cpu_seconds": time.process_time() - self._worked}


def peak_bytes():
    """Returns the most memory that this process ever had resident."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024
