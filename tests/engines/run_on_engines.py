"""Runs the pipeline in memory, on Flink and on Spark, and calls its model from Java.

What they wrote and answered must be the same.

python -m tests.engines.run_on_engines [--engine flink] [--together 2] [--keep FOLDER]
"""

import argparse
import contextlib
import pathlib
import signal
import sys
import tempfile
from concurrent import futures

from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from tests.engines import artifacts, clusters, runs

MEMORY = "memory"
#: What is in a row of the table, by what ran the components.
PLACES = {
    MEMORY: "in memory",
    "flink": "Flink 1.19.3: a JobManager, two TaskManagers of a slot",
    "spark": "Spark 3.5.5: a Master, two Workers of a core",
}
#: The components whose work Beam does.
OF_BEAM = (
    *("ParallelTextExampleGen", "StatisticsGen", "Subwords", "Vocabulary", "Lexicon"),
    *("TextTransform", "Evaluator"),
)


def run(
    place: str, folder: pathlib.Path, data: pathlib.Path, processes: clusters.Processes
) -> dict[str, float]:
    """Runs the pipeline in `folder/place`; returns its seconds, also by component.

    Args:
        place: one of `PLACES`.
        folder: of all runs.
        data: the pairs.
        processes: those to which the run's process is added.

    Raises:
        RuntimeError: it failed.
    """
    output, options = folder / place, []
    with contextlib.ExitStack() as stack:
        if place != MEMORY:
            cluster = clusters.CLUSTERS[place](folder / f"{place}-cluster")
            options = runs.on(stack.enter_context(cluster)[0])
        runs.start(processes, place, data, output, *options)
        seconds = runs.finish(processes, place, output)
    print(f"{PLACES[place]}: {seconds['all']} s", flush=True)
    return seconds


def call_from_java(
    memory: "futures.Future[dict[str, float]]",
    folder: pathlib.Path,
    processes: clusters.Processes,
) -> None:
    """Calls the model of the run in memory from Java, when that has ended.

    Raises:
        RuntimeError: Java answers otherwise, or that run failed.
    """
    memory.result()
    models = folder / MEMORY / "models" / runs.RECIPE
    command = [sys.executable, "-m", "tests.engines.call_from_java", str(models)]
    environment = {"PYTHONPATH": str(clusters.ROOT), **clusters.COMPILES_QUICKLY}
    processes.start("java", command, **environment)
    status = processes.by_name["java"].wait()
    printed = processes.log_of("java").strip()
    if status:
        raise RuntimeError(printed[-3000:])
    print(f"Java: {printed.splitlines()[-1]}", flush=True)


def _row(place: str, seconds: dict[str, float], same: int, differ: int) -> MeasuredRow:
    return MeasuredRow(
        {"where": PLACES[place]},
        {
            "same": measuring.one(same),
            "differ": measuring.one(differ),
            "seconds": measuring.one(seconds["all"]),
            **{name: measuring.one(seconds[name]) for name in OF_BEAM},
        },
    )


def run_all(
    engines: list[str], java: bool, together: int, folder: pathlib.Path
) -> tuple[list[MeasuredRow], bool]:
    """Runs the pipeline in memory and on engines, and Java.

    Args:
        engines: their names.
        java: whether the model is called from Java.
        together: how many of all these work at the same time.
        folder: for all that is written.

    Returns:
        A row for each run that has ended, and whether all is as it should be.
    """
    data = folder / "pairs.tsv"
    runs.write_data(data)
    processes = clusters.Processes(folder / "logs")
    with futures.ThreadPoolExecutor(together) as threads, contextlib.ExitStack() as stack:
        # Where this program is told to end, a thread ends with the process that it waits for.
        stack.callback(processes.stop_all)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        places = [MEMORY, *engines]
        ended = {place: threads.submit(run, place, folder, data, processes) for place in places}
        called = threads.submit(call_from_java, ended[MEMORY], folder, processes) if java else None
        # If it fails, there is nothing to compare with.
        seconds = ended[MEMORY].result()
        expected = artifacts.digests(folder / MEMORY)
        rows = [_row(MEMORY, seconds, len(expected), 0)]
        right = True
        for place in engines:
            try:
                seconds = ended[place].result()
            except RuntimeError as error:
                print(f"{place}: {error}", flush=True)
                right = False
                continue
            differ = artifacts.differing(expected, artifacts.digests(folder / place))
            rows.append(_row(place, seconds, len(expected) - len(differ), len(differ)))
            same = len(expected) - len(differ)
            print(f"{place}: {same} artifacts are the same, {len(differ)} differ", flush=True)
            for key in differ:
                print(f"  {key}")
            right = right and not differ
        if called:
            try:
                called.result()
            except RuntimeError as error:
                print(f"Java: {error}", flush=True)
                right = False
    return rows, right


def main() -> int:
    """Runs it; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=clusters.CLUSTERS, action="append")
    parser.add_argument("--java", action="store_true", help="with --engine: Java, too")
    parser.add_argument(
        "--together", type=int, default=1, metavar="N", help="how many run at the same time (1)"
    )
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    # The processes of the engines end with this one, also where it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    engines = options.engine or list(clusters.CLUSTERS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        java = options.java or not options.engine
        rows, right = run_all(engines, java, options.together, folder)
    if right:
        packages = ("tfx", "apache-beam", "tensorflow")
        measuring.write(options.record, measuring.table_of(rows, 1, machine, packages))
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
