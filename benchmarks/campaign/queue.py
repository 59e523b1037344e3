"""Works off the jobs of a campaign: some at a time, each on cores of its own."""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO

from benchmarks.campaign import collecting
from benchmarks.campaign.jobs import MEASURED, Job, State
from benchmarks.campaign.plan import Table
from benchmarks.records import provenance

# Of those libraries that would otherwise start a thread for each core of the machine.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
_SECONDS_BETWEEN_LOOKS = 0.5
# Linux' number of the call.
_PR_SET_PDEATHSIG = 1
# What a run that is told to end may take for it.
_PATIENCE = 30.0


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much of the machine a campaign takes.

    Attributes:
        at_a_time: runs at once.
        cores: which cores it uses.
        cores_each: how many of them a run has.
        nice: by how much its runs give way to other work.
    """

    at_a_time: int
    cores: tuple[int, ...]
    cores_each: int = 1
    nice: int = 10

    def cores_of(self, slot: int) -> tuple[int, ...]:
        """Returns the cores of the run in a slot, 0 to `at_a_time - 1`."""
        places = range(slot * self.cores_each, (slot + 1) * self.cores_each)
        return tuple(sorted({self.cores[place % len(self.cores)] for place in places}))


@dataclasses.dataclass
class _Running:
    """A job, its process, and the file that takes what it says."""

    job: Job
    slot: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]


class Queue:
    """The jobs that are still to be done.

    Args:
        jobs: of a campaign, in their order; those that are done are left out.
        limits: how much of the machine may be used.
        say: takes a line for people.
        known: all jobs of the campaign, some of which may be done already: a row is tested against
            another one, whether or not that is to be run.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        limits: Limits,
        say: Callable[[str], None],
        known: Sequence[Job] = (),
    ) -> None:
        self._all = list(known or jobs)
        self._waiting = [job for job in jobs if job.read_status().state != "done"]
        self._running: list[_Running] = []
        self._limits = limits
        self._say = say
        self._commit = provenance.commit()
        self.failed: list[Job] = []

    def work(self) -> None:
        """Runs every job that is not done; those that fail are said, and stop no other."""
        for table in {job.table.name: job.table for job in self._all if job.row}.values():
            self._update_results(table)
        try:
            while self._waiting or self._running:
                self._start_what_can()
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                for running in [one for one in self._running if one.process.poll() is not None]:
                    self._running.remove(running)
                    self._end(running)
        finally:
            self._stop_all()

    def _start_what_can(self) -> None:
        for job in list(self._waiting):
            free = set(range(self._limits.at_a_time)) - {one.slot for one in self._running}
            if not free:
                return
            if self._may_start(job):
                self._waiting.remove(job)
                self._start(job, min(free))

    def _may_start(self, job: Job) -> bool:
        """Whether no running job is in its way: by its folder, or because one must be alone."""
        others = [running.job for running in self._running]
        if others and (job.table.alone or any(other.table.alone for other in others)):
            return False
        earlier = [one for one in self._waiting[: self._waiting.index(job)]]
        return job.folder not in {other.folder for other in (*others, *earlier)}

    def _start(self, job: Job, slot: int) -> None:
        cores = self._limits.cores if job.table.alone else self._limits.cores_of(slot)
        before = job.read_status()
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        log = job.log.open("ab")
        environment = {**os.environ, **{name: str(len(cores)) for name in _THREADS}}
        nice = 0 if job.table.alone else self._limits.nice
        process = subprocess.Popen(
            job.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            # A signal reaches it, and what it starts, only by us.
            start_new_session=True,
            preexec_fn=lambda: _in_child(cores, nice),
        )
        machine = provenance.machine(len(cores))
        job.write_status(
            dataclasses.replace(
                before,
                state="running",
                pid=process.pid,
                started=time.time(),
                attempts=before.attempts + 1,
                message="",
                commit=self._commit,
                machine=dataclasses.asdict(machine),
            )
        )
        resumed = " again" if before.attempts else ""
        self._say(f"{job.name}: started{resumed}, {len(self._waiting)} more are waiting")
        self._running.append(_Running(job, slot, process, log))

    def _end(self, running: _Running) -> None:
        running.log.close()
        job, status = running.job, running.job.read_status()
        seconds = time.time() - status.started + status.seconds
        message = ""
        if running.process.returncode not in MEASURED:
            message = _reason(running.process.returncode, job.log)
        else:
            try:
                if job.row:
                    collecting.keep(job)
                else:
                    collecting.keep_measured(job)
            except collecting.NoResult as error:
                message = str(error)
        state: State = "failed" if message else "done"
        job.write_status(
            dataclasses.replace(status, state=state, pid=0, seconds=seconds, message=message)
        )
        if message:
            self.failed.append(job)
            self._say(f"{job.name}: FAILED: {message} See {job.log}.")
            return
        self._say(f"{job.name}: done in {seconds / 60:.1f} minutes")
        if job.row:
            self._update_results(job.table, job)

    def _update_results(self, table: Table, finished: Job | None = None) -> None:
        for sentence in collecting.update_results(self._all, table, finished):
            self._say(sentence)

    def _stop_all(self) -> None:
        """Ends what still runs, because the campaign itself is told to end."""
        for running in self._running:
            _signal(running.process, signal.SIGTERM)
        for running in self._running:
            try:
                running.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                _signal(running.process, signal.SIGKILL)
                running.process.wait()
            running.log.close()


def _in_child(cores: tuple[int, ...], nice: int) -> None:
    """Keeps a new process to its cores; it ends when the campaign does, however that ends."""
    os.sched_setaffinity(0, cores)
    os.nice(nice)
    # Linux may weigh sessions against each other, and a process only within its session, which is
    # its own here: then the session has to give way.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write(str(nice))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _reason(status: int, log: pathlib.Path) -> str:
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    last = last_line(log)
    return f"It ended with {ended}: {last}" if last else f"It ended with {ended}."


def last_line(path: pathlib.Path) -> str:
    """Returns the last line of a log that says something; "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8192))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    return lines[-1] if lines else ""
