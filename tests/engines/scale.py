"""Measures how ingestion grows on an engine, beside one process and two of this machine.

    python -m tests.engines.scale --data PATH --output DIR [--pairs 2000000,5000000]

The corpus is that of `benchmarks.growth.corpus`: real text, repeated with numbers of its own. Each
run is that of `verbatim run`, ended when the pairs are ingested. Seconds are those of the component
alone. Memory is what the processes had resident together at most, sampled twice a second; forked
workers share pages, which are counted for each. The shuffle is what Flink's tasks have sent each
other, and what Spark has written for it.

With `--places` or `--pairs` those alone are measured; other rows stay in the record.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from benchmarks.growth import corpus, exponents
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from pipeline.runners.engine import Engine
from tests.engines import clusters, runs
from tests.engines.one_component import INGESTION, UntilDone

RECIPE = "translation_en_ja"
SETTINGS = (
    *("data.eval_files=[]", "data.test_files=[]", "data.eval_share=0.02"),
    *("data.test_share=0.02", "lexicon.kind=none", "baseline.head="),
)
_SAMPLE_SECONDS = 0.5


class Place(NamedTuple):
    """What ingests: its label, the engine's name or nothing, its slots, and more options.

    `tasks` are those of a stage of Spark; 0 is Spark's own number.
    """

    label: str
    engine: str = ""
    slots: int = 0
    options: tuple[str, ...] = ()
    tasks: int = 0


_PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
PLACES = {
    "memory": Place("one process"),
    "processes": Place("two processes", options=tuple(f"--beam={one}" for one in _PROCESSES)),
    "flink-1": Place("Flink, one slot", "flink", 1),
    "flink-2": Place("Flink, two slots", "flink", 2),
    "spark-2": Place("Spark, two cores", "spark", 2, tasks=32),
}


class Use(NamedTuple):
    """What a run used at most, in bytes: of Java, of Python's workers, of its own process, and what
    was exchanged between tasks.
    """

    java: int
    workers: int
    run: int
    shuffled: int


class Sampler:
    """Looks at the processes of a run and its engine until it is told to stop."""

    def __init__(self, run_pid: int, cluster: "clusters.Processes | None") -> None:
        """Begins to look; without a cluster, the run's children are the workers."""
        self.use = Use(0, 0, 0, 0)
        self._run, self._cluster = run_pid, cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> Use:
        """Stops; returns the peaks."""
        self._stop.set()
        self._thread.join()
        return self.use

    def _look(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self.use = Use(*map(max, self.use, self._now()))

    def _now(self) -> Use:
        own = corpus.resident_bytes(self._run)
        if not self._cluster:
            children = sum(map(corpus.resident_bytes, clusters.children_of(self._run)))
            return Use(0, children, own - children, 0)
        of_process = {
            name: corpus.resident_bytes(process.pid)
            for name, process in list(self._cluster.by_name.items())
        }
        workers = of_process.pop("workers", 0)
        return Use(sum(of_process.values()), workers, own, shuffled(self._cluster))


def shuffled(cluster: clusters.Processes) -> int:
    """Returns how many bytes tasks have given each other so far: by Flink's REST interface, else
    the size of Spark's files.
    """
    port = cluster.ports.get("jobmanager")
    if not port:
        found = cluster.folder.glob("tmp/**/shuffle_*.data")
        total = 0
        for path in found:
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total
    with contextlib.suppress(OSError, ValueError, KeyError):
        jobs = _asked(f"http://localhost:{port}/jobs/overview")["jobs"]
        last = max(jobs, key=lambda job: job["start-time"])["jid"]
        vertices = _asked(f"http://localhost:{port}/jobs/{last}")["vertices"]
        return sum(vertex["metrics"]["write-bytes"] for vertex in vertices)
    return 0


def _asked(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def seconds_of(log: str, component: str) -> float:
    """Returns how long a component took, by the log of its run."""
    times = [
        datetime.strptime(found.group(1), "%Y-%m-%d %H:%M:%S,%f")
        for found in re.finditer(rf"^(\S+ \S+) .*Component {component} is \w+\.$", log, re.M)
    ]
    return (times[1] - times[0]).total_seconds()


@contextlib.contextmanager
def cluster_of(
    place: Place, folder: pathlib.Path
) -> Iterator[tuple[Engine | None, "clusters.Processes | None"]]:
    """Brings up what a place needs."""
    if not place.engine:
        yield None, None
        return
    more = {"tasks": place.tasks} if place.tasks else {}
    with clusters.CLUSTERS[place.engine](folder, **more) as (engine, processes):
        yield dataclasses.replace(engine, slots=place.slots), processes


def ingest(place: Place, data: pathlib.Path, folder: pathlib.Path) -> tuple[float, Use]:
    """Ingests in a new folder, which is gone afterwards; returns the seconds, and what was used.

    Raises:
        RuntimeError: the run failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    processes = clusters.Processes(folder / "logs")
    try:
        with cluster_of(place, folder / "cluster") as (engine, cluster):
            options = [*(runs.on(engine) if engine else ()), *place.options]
            run = UntilDone(INGESTION, folder / "run", data, processes, RECIPE, SETTINGS)
            run.start(*options)
            sampler = Sampler(processes.by_name["run"].pid, cluster)
            try:
                run.finish()
            except RuntimeError as error:
                raise RuntimeError(f"{place.label}: {error}") from None
            finally:
                use = sampler.stop()
            seconds = seconds_of(run.log(), INGESTION)
    finally:
        processes.stop_all()
    shutil.rmtree(folder, ignore_errors=True)
    return seconds, use


def row(place: Place, pairs: int, seconds: float, use: Use) -> MeasuredRow:
    """Returns a row of the table, without its exponent.

    Args:
        place: what ingested.
        pairs: how many.
        seconds: how long.
        use: of memory.
    """
    return measuring.row(
        {"where": place.label, "pairs": pairs},
        {
            "seconds": measuring.one(seconds),
            "rate": measuring.one(pairs / seconds),
            "java_mb": measuring.one(use.java / 1e6 or None),
            "workers_mb": measuring.one(use.workers / 1e6 or None),
            "run_mb": measuring.one(use.run / 1e6),
            "shuffled_mb": measuring.one(use.shuffled / 1e6 or None),
        },
    )


def measure(
    places: Sequence[str], sizes: Sequence[int], data: pathlib.Path, folder: pathlib.Path
) -> Iterator[MeasuredRow]:
    """Yields a row for each size and place.

    Raises:
        RuntimeError: a run failed.
    """
    for pairs in sizes:
        shutil.rmtree(folder / "data", ignore_errors=True)
        texts = (data / f"train.{language}" for language in ("en", "ja"))
        corpus.grow(*texts, folder / "data", pairs)
        for name in places:
            seconds, use = ingest(PLACES[name], folder / "data", folder / name)
            print(f"{PLACES[name].label}: {pairs:,} pairs in {seconds:.0f} s; {use}", flush=True)
            yield row(PLACES[name], pairs, seconds, use)


def pairs_of(one: MeasuredRow) -> int:
    """Returns how many pairs a row is about."""
    return int(one.labels["pairs"].replace(",", ""))


def table(rows: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """Returns rows by their pairs and, within these, by their place.

    Each has the exponent of time, from the smallest corpus of the same place on.
    """
    labels = [place.label for place in PLACES.values()]
    made: list[MeasuredRow] = []
    for one in sorted(rows, key=lambda one: (pairs_of(one), labels.index(one.labels["where"]))):
        alike = [*(other for other in made if other.labels["where"] == one.labels["where"]), one]
        seconds = [other.figures["seconds"].median for other in alike]
        grown = exponents.exponent([*map(pairs_of, alike)], seconds) if len(alike) > 1 else None
        made.append(MeasuredRow(one.labels, {**one.figures, "exponent": measuring.one(grown)}))
    return made


def main() -> None:
    """Measures and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, type=pathlib.Path, help="small_parallel_enja")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--pairs", default="2000000,5000000")
    parser.add_argument("--places", default=",".join(PLACES))
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    sizes = [int(size) for size in options.pairs.split(",")]
    # The processes of the engines end with this one, also where it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun = time.monotonic()
    places = options.places.split(",")
    again = {(PLACES[name].label, f"{size:,}") for name in places for size in sizes}
    rows = measuring.kept(
        options.record, lambda labels: (labels["where"], labels["pairs"]) in again
    )
    packages = ("tfx", "apache-beam", "tensorflow")
    for measured in measure(places, sizes, options.data, options.output.resolve()):
        rows.append(measured)
        # It takes an hour: what has been measured is not lost where the next run fails.
        measuring.write(options.record, measuring.table_of(table(rows), 1, machine, packages))
    print(f"all: {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
