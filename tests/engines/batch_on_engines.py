"""Translates many files by `verbatim batch` on an engine, and kills a worker on the way.

Each file must be written under its name, with its lines in order. What was finished before the kill
must stay. Flink and Spark give the lost bundle to another worker. Beam's own job server does not
notice that a worker is gone and waits; there the command is ended, and given again.

python -m tests.engines.batch_on_engines [--engine portable] [--files 200] [--lines 20]
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

from pipeline.runners.engine import Engine
from tests.engines import clusters, runs

#: What the workers of `portable` find imported.
MODULES = ("apache_beam.runners.worker.sdk_worker", "pipeline.commands.batch_pipeline")
# How often a command is given.
_ATTEMPTS = 3
_SECONDS = 1200.0


def _pool(port: int) -> None:
    """Is a pool of workers that needs no TFX."""
    from pipeline.runners import worker_pool

    server = worker_pool.start(port, MODULES)
    try:
        threading.Event().wait()
    finally:
        server.stop(0)


@contextlib.contextmanager
def portable(folder: pathlib.Path) -> Iterator[tuple[Engine, clusters.Processes]]:
    """Runs Beam's own job server, and a pool of workers."""
    processes = clusters.Processes(folder)
    port, pool = clusters.free_port(), clusters.free_port()
    server = "apache_beam.runners.portability.local_job_service_main"
    start = f"from tests.engines import batch_on_engines as b; b._pool({pool})"
    try:
        for name, command in (
            ("job-server", ["-m", server, "--job_port", str(port)]),
            ("workers", ["-c", start]),
        ):
            root = str(clusters.ROOT)
            processes.start(name, [sys.executable, *command], PYTHONPATH=root)
        processes.wait_for("job-server", port, _SECONDS)
        processes.wait_for("workers", pool, _SECONDS)
        yield Engine("portable", f"localhost:{port}", f"localhost:{pool}"), processes
    finally:
        processes.stop_all()


CLUSTERS = {"portable": portable, **clusters.CLUSTERS}


def write_files(folder: pathlib.Path, count: int, length: int) -> None:
    """Writes files whose lines tell file and place."""
    folder.mkdir(parents=True)
    for number in range(count):
        lines = (f"file {number} line {line} %s\n" for line in range(length))
        (folder / f"part-{number:04d}.txt").write_text("".join(lines))


def differing(sources: pathlib.Path, made: pathlib.Path) -> list[str]:
    """Returns the names of files that are not the sources, line by line, in capitals."""
    names = {path.name for path in sources.iterdir()}
    extra = {path.name.removesuffix(".facts.json") for path in made.iterdir()} - names
    return sorted(extra) + [
        name
        for name in sorted(names)
        if not (made / name).is_file()
        or (made / name).read_text() != (sources / name).read_text().upper().replace("%S", "%s")
    ]


def working(processes: clusters.Processes) -> list[int]:
    """Returns the workers of the pool, the oldest first: what its server of forks has forked."""
    return [
        worker
        for server, command in clusters.children_of(processes.by_name["workers"].pid).items()
        if "forkserver" in command
        for worker in clusters.children_of(server)
    ]


def finished(made: pathlib.Path) -> dict[str, int]:
    """Returns the inode of each file that is finished, by name."""
    return {
        path.name: os.stat(str(path).removesuffix(".facts.json")).st_ino
        for path in made.glob("*.facts.json")
    }


def kill_one(
    made: pathlib.Path,
    processes: clusters.Processes,
    count: int,
    command: "subprocess.Popen[bytes]",
) -> dict[str, int]:
    """Kills a worker of a command when the first files are finished; returns those.

    Raises:
        RuntimeError: there was none to kill before all files were finished.
    """
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and command.poll() is None:
        if before := finished(made):
            workers = working(processes)
            if len(before) == count or not workers:
                break
            os.kill(workers[-1], signal.SIGKILL)
            return before
        time.sleep(0.02)
    raise RuntimeError("No worker could be killed before all files were finished.")


def run(folder: pathlib.Path, name: str, count: int, length: int) -> tuple[int, int, list[str]]:
    """Translates files on an engine.

    Args:
        folder: for all that is written.
        name: of the engine.
        count: of files.
        length: lines of each.

    Returns:
        How often the command was given, how many files were finished before the kill, and the names
        of those that are not as they should be, or were made again.
    """
    from tests.serving.shouter import Shouter

    Shouter("").save(folder / "shouter" / "3")
    sources, made = folder / "in", folder / "out"
    write_files(sources, count, length)
    with CLUSTERS[name](folder / "cluster") as (engine, processes):
        options = ["--model", str(folder / "shouter"), "--output", str(made)]
        where = runs.on(engine)
        if name == "portable":
            where = [f"--beam={word}" for word in engine.beam_args()]
        command = [sys.executable, "-m", "pipeline.commands.main", "batch"]
        environment = {**os.environ, "PYTHONPATH": str(clusters.ROOT)}
        before: dict[str, int] = {}
        for attempt in range(1, _ATTEMPTS + 1):
            with open(folder / f"batch-{attempt}.log", "wb") as log:
                process = subprocess.Popen(
                    [*command, f"{sources}/part-*.txt", *options, *where],
                    env=environment,
                    cwd=clusters.ROOT,
                    stdout=log,
                    stderr=log,
                )
                try:
                    if attempt == 1:
                        before = kill_one(made, processes, count, process)
                        if name == "portable":
                            process.terminate()
                    status = process.wait(_SECONDS)
                finally:
                    process.kill()
                    process.wait()
            if status == 0:
                break
        else:
            raise RuntimeError((folder / f"batch-{attempt}.log").read_text()[-3000:])
    now = finished(made)
    again = sorted(key for key, inode in before.items() if now.get(key) != inode)
    return attempt, len(before), differing(sources, made) + again


def main() -> int:
    """Runs it; returns 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=CLUSTERS, action="append")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--lines", type=int, default=20, help="of each file")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.engine or ("portable",):
            folder = (options.keep or pathlib.Path(temporary)) / name
            folder.mkdir(parents=True)
            attempts, before, wrong = run(folder, name, options.files, options.lines)
            print(
                f"{name}: {options.files} files of {options.lines} lines, {before} of them done "
                f"when a worker was killed; commands given: {attempts}; wrong or made again: "
                f"{wrong or 'none'}",
                flush=True,
            )
            failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
