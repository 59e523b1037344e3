"""Kills processes of an engine in the middle of components, and compares what a run writes.

The engine tries again, or the run ends with a sentence and the same command is given again. What
the component writes must be that of a run in memory, nothing twice. On each engine a run is brought
to each component first; each fault goes on from there.

python -m tests.engines.faults [--engine flink] [--component TextTransform] [--fault "job server"]

With these options those cases alone are tried; the record keeps its other rows.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from tests.engines import artifacts, batch_on_engines, clusters, runs
from tests.engines.one_component import EVALUATOR, INGESTION, TRANSFORM, UntilDone

COMPONENTS = (INGESTION, TRANSFORM, EVALUATOR)
#: What has just ended when a component begins.
BEFORE = {TRANSFORM: "Lexicon", EVALUATOR: "Exporter"}
SETTINGS = (*runs.SETTINGS, "training.max_updates=20")
# How often the command is given.
_ATTEMPTS = 3
_LEFT = "/beam-temp-"
# In seconds: until a machine is there again.
_BACK = 3.0

#: What is to be done before the command is given again.
Repair = Callable[[], None]


def write_pairs(path: pathlib.Path, count: int) -> None:
    """Writes pairs of which each hundredth stands there twice."""
    rows = [f"Open the file {number}\tOuvrir le fichier {number}" for number in range(count)]
    path.write_text("\n".join(["source\ttarget", *rows, *rows[::100]]) + "\n", "utf-8")


def nothing() -> None:
    """Does nothing."""


def kill_python(processes: clusters.Processes) -> Repair:
    """Kills the youngest Python worker."""
    os.kill(batch_on_engines.working(processes)[-1], signal.SIGKILL)
    return nothing


def kill_machine(name: str) -> Callable[[clusters.Processes], Repair]:
    """Returns what kills a process and all that it has started, and starts it again."""

    def kill(processes: clusters.Processes) -> Repair:
        processes.stop(name, signal.SIGKILL)
        for left in clusters.scratch(processes, name).glob("*"):
            shutil.rmtree(left, ignore_errors=True)
        time.sleep(_BACK)
        processes.start_again(name)
        return nothing

    return kill


def kill_executor(processes: clusters.Processes) -> Repair:
    """Kills an executor of Spark, which its Worker starts again."""
    os.kill(list(clusters.children_of(processes.by_name["worker-1"].pid))[-1], signal.SIGKILL)
    return nothing


def kill_job_server(processes: clusters.Processes) -> Repair:
    """Kills the job server; what is returned starts it again."""
    processes.stop("job-server", signal.SIGKILL)

    def start_again() -> None:
        processes.start_again("job-server")
        processes.wait_for("job-server", processes.ports["job-server"])

    return start_again


#: What is killed, by engine and name.
FAULTS: dict[str, dict[str, Callable[[clusters.Processes], Repair]]] = {
    "flink": {
        "Python worker": kill_python,
        "TaskManager": kill_machine("taskmanager-1"),
        "job server": kill_job_server,
    },
    "spark": {
        "Python worker": kill_python,
        "executor": kill_executor,
        "Worker": kill_machine("worker-1"),
        "job server": kill_job_server,
    },
}


class Prepared:
    """Runs that have come to each of some components, to go on from."""

    def __init__(
        self,
        components: Sequence[str],
        options: Sequence[str],
        folder: pathlib.Path,
        processes: clusters.Processes,
    ) -> None:
        """Brings a run to each of the components.

        Args:
            components: in their order.
            options: of the run.
            folder: the parent holds `pairs.tsv`.
            processes: those to which the run's process is added.

        Raises:
            RuntimeError: the run failed.
        """
        self._folder, self._processes = folder, processes
        # Its metadata name places, so a run goes on in the folder where it began.
        self._place = folder / "run"
        for component in components:
            if component in BEFORE:
                run = self._run(BEFORE[component])
                run.start(*options)
                run.finish()
                shutil.copytree(self._place, folder / component)

    def run_at(self, component: str) -> UntilDone:
        """Returns the run at the beginning of a component."""
        shutil.rmtree(self._place, ignore_errors=True)
        if component in BEFORE:
            shutil.copytree(self._folder / component, self._place)
        return self._run(component)

    def _run(self, component: str) -> UntilDone:
        where = (self._place, self._folder.parent / "pairs.tsv", self._processes)
        return UntilDone(component, *where, settings=SETTINGS)


def written_in_memory(
    components: Sequence[str], folder: pathlib.Path, processes: clusters.Processes
) -> dict[str, dict[str, str]]:
    """Returns digests of what each component writes in memory; `folder` holds `pairs.tsv`.

    Raises:
        RuntimeError: the run failed.
    """
    expected = {}
    for component in components:
        where = (folder / "memory", folder / "pairs.tsv", processes)
        run = UntilDone(component, *where, settings=SETTINGS)
        run.start()
        run.finish()
        expected[component] = run.written()
        print(f"{component}, in memory: {len(expected[component])} files", flush=True)
    return expected


def run_with_fault(
    run: UntilDone,
    options: list[str],
    cluster: clusters.Processes,
    fault: Callable[[clusters.Processes], Repair],
) -> tuple[int, str]:
    """Runs a component, and kills something in the middle.

    Returns:
        How often the command was given, and what the run said when it failed, or nothing.

    Raises:
        RuntimeError: nothing could be killed in the middle, or every try failed.
    """

    def is_in_the_middle() -> bool:
        if run.component != EVALUATOR:
            return run.is_writing()
        # It writes at its end only.
        return run.is_running() and bool(batch_on_engines.working(cluster))

    # What the try in memory has left is none of this one's.
    run.start(*options)
    run.wait_until(run.is_running, run.has_ended)
    run.wait_until(is_in_the_middle, run.is_done, run.has_ended)
    if run.is_done() or run.has_ended():
        raise RuntimeError(f"There was nothing to kill in the middle: {run.last_line()}")
    repair, said = fault(cluster), ""
    for attempt in range(1, _ATTEMPTS + 1):
        run.wait_until(run.is_done, run.has_ended)
        done, last = run.is_done(), run.last_line()
        run.stop()
        if done:
            return attempt, said
        said = said or last
        repair()
        repair = nothing
        run.start(*options)
    raise RuntimeError(said)


def is_a_sentence(said: str) -> bool:
    """Returns whether a failed run said what failed, in words for people."""
    return bool(re.search(r"[A-Z].* .*\.$", said)) and "Traceback" not in said


def outcome(attempts: int, said: str) -> str:
    """Returns in words what happened."""
    if not said:
        return "the engine tried again"
    return f"the run ended with a sentence; the command was given {attempts} times"


def try_faults(
    engine_name: str,
    faults: Sequence[str],
    expected: Mapping[str, Mapping[str, str]],
    folder: pathlib.Path,
) -> Iterator[tuple[MeasuredRow, bool]]:
    """Yields a row for each fault in each component, and whether all was as it should be.

    Raises:
        RuntimeError: the run failed before anything was killed.
    """
    own = folder / engine_name
    processes = clusters.Processes(own / "logs")
    with (
        contextlib.ExitStack() as stack,
        clusters.CLUSTERS[engine_name](own / "cluster") as (engine, cluster),
    ):
        stack.callback(processes.stop_all)
        options = runs.on(engine)
        prepared = Prepared(list(expected), options, own, processes)
        print(f"{engine_name}: a run has come to each component", flush=True)
        for component, name in itertools.product(expected, faults):
            run = prepared.run_at(component)
            try:
                attempts, said = run_with_fault(run, options, cluster, FAULTS[engine_name][name])
            except RuntimeError as error:
                run.stop()
                happened, said = f"failed: {error}", ""
            else:
                happened = outcome(attempts, said)
            # What an attempt left that was killed; nobody reads it.
            found = {key: one for key, one in run.written().items() if _LEFT not in key}
            differ = artifacts.differing(expected[component], found)
            words = f"{engine_name}, {component}, {name} killed: {happened}; {said}"
            print(f"{words} differ: {differ or 'none'}", flush=True)
            labels = {"component": component, "engine": engine_name.capitalize()}
            labels |= {"killed": name, "happened": happened}
            same = len(expected[component]) - len(differ)
            figures = {"same": measuring.one(same), "differ": measuring.one(len(differ))}
            yield MeasuredRow(labels, figures), not differ and (not said or is_a_sentence(said))


def main() -> int:
    """Runs it; returns 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=FAULTS, action="append")
    parser.add_argument("--component", choices=COMPONENTS, action="append")
    parser.add_argument("--fault", action="append", help="what is killed, such as `job server`")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    components = options.component or COMPONENTS
    faults = {
        engine: [name for name in FAULTS[engine] if not options.fault or name in options.fault]
        for engine in options.engine or FAULTS
    }
    again = {
        (component, engine.capitalize(), name)
        for component, engine in itertools.product(components, faults)
        for name in faults[engine]
    }
    rows = measuring.kept(
        options.record,
        lambda labels: (labels["component"], labels["engine"], labels["killed"]) in again,
    )
    packages = ("tfx", "apache-beam", "tensorflow")
    right = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_pairs(folder / "pairs.tsv", options.pairs)
        processes = clusters.Processes(folder / "logs")
        try:
            expected = written_in_memory(components, folder, processes)
            for engine in faults:
                for one, good in try_faults(engine, faults[engine], expected, folder):
                    rows.append(one)
                    right = right and good
                    # A case takes minutes: what was seen is not lost where the next one fails.
                    table = measuring.table_of(rows, 1, machine, packages)
                    measuring.write(options.record, table)
        except RuntimeError as error:
            print(f"faults: {error}", flush=True)
            return 1
        finally:
            processes.stop_all()
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
