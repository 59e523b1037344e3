"""A run by several machines that one command starts, as Kubeflow's training operator does.

`TF_CONFIG` says which worker a machine is. Worker 0 runs the pipeline, and its Trainers train with
the others. Those follow: they read in the run's folder, which all share, what worker 0 does, and
take part in each training until the run ends.

Worker 0 writes `STATE_FILE` every few seconds. A follower takes any change of it for a sign of
life, and so needs no clock that agrees with worker 0's. What stands there when a follower begins
may be from an earlier run, and counts for nothing until it changes.
"""

import contextlib
import dataclasses
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from pipeline.common import progress
from pipeline.common.whole_files import whole_file
from pipeline.entry_points import worker_processes
from pipeline.recipes.recipe import Recipe
from pipeline.tasks import task_of
from pipeline.training import meeting
from pipeline.training.tf_config import DataParallelError, WorkerPlace

STATE_FILE = "cluster_run.json"
_SECONDS_BETWEEN_SIGNS = 2.0
_PAUSE_SECONDS = 0.5
# Time for a follower's worker to end after worker 0 has written the model.
_LAST_SECONDS = 60.0
_RUNNING, _FINISHED, _FAILED = "running", "finished", "failed"


@dataclasses.dataclass(frozen=True)
class RunState:
    """What worker 0 tells of its run.

    Attributes:
        run: differs from run to run.
        status: `running`, `finished` or `failed`.
        signs: how many signs of life there were.
        trainings: how many trainings have begun.
        checkpoints: the folder of the checkpoints of the training that is on; "" without one.
    """

    run: str
    status: str = _RUNNING
    signs: int = 0
    trainings: int = 0
    checkpoints: str = ""


def place_of(recipe: Recipe) -> WorkerPlace | None:
    """Returns which worker of a recipe's run this machine is; None if it runs alone.

    Raises:
        DataParallelError: TF_CONFIG cannot be used, or not for this recipe.
    """
    place = worker_processes.place_of(recipe)
    if place and not task_of(recipe).several_workers:
        raise DataParallelError("A language model is trained by one process: unset TF_CONFIG.")
    return place


@contextlib.contextmanager
def leading(folder: str, seconds: float = meeting.PATIENCE) -> Iterator[None]:
    """Tells the followers in a run's folder what this process, worker 0, does in the block.

    Args:
        folder: the run's folder, which all workers share.
        seconds: how long a training waits for the other workers.
    """
    leader = _Leader(folder, seconds)
    worker_processes.LEADERS.append(leader)
    thread = threading.Thread(target=leader.give_signs, daemon=True)
    leader.tell()
    thread.start()
    status = _FAILED
    try:
        yield
        status = _FINISHED
    finally:
        worker_processes.LEADERS.remove(leader)
        leader.over.set()
        thread.join()
        # A full disk, say: what ended the block is the error to tell.
        with contextlib.suppress(OSError):
            leader.tell(status=status)


class _Leader:
    """Worker 0, as its followers see it."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.seconds, self.over = seconds, threading.Event()
        self._folder, self._state = folder, RunState(uuid.uuid4().hex)
        self._lock = threading.Lock()

    def tell(self, **changes: Any) -> None:
        with self._lock:
            signs = self._state.signs + 1
            self._state = dataclasses.replace(self._state, signs=signs, **changes)
            with whole_file(os.path.join(self._folder, STATE_FILE)) as file:
                json.dump(dataclasses.asdict(self._state), file)

    def give_signs(self) -> None:
        while not self.over.wait(_SECONDS_BETWEEN_SIGNS):
            # The next one may succeed.
            with contextlib.suppress(OSError):
                self.tell()

    def training(self, checkpoints: str) -> None:
        """Tells that a training begins, or, with "", that it has ended."""
        self.tell(
            checkpoints=checkpoints, trainings=self._state.trainings + (1 if checkpoints else 0)
        )


def read_state(folder: str) -> RunState | None:
    """Returns what worker 0 wrote last into a run's folder; None if there is nothing to read."""
    try:
        with open(os.path.join(folder, STATE_FILE), encoding="utf-8") as file:
            return RunState(**json.load(file))
    # A network's file system may show a file that is being replaced as absent or empty.
    except (OSError, ValueError, TypeError):
        return None


def follow(folder: str, place: WorkerPlace, seconds: float = meeting.PATIENCE) -> None:
    """Takes part in all trainings of the run that worker 0 does, and returns when it has finished.

    Args:
        folder: the run's folder, which all workers share.
        place: which worker this machine is.
        seconds: how long to wait for a sign of worker 0.

    Raises:
        DataParallelError: worker 0 gives no sign, has failed, or a training has; one sentence.
    """
    progress.say(f"Worker {place.number} of {place.workers}: follows worker 0 in {folder}.")
    signs = _Signs(folder, seconds)
    joined: tuple[str, int] | None = None
    while True:
        state = signs.next()
        if state.status == _FINISHED:
            return
        if state.status == _FAILED:
            raise DataParallelError(
                "Worker 0 ended with an error, which its output shows: start all workers again, "
                "and they resume from the last checkpoint."
            )
        if state.checkpoints and (state.run, state.trainings) != joined:
            joined = (state.run, state.trainings)
            _join(state, signs, seconds)


class _Signs:
    """The signs of life of worker 0."""

    def __init__(self, folder: str, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds
        # The last state, and when it was first seen.
        self._last, self._since = read_state(folder), time.monotonic()
        self._alive = False

    def next(self) -> RunState:
        """Returns the state of a run that is alive, or has been, after a short pause.

        Raises:
            DataParallelError: there was no sign for too long.
        """
        while True:
            time.sleep(_PAUSE_SECONDS)
            state = read_state(self._folder)
            if state and state != self._last:
                self._last, self._since, self._alive = state, time.monotonic(), True
            if time.monotonic() - self._since > self._seconds:
                raise DataParallelError(
                    f"Worker 0 wrote nothing to {self._folder} for {self._seconds:g} seconds: "
                    "start it with the same command, and let all workers share this folder."
                )
            if self._alive and self._last:
                return self._last


def _join(begun: RunState, signs: _Signs, seconds: float) -> None:
    """Trains in a training that worker 0 has begun, until it has ended."""
    with worker_processes.one_worker(begun.checkpoints, seconds) as process:
        ended = None
        while (status := process.poll()) is None:
            state = signs.next()
            if state.run != begun.run or state.status == _FAILED:
                # Worker 0 has begun again, or has failed: this worker waits for nobody.
                return
            if state.trainings == begun.trainings and state.checkpoints:
                continue
            ended = ended or time.monotonic()
            if time.monotonic() - ended > _LAST_SECONDS:
                return
    if status:
        raise DataParallelError(
            "This machine's worker ended with the error above: start all workers again, and they "
            "resume from the last checkpoint."
        )
