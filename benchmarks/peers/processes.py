"""Programs in processes of their own, asked by lines of JSON;
they stay loaded, and only the one that is asked works.

Standard library alone, because peers' environments import it.
"""

import concurrent.futures
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
        cores: the numbers of its cores; None is the first that there are.
        variables: dict of further environment variables; a value of None takes one away.
    """

    def __init__(
        self, python, module, threads, log, package=__package__, cores=None, variables=None
    ):
        self._log_path = pathlib.Path(log)
        self._log = self._log_path.open("a", encoding="utf-8")
        cores = cores or first_cores(threads)
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
        answer = (
            json.loads(line) if line else {"error": f"it ended with status {self._process.wait()}"}
        )
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


class Copies:
    """As many processes of one program as threads, a core each, that decode a text's batches side
    by side.

    It is asked as a `Program` is.

    Args:
        threads: how many copies there are.
        python, module, log: those of `Program`; each copy has a log of its own, `log` with its
            number.
    """

    def __init__(self, python, module, threads, log):
        log = pathlib.Path(log)
        logs = [log.with_suffix(f".{number}{log.suffix}") for number in range(threads)]
        self._programs = [
            Program(python, module, 1, path, cores=[core])
            for core, path in zip(first_cores(threads), logs)
        ]

    def ask(self, task, **arguments):
        """Asks `make` of the first copy, `load` of all, and of each to `decode` every nth batch.

        Returns:
            The first copy's answer; of `decode` the seconds until the last has ended, and the
            copies' processor time, memory and outputs together.
        """
        if task == "make":
            return self._programs[0].ask(task, **arguments)
        asked = [arguments] * len(self._programs)
        if task == "decode":
            shares = share_batches(arguments["texts"], arguments["batch"], len(self._programs))
            asked = [{**arguments, "texts": share} for share in shares]
        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
            answers = list(
                pool.map(lambda program, given: program.ask(task, **given), self._programs, asked)
            )
        if task != "decode":
            return answers[0]
        size = arguments["batch"]
        return {
            "seconds": time.perf_counter() - started,
            **{
                name: sum(answer[name] for answer in answers)
                for name in ("cpu_seconds", "peak_bytes")
            },
            **{
                name: join_batches([answer[name] for answer in answers], size)
                for name in ("outputs", "lengths")
            },
        }

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for program in self._programs:
            program.__exit__(*exception)


def first_cores(number):
    """Returns the numbers of the first cores that this process may use."""
    return sorted(os.sched_getaffinity(0))[:number]


def share_batches(texts, size, number):
    """Returns a list of texts for each of so many programs: every nth batch of a size."""
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [[text for batch in batches[first::number] for text in batch] for first in range(number)]


def join_batches(shares, size):
    """Returns one list of what `share_batches` shared out."""
    batches = [
        [share[start : start + size] for start in range(0, len(share), size)] for share in shares
    ]
    most = max(len(share) for share in batches)
    return [
        one for turn in range(most) for share in batches if turn < len(share) for one in share[turn]
    ]


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
    """What passes in a `with` statement:
    its seconds, and those that this process' threads worked, waiting in loops included.

    The latter say something even where other programs take their share of the cores.
    """

    def __enter__(self):
        self._started, self._worked = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception):
        self.facts = {
            "seconds": time.perf_counter() - self._started,
            "cpu_seconds": time.process_time() - self._worked,
        }


def peak_bytes():
    """Returns the most memory that this process ever had resident."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024
