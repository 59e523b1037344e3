"""The processes of a training by several workers.

They are started here, or elsewhere by the program that sets TF_CONFIG.

    python -m pipeline.entry_points.worker_processes FOLDER

is one worker. TF_CONFIG says which, as TensorFlow documents; FOLDER is the one of the Trainer's
checkpoints, where the Trainer writes what is to be trained (`ARGUMENTS_FILE`); a worker that starts
first waits for it. `cluster_run` starts it on machines that follow a run.
"""

import argparse
import contextlib
import dataclasses
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.common import progress
from pipeline.common.whole_files import whole_file
from pipeline.recipes.recipe import Recipe
from pipeline.training import meeting
from pipeline.training.tf_config import DataParallelError, WorkerPlace, addresses_of, tasks_of
from pipeline.training.trainer_arguments import TrainerArguments
from serving import processors

if TYPE_CHECKING:
    from pipeline.training.workers import Workers

ARGUMENTS_FILE = "worker_arguments.json"
# Why a worker gave up.
_ERROR_FILE = "worker_error.json"
# Exit status of a worker that lost the other workers.
_LOST_OTHERS = 3
# Time for workers to notice that one of them is lost.
_LAST_WORDS_SECONDS = 20.0
_SECONDS_BETWEEN_LOOKS = 1.0


class Leader(Protocol):
    """What tells other machines of this machine's trainings.

    Attributes:
        seconds: how long a training waits for the other workers.
    """

    seconds: float

    def training(self, checkpoints: str) -> None:
        """Hears the folder of checkpoints of a training that begins, and "" at its end."""


#: The leader of the run that this process does, if there is one (`cluster_run`). A Trainer, which
#: TFX calls, has no other way to it.
LEADERS: list[Leader] = []


def are_needed(recipe: Recipe) -> bool:
    """Whether a recipe, or TF_CONFIG, asks for several workers.

    Raises:
        DataParallelError: TF_CONFIG cannot be used, or not for this recipe.
    """
    return recipe.training.workers > 1 or place_of(recipe) is not None


def place_of(recipe: Recipe) -> WorkerPlace | None:
    """Returns which worker of a recipe's training TF_CONFIG makes this machine; None if of none.

    Raises:
        DataParallelError: TF_CONFIG cannot be used, or not for this recipe.
    """
    place = tasks_of(os.environ.get("TF_CONFIG"))
    if place and recipe.training.deterministic:
        raise DataParallelError(
            f"TF_CONFIG names {place.workers} workers, and the order in which they add up "
            "gradients is not fixed: set training.deterministic = false, or unset TF_CONFIG."
        )
    return place


def train(recipe: Recipe, arguments: TrainerArguments, folder: str) -> None:
    """Trains with several workers and waits for them.

    The Trainer's own process, which has already used TensorFlow, is not one of them.

    With TF_CONFIG it starts the worker that TF_CONFIG names; else `training.workers` of them, on
    this machine.

    Args:
        recipe: a `Recipe`.
        arguments: what TFX hands to a Trainer.
        folder: of the checkpoints of all trainings.

    Raises:
        DataParallelError, ValueError: the training cannot continue; one sentence.
    """
    _write(folder, ARGUMENTS_FILE, dataclasses.asdict(arguments))
    _remove(folder, _ERROR_FILE)
    elsewhere = tasks_of(os.environ.get("TF_CONFIG"))
    if elsewhere:
        environments = [dict(os.environ)]
    else:
        environments = _on_this_machine(recipe.training.workers)
    of_all = f" of {elsewhere.workers}" if elsewhere else ""
    progress.say(f"{recipe.model.head}: {len(environments)}{of_all} workers on this machine.")
    leaders = LEADERS if elsewhere else []
    seconds = leaders[0].seconds if leaders else meeting.PATIENCE
    processes: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as started:
        for environment in environments:
            processes.append(started.enter_context(one_worker(folder, seconds, environment)))
        for leader in leaders:
            leader.training(folder)
            started.callback(leader.training, "")
        lost = _wait(processes)
    error = _read(folder, _ERROR_FILE)
    _remove(folder, _ERROR_FILE)
    if not lost:
        _remove(folder, ARGUMENTS_FILE)
        with contextlib.suppress(OSError):
            # If it is empty.
            os.rmdir(folder)
        return
    raise _lost_worker(*lost, len(processes), error)


