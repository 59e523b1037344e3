"""Kills processes of an engine while a run ingests, and compares what the run writes in the end.

The engine tries again, or the run ends with a sentence and the same command is given again. The
examples and the rejects must be those of a run in memory, nothing twice.

python -m tests.engines.faults [--engine flink] [--fault workers] [--pairs 20000] [--keep FOLDER]
"""

import argparse
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable

from tests.engines import artifacts, batch_on_engines, clusters, runs

COMPONENT = "ParallelTextExampleGen"
# How often the command is given.
_ATTEMPTS = 3
# In seconds: for ingestion with all its tries, and until a machine is there again.
_PATIENCE, _BACK = 1200.0, 3.0


def write_pairs(path: pathlib.Path, count: int) -> None:
    """Writes pairs of which each hundredth stands there twice."""
    rows = [f"Open the file {number}\tOuvrir le fichier {number}" for number in range(count)]
    path.write_text("\n".join(["source\ttarget", *rows, *rows[::100]]) + "\n", "utf-8")


def kill_python(processes: clusters.Processes) -> Callable[[], None]:
    """Kills the youngest Python worker."""
    os.kill(batch_on_engines.working(processes)[-1], signal.SIGKILL)
    return lambda: None


def kill_machine(name: str) -> Callable[[clusters.Processes], Callable[[], None]]:
    """Returns what kills a process and all that it has started."""

    def kill(processes: clusters.Processes) -> Callable[[], None]:
        processes.stop(name, signal.SIGKILL)
        time.sleep(_BACK)
        processes.start_again(name)
        return lambda: None

    return kill


def kill_executor(processes: clusters.Processes) -> Callable[[], None]:
    """Kills an executor of Spark, which its Worker starts again."""
    children = list(clusters.children_of(processes.by_name["worker-1"].pid))
    os.kill(children[-1], signal.SIGKILL)
    return lambda: None


def kill_job_server(processes: clusters.Processes) -> Callable[[], None]:
    """Kills the job server; what is returned starts it again."""
    processes.stop("job-server", signal.SIGKILL)
    return lambda: processes.start_again("job-server")


#: What is killed, by engine and name; each returns what is to be done before the next try.
FAULTS: dict[str, dict[str, Callable[[clusters.Processes], Callable[[], None]]]] = {
    "flink": {
        "python worker": kill_python,
        "TaskManager": kill_machine("taskmanager-1"),
        "job server": kill_job_server,
    },
    "spark": {
        "python worker": kill_python,
        "executor": kill_executor,
        "Worker": kill_machine("worker-1"),
        "job server": kill_job_server,
    },
}


class Ingestion:
    """A run that is ended when it has ingested."""

    def __init__(
        self, folder: pathlib.Path, data: pathlib.Path, processes: clusters.Processes
    ) -> None:
        """Takes the run's folder, the pairs, and those to which the run's process is added."""
        self.folder = folder
        self._data = data
        self._processes = processes

    def start(self, *options: str) -> None:
        """Starts it; it goes on where it has stopped."""
        (self.folder / "run.log").unlink(missing_ok=True)
        runs.start(self._processes, self.folder.name, self._data, self.folder, *options)

    def is_writing(self) -> bool:
        """Returns whether examples are being written, and none of them is finished."""
        splits = (self.folder / "pipeline" / COMPONENT).glob("examples/*/Split-*")
        begun = [path for folder in splits for path in folder.glob("beam-temp-*/*")]
        return bool(begun)

    def has_ended(self) -> bool:
        """Returns whether the process has ended."""
        return self._processes.by_name[self.folder.name].poll() is not None

    def has_ingested(self) -> bool:
        """Returns whether the component has ended well."""
        log = self.folder / "run.log"
        return log.is_file() and f"Component {COMPONENT} is finished" in log.read_text()

    def wait_until(self, *conditions: Callable[[], bool]) -> None:
        """Waits until one of some conditions is true.

        Raises:
            RuntimeError: none is, in time.
        """
        end = time.monotonic() + _PATIENCE
        while not any(condition() for condition in conditions):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.folder.name}: nothing has happened for {_PATIENCE} s.")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it."""
        self._processes.stop(self.folder.name, signal.SIGKILL)

    def last_line(self) -> str:
        """Returns what it said last."""
        lines = self._processes.log_of(self.folder.name).strip().splitlines()
        return lines[-1] if lines else ""

    def written(self) -> dict[str, str]:
        """Returns digests of what was ingested."""
        found = artifacts.of_components(self.folder / "pipeline")
        return {key: value for key, value in found.items() if key.startswith(COMPONENT)}


def ingest_in_memory(
    folder: pathlib.Path, data: pathlib.Path, processes: clusters.Processes
) -> dict[str, str]:
    """Returns what a run in memory writes.

    Raises:
        RuntimeError: it failed.
    """
    run = Ingestion(folder, data, processes)
    run.start()
    run.wait_until(run.has_ingested, run.has_ended)
    if not run.has_ingested():
        raise RuntimeError(run.last_line())
    run.stop()
    return run.written()


def ingest_with_fault(
    run: Ingestion,
    options: list[str],
    cluster: clusters.Processes,
    fault: Callable[[clusters.Processes], Callable[[], None]],
) -> tuple[int, str]:
    """Ingests, and kills something while examples are written.

    Returns:
        How often the command was given, and what the run said when it failed, or nothing.

    Raises:
        RuntimeError: nothing could be killed in the middle, or every try failed.
    """
    run.start(*options)
    run.wait_until(run.is_writing, run.has_ingested, run.has_ended)
    if not run.is_writing():
        raise RuntimeError(f"There was nothing to kill in the middle: {run.last_line()}")
    repair = fault(cluster)
    said = ""
    for attempt in range(1, _ATTEMPTS + 1):
        run.wait_until(run.has_ingested, run.has_ended)
        if run.has_ingested():
            run.stop()
            return attempt, said
        said = said or run.last_line()
        run.stop()
        repair()
        repair = _nothing
        run.start(*options)
    raise RuntimeError(said)


def _nothing() -> None:
    """Does nothing."""


def is_a_sentence(said: str) -> bool:
    """Returns whether a failed run said what failed, in words for people."""
    return bool(re.search(r"[A-Z].* .*\.$", said)) and "Traceback" not in said


def main() -> int:
    """Runs it; returns 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=FAULTS, action="append")
    parser.add_argument("--fault", action="append", help="what is killed, such as `job server`")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / "pairs.tsv"
        write_pairs(data, options.pairs)
        processes = clusters.Processes(folder / "logs")
        try:
            expected = ingest_in_memory(folder / "memory", data, processes)
            for engine_name in options.engine or FAULTS:
                with clusters.CLUSTERS[engine_name](folder / f"{engine_name}-cluster") as started:
                    engine, cluster = started
                    for name, fault in FAULTS[engine_name].items():
                        if options.fault and name not in options.fault:
                            continue
                        place = folder / f"{engine_name}-{name.replace(' ', '-')}"
                        run = Ingestion(place, data, processes)
                        attempts, said = ingest_with_fault(run, runs.on(engine), cluster, fault)
                        found = run.written()
                        differ = sorted(
                            key for key in expected | found if expected.get(key) != found.get(key)
                        )
                        print(
                            f"{engine_name}, {name} killed: commands given {attempts}; differ: "
                            f"{differ or 'none'}; {said or 'the engine tried again'}",
                            flush=True,
                        )
                        failed = failed or bool(differ) or bool(said and not is_a_sentence(said))
        except RuntimeError as error:
            print(f"faults: {error}", flush=True)
            failed = True
        finally:
            processes.stop_all()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
