"""Programs in processes of their own, asked by lines of JSON.

They stay loaded, and only the one that is asked works. This module needs the standard library
alone, because peers' environments import it.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol, TypeAlias, TypeVar

ROOT = pathlib.Path(__file__).resolve().parents[2]


#: What a program answers to a task, as JSON has it.
Answer: TypeAlias = dict[str, Any]

_T = TypeVar("_T")


class ProgramError(RuntimeError):
    """A program failed, or ended."""


class Asked(Protocol):
    """What answers the tasks of a benchmark, such as a `Program`."""

    def ask(self, task: str, **arguments: Any) -> Answer:
        """Returns what the program answers."""


def environment(threads: int) -> dict[str, str]:
    """Returns the environment variables that limit every library to some threads of the CPU."""
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
        cores: the numbers of its cores; None for the first ones.
        variables: further environment variables; a value of None removes one.
    """

    def __init__(
        self,
        python: str | pathlib.Path,
        module: str,
        threads: int,
        log: str | pathlib.Path,
        package: str = __package__,
        cores: Sequence[int] | None = None,
        variables: Mapping[str, str | None] | None = None,
    ) -> None:
        self._log_path = pathlib.Path(log)
        self._log = self._log_path.open("a", encoding="utf-8")
        own_cores = cores or first_cores(threads)
        merged: dict[str, str | None] = {**environment(threads), **(variables or {})}
        self._process = subprocess.Popen(
            [str(python), "-m", f"{package}.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={name: value for name, value in merged.items() if value is not None},
            # A library that ignores the variables above still has no more cores.
            preexec_fn=lambda: os.sched_setaffinity(0, own_cores),
        )

    def ask(self, task: str, **arguments: Any) -> Answer:
        """Returns what the program answers.

        Raises:
            ProgramError: it failed, or ended.
        """
        questions, answers = self._pipes()
        # Where it ended, no line comes.
        with contextlib.suppress(OSError):
            questions.write(json.dumps({"task": task, "arguments": arguments}) + "\n")
            questions.flush()
        line = answers.readline()
        answer: Answer = (
            json.loads(line) if line else {"error": f"it ended with status {self._process.wait()}"}
        )
        if "error" in answer:
            raise ProgramError(f"{answer['error']} (see {self._log_path})")
        return answer

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions and answers, "Both are pipes."
        return questions, answers

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *exception: object) -> None:
        questions, answers = self._pipes()
        questions.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        answers.close()
        self._log.close()


class Copies:
    """Several processes of one program, one core each, that decode the batches of a text together.

    Use it as a `Program`.

    Args:
        threads: how many copies there are.
        python, module, log: those of `Program`; each copy has a log of its own, `log` with its
            number.
    """

    def __init__(
        self, python: str | pathlib.Path, module: str, threads: int, log: str | pathlib.Path
    ) -> None:
        log = pathlib.Path(log)
        logs = [log.with_suffix(f".{number}{log.suffix}") for number in range(threads)]
        self._programs = [
            Program(python, module, 1, path, cores=[core])
            for core, path in zip(first_cores(threads), logs)
        ]

    def ask(self, task: str, **arguments: Any) -> Answer:
        """Asks the first copy to `make`, all to `load`, and each to `decode` every Nth batch.

        Returns:
            The first copy's answer; for `decode` the seconds until the last one ended, and the
            copies' processor time, memory and outputs together.
        """
        if task == "make":
            return self._programs[0].ask(task, **arguments)
        asked = [arguments] * len(self._programs)
        if task == "decode":
            shares = share_batches(arguments["texts"], arguments["batch"], len(self._programs))
            # With fewer batches than copies, the last ones have nothing to do.
            asked = [{**arguments, "texts": share} for share in shares if share]
        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
            answers = list(
                pool.map(lambda program, own: program.ask(task, **own), self._programs, asked)
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

    def __enter__(self) -> "Copies":
        return self

    def __exit__(self, *exception: object) -> None:
        for program in self._programs:
            program.__exit__(*exception)


def first_cores(number: int) -> list[int]:
    """Returns the numbers of the first cores that this process may use."""
    return sorted(os.sched_getaffinity(0))[:number]


def share_batches(texts: Sequence[_T], size: int, number: int) -> list[list[_T]]:
    """Returns a list of texts for each of `number` programs: every Nth batch of a size."""
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [[text for batch in batches[first::number] for text in batch] for first in range(number)]


def join_batches(shares: Sequence[Sequence[_T]], size: int) -> list[_T]:
    """Returns one list of what `share_batches` divided."""
    batches = [
        [share[start : start + size] for start in range(0, len(share), size)] for share in shares
    ]
    most = max(len(share) for share in batches)
    return [
        one for turn in range(most) for share in batches if turn < len(share) for one in share[turn]
    ]


def serve(tasks: Mapping[str, Callable[..., Answer]]) -> None:
    """Answers lines of standard input until it ends; what libraries print goes to standard error.

    Args:
        tasks: dict from a task's name to the function of its arguments.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {**tasks[request["task"]](**request["arguments"]), "peak_bytes": peak_bytes()}
        # BaseException: a library may call sys.exit.
        except BaseException as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Timer:
    """Measures a `with` statement.

    Attributes:
        facts: its `seconds`, and the `cpu_seconds` that this process' threads worked, waiting in
            loops included. The latter mean something even where other programs use the cores.
    """

    def __enter__(self) -> "Timer":
        self._started, self._worked = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.facts = {
            "seconds": time.perf_counter() - self._started,
            "cpu_seconds": time.process_time() - self._worked,
        }


def peak_bytes() -> int:
    """Returns the most memory that this process ever had resident."""
    return memory_of("self", "VmHWM")


def memory_of(process: int | str, line: str) -> int:
    """Returns the bytes on a line of a process' status, such as `VmRSS`; 0 where it has none."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    match = re.search(rf"{line}:\s+(\d+)", status)
    return int(match[1]) * 1024 if match else 0


def cpu_seconds_of(process: int | str) -> float:
    """Returns how long the threads of a process have worked, in the program and in the system."""
    # The second field is the command in parentheses, which may hold spaces.
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