@contextlib.contextmanager
def one_worker(
    folder: str, seconds: float, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts a worker, which is killed at the end of the block, or when this process ends.

    Args:
        folder: as for `train`.
        seconds: how long it waits for the other workers.
        environment: its environment variables; None for those of this process.
    """
    options = ["--patience", str(seconds), "--parent", str(os.getpid())]
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, folder, *options],
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()


def _lost_worker(number: int, status: int, count: int, error: Any) -> ValueError:
    """Returns the error for one of `count` workers that ended with a status other than 0.

    Args:
        number: which one, from 0.
        status: its status; below 0 for a signal.
        count: how many there are on this machine.
        error: what it wrote of its error, or None.
    """
    if status > 0 and error:
        return DataParallelError(error["error"])
    if status == _LOST_OTHERS:
        return DataParallelError(
            "A worker on another machine was lost, and the others cannot continue without it: "
            "start all of them again, and they resume from the last checkpoint."
        )
    how = f"ended with status {status}"
    if status < 0:
        how = f"was killed by {signal.Signals(-status).name}"
    return DataParallelError(
        f"Worker {number + 1} of {count} {how}, and the others cannot continue without it: run the "
        "same command again, and it resumes from the last checkpoint (a worker that is killed by "
        "SIGKILL usually ran out of memory; lower training.workers)."
    )


def _on_this_machine(count: int) -> list[dict[str, str]]:
    """Returns the environments of `count` workers on this machine."""
    with contextlib.ExitStack() as held:
        listeners = [
            held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    threads = str(max(1, processors.cores() // count))
    environments = []
    for index in range(count):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        threading = {"TF_NUM_INTRAOP_THREADS": threads, "OMP_NUM_THREADS": threads}
        environments.append({**os.environ, **threading, "TF_CONFIG": json.dumps(config)})
    return environments


def _wait(processes: Sequence["subprocess.Popen[bytes]"]) -> tuple[int, int] | None:
    """Waits for processes; returns number and status of one that failed, or None.

    One that was ended by a signal comes first.
    """
    failed = None
    while True:
        statuses = [process.poll() for process in processes]
        if all(status == 0 for status in statuses):
            return None
        bad = [(number, status) for number, status in enumerate(statuses) if status]
        if bad and failed is None:
            failed = time.monotonic()
        over = failed is not None and time.monotonic() - failed > _LAST_WORDS_SECONDS
        if bad and (over or None not in statuses or min(status for _, status in bad) < 0):
            return min(bad, key=lambda pair: pair[1])
        time.sleep(0.2)


def work(folder: str, patience: float = meeting.PATIENCE) -> int:
    """Trains as one worker, and returns the status to exit with.

    Args:
        folder: as for `train`.
        patience: seconds to wait for the other workers, once there is something to train.
    """
    try:
        config = os.environ.get("TF_CONFIG", "")
        place = tasks_of(config)
        if place is None:
            raise DataParallelError(
                "TF_CONFIG names no cluster of two workers or more; set it as TensorFlow documents."
            )
        _wait_for_arguments(folder, place)
        # The others wait for no import.
        from pipeline.training.workers import Workers

        meeting.meet(addresses_of(config), place.number, patience)
        _train_as(Workers(place), folder)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        _write(folder, _ERROR_FILE, {"error": str(error)})
        return 1
    # Which of TensorFlow's errors it is depends on where the loss is noticed.
    except Exception as error:
        import tensorflow as tf

        if not isinstance(error, tf.errors.OpError):
            raise
        print(
            f"Error: the other workers are lost ({type(error).__name__}).",
            file=sys.stderr,
            flush=True,
        )
        # An operation that has begun cannot be ended cleanly: TensorFlow would wait for the others.
        sys.stdout.flush()
        os._exit(_LOST_OTHERS)
    return 0


def _wait_for_arguments(folder: str, place: WorkerPlace) -> None:
    """Waits until there is something to train: what the Trainer does before may take hours."""
    if _read(folder, ARGUMENTS_FILE) is None:
        progress.say(
            f"worker {place.number + 1} of {place.workers}: waits for the Trainer to write "
            f"{folder}/{ARGUMENTS_FILE}."
        )
    while _read(folder, ARGUMENTS_FILE) is None:
        time.sleep(1)


def _train_as(workers: "Workers", folder: str) -> None:
    from pipeline.entry_points.train_and_save import train_and_save

    # Read when all are there: what stood there before may be of an attempt that was killed.
    arguments = _read(folder, ARGUMENTS_FILE)
    if arguments is None:
        raise DataParallelError(
            f"{folder}/{ARGUMENTS_FILE} is gone: let all workers share the folder of checkpoints."
        )
    train_and_save(TrainerArguments(**arguments), folder, workers)
    # No worker ends before the chief has written the model: one that ended would count as lost.
    workers.wait()


def _end_with(parent: int) -> None:
    """Ends this process when the one that started it has ended, however that was.

    A run that is killed and started again would else find its own worker at its port.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _write(folder: str, name: str, content: Any) -> None:
    import tensorflow as tf

    tf.io.gfile.makedirs(folder)
    with whole_file(os.path.join(folder, name)) as file:
        json.dump(content, file)


def _read(folder: str, name: str) -> Any:
    """Returns the content of a JSON file; None if there is no such file."""
    import tensorflow as tf

    path = os.path.join(folder, name)
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path) as file:
        return json.load(file)


def _remove(folder: str, name: str) -> None:
    import tensorflow as tf

    path = os.path.join(folder, name)
    if tf.io.gfile.exists(path):
        tf.io.gfile.remove(path)


def main() -> int:
    """Runs the program; returns the status to exit with."""
    parser = argparse.ArgumentParser(description="One worker of a training; TF_CONFIG says which.")
    parser.add_argument("folder", help="folder of the Trainer's checkpoints")
    parser.add_argument(
        "--patience",
        type=float,
        default=meeting.PATIENCE,
        metavar="SECONDS",
        help=f"how long to wait for the other workers ({meeting.PATIENCE:g})",
    )
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parent is not None:
        _end_with(options.parent)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("  %(message)s"))
    progress.LOGGER.addHandler(handler)
    progress.LOGGER.setLevel(logging.INFO)
    # Sentences are printed once, whatever other handlers TensorFlow installs.
    progress.LOGGER.propagate = False
    return work(options.folder, options.patience)


if __name__ == "__main__":
    sys.exit(main())
