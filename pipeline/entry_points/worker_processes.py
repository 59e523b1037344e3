"""The processes of a training by several workers.

They are started here, or elsewhere by the program that sets TF_CONFIG.

    python -m pipeline.entry_points.worker_processes FOLDER

is one worker. TF_CONFIG says which, as TensorFlow documents; FOLDER is the one of the Trainer's
checkpoints, where the Trainer writes what is to be trained (`ARGUMENTS_FILE`); a worker that starts
first waits for it.
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
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.common import progress
from pipeline.common.whole_files import whole_file
from pipeline.recipes.recipe import Recipe
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


def are_needed(recipe: Recipe) -> bool:
    """Whether a recipe, or TF_CONFIG, asks for several workers.

    Raises:
        DataParallelError: TF_CONFIG cannot be used.
    """
    from pipeline.training.workers import tasks_of

    return recipe.training.workers > 1 or tasks_of(os.environ.get("TF_CONFIG")) is not None


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
    from pipeline.training.workers import tasks_of

    _write(folder, ARGUMENTS_FILE, dataclasses.asdict(arguments))
    _remove(folder, _ERROR_FILE)
    elsewhere = tasks_of(os.environ.get("TF_CONFIG"))
    if elsewhere:
        environments = [dict(os.environ)]
    else:
        environments = _on_this_machine(recipe.training.workers)
    of_all = f" of {elsewhere.workers}" if elsewhere else ""
    progress.say(f"{recipe.model.head}: {len(environments)}{of_all} workers on this machine.")
    command = [sys.executable, "-m", __name__, folder]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for environment in environments:
            processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL))
        lost = _wait(processes)
    finally:
        for process in processes:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
    error = _read(folder, _ERROR_FILE)
    _remove(folder, _ERROR_FILE)
    if not lost:
        _remove(folder, ARGUMENTS_FILE)
        with contextlib.suppress(OSError):
            # If it is empty.
            os.rmdir(folder)
        return
    raise _lost_worker(*lost, len(processes), error)


def _lost_worker(number: int, status: int, count: int, error: Any) -> ValueError:
    """Returns the error for one of `count` workers that ended with a status other than 0.

    Args:
        number: which one, from 0.
        status: its status; below 0 for a signal.
        count: how many there are on this machine.
        error: what it wrote of its error, or None.
    """
    from pipeline.training.workers import DataParallelError

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


def work(folder: str) -> int:
    """Trains as one worker, and returns the status to exit with."""
    from pipeline.training.workers import DataParallelError, Workers, tasks_of

    try:
        place = tasks_of(os.environ.get("TF_CONFIG"))
        if place is None:
            raise DataParallelError(
                "TF_CONFIG names no cluster of two workers or more; set it as TensorFlow documents."
            )
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


def _train_as(workers: "Workers", folder: str) -> None:
    from pipeline.entry_points.train_and_save import train_and_save

    told = False
    while (arguments := _read(folder, ARGUMENTS_FILE)) is None:
        if not told:
            progress.say(
                f"worker {workers.index + 1} of {workers.count}: waits for the Trainer to write "
                f"{folder}/{ARGUMENTS_FILE}."
            )
            told = True
        time.sleep(1)
    train_and_save(TrainerArguments(**arguments), folder, workers)
    # No worker ends before the chief has written the model: one that ended would count as lost.
    workers.wait()


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
    folder = parser.parse_args().folder
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("  %(message)s"))
    progress.LOGGER.addHandler(handler)
    progress.LOGGER.setLevel(logging.INFO)
    # Sentences are printed once, whatever other handlers TensorFlow installs.
    progress.LOGGER.propagate = False
    return work(folder)


if __name__ == "__main__":
    sys.exit(main())
