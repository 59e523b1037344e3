"""The processes of a training by several workers:
started here, or elsewhere by whoever sets TF_CONFIG.

    python -m pipeline.entry_points.worker_processes FOLDER

is one worker. TF_CONFIG says which, as TensorFlow documents; FOLDER is the one of the Trainer's
checkpoints, where the Trainer writes what is to be trained (`ARGUMENTS_FILE`); a worker that comes
first waits for it.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import types

from serving import processors

ARGUMENTS_FILE = "worker_arguments.json"
_ERROR_FILE = "worker_error.json"  # why a worker gave up
_NAMES = (
    "train_files",
    "eval_files",
    "transform_graph_path",
    "serving_model_dir",
    "model_run_dir",
    "custom_config",
)
_LOST_OTHERS = 3  # status of a worker whose others are gone
_LAST_WORDS_SECONDS = 20.0  # for workers to notice that one of them is gone


def wanted(recipe):
    """Whether a recipe, or TF_CONFIG, wants several workers.

    Raises:
        DataParallelError: TF_CONFIG cannot be used.
    """
    from pipeline.training import data_parallel

    return (
        recipe.training.workers > 1
        or data_parallel.tasks_of(os.environ.get("TF_CONFIG")) is not None
    )


def train(recipe, fn_args, folder):
    """Trains with several workers and waits for them.

    The Trainer's own process, which has used TensorFlow already, is none of them.

    With TF_CONFIG it starts the worker that TF_CONFIG names; else `training.workers` of them, on
    this machine.

    Args:
        recipe: a `Recipe`.
        fn_args: TFX's.
        folder: of the checkpoints of all trainings.

    Raises:
        DataParallelError, ValueError: the training cannot go on; one sentence.
    """
    from pipeline.training import data_parallel

    _write(folder, ARGUMENTS_FILE, {name: getattr(fn_args, name) for name in _NAMES})
    _remove(folder, _ERROR_FILE)
    elsewhere = data_parallel.tasks_of(os.environ.get("TF_CONFIG"))
    if elsewhere:
        environments = [dict(os.environ)]
    else:
        environments = _on_this_machine(recipe.training.workers)
    of_all = f" of {elsewhere[0]}" if elsewhere else ""
    print(
        f"  {recipe.model.head}: {len(environments)}{of_all} workers on this machine.", flush=True
    )
    command = [sys.executable, "-m", __name__, folder]
    processes = []
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
            os.rmdir(folder)  # where nothing else is in it
        return
    number, status = lost
    if status > 0 and error:
        raise data_parallel.DataParallelError(error["error"])
    if status == _LOST_OTHERS:
        raise data_parallel.DataParallelError(
            "A worker on another machine is gone, and the others cannot go on without it: start "
            "them again, they go on from the last checkpoint."
        )
    how = (
        f"was killed by {signal.Signals(-status).name}"
        if status < 0
        else f"ended with status {status}"
    )
    raise data_parallel.DataParallelError(
        f"Worker {number + 1} of {len(processes)} {how}, and the others cannot go on without it: "
        "run the same command again, it goes on "
        "from the last checkpoint (a worker that is killed by SIGKILL had often too little "
        "memory: fewer training.workers take less)."
    )


def _on_this_machine(count):
    """Returns the environments of so many workers on this machine."""
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


def _wait(processes):
    """Waits for processes;
    returns the number and status of one that failed, by a signal rather than otherwise, or None.
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


def work(folder):
    """One worker's life. Returns the status to exit with."""
    from pipeline.training import data_parallel

    try:
        config = os.environ.get("TF_CONFIG")
        if data_parallel.tasks_of(config) is None:
            raise data_parallel.DataParallelError(
                "TF_CONFIG names no cluster of two workers or more; set it as TensorFlow documents."
            )
        workers = data_parallel.Workers(config)
        _train_as(workers, folder)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        _write(folder, _ERROR_FILE, {"error": str(error)})
        return 1
    except Exception as error:  # noqa: BLE001 (which of TensorFlow's it is, hangs on where the loss is noticed)
        import tensorflow as tf

        if not isinstance(error, tf.errors.OpError):
            raise
        print(
            f"Error: the other workers are gone ({type(error).__name__}).",
            file=sys.stderr,
            flush=True,
        )
        # What has begun cannot be ended in good order: TensorFlow would wait for the others.
        sys.stdout.flush()
        os._exit(_LOST_OTHERS)
    return 0


def _train_as(workers, folder):
    from pipeline.entry_points.train_and_save import train_and_save

    told = False
    while (arguments := _read(folder, ARGUMENTS_FILE)) is None:
        if not told:
            print(
                f"  worker {workers.index + 1} of {workers.count}: waits for the Trainer to write "
                f"{folder}/{ARGUMENTS_FILE}.",
                flush=True,
            )
            told = True
        time.sleep(1)
    train_and_save(types.SimpleNamespace(**arguments), folder, workers)
    # Nobody leaves before the chief has written the model: one that is gone counts as lost.
    workers.wait()


def _path(folder, name):
    return os.path.join(folder, name)


def _write(folder, name, content):
    import tensorflow as tf

    tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(_path(folder, f"{name}.tmp"), "w") as file:
        json.dump(content, file)
    tf.io.gfile.rename(_path(folder, f"{name}.tmp"), _path(folder, name), overwrite=True)


def _read(folder, name):
    import tensorflow as tf

    if not tf.io.gfile.exists(_path(folder, name)):
        return None
    with tf.io.gfile.GFile(_path(folder, name)) as file:
        return json.load(file)


def _remove(folder, name):
    import tensorflow as tf

    if tf.io.gfile.exists(_path(folder, name)):
        tf.io.gfile.remove(_path(folder, name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One worker of a training; TF_CONFIG says which.")
    parser.add_argument("folder", help="folder of the Trainer's checkpoints")
    sys.exit(work(parser.parse_args().folder))
