"""Runs the pipeline in memory, on Flink and on Spark, and calls its model from Java.

What they wrote and answered must be the same.

python -m tests.engines.run_on_engines [--engine flink] [--keep FOLDER] [--record FILE]
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from tests.end_to_end.conftest import OVERRIDES, made_pairs
from tests.engines import artifacts, call_from_java, clusters

RECIPE = "localization_en_fr"
SETTINGS = (
    *OVERRIDES,
    "training.epochs=1",
    "baseline.head=",
    "evaluation.thresholds={}",
    # Compiled once each for the Exporter, the Evaluator and the Reporter.
    "decoding.batch_buckets=[4]",
    "decoding.length_buckets=[16]",
    # The words are cut by an operation of TensorFlow Text.
    "data.units=subwords",
    "vocabulary.source_size=200",
    "vocabulary.target_size=200",
)

_SOURCES = ("Open the file %(a)s", "Delete page %(x_1)s now", "été 42")
#: What is asked of the model from Java.
CALLS = (
    *((name, {"source": _SOURCES}) for name in ("serving_default", "n_best", "explain")),
    ("serving_default_no_xla", {"source": _SOURCES}),
    ("score", {"source": _SOURCES[:1], "target": ("Ouvrir le fichier %(a)s",)}),
)


#: What is in a row of the table, by what ran the components.
PLACES = {
    "memory": "in memory",
    "flink": "Flink 1.19.3: a JobManager, two TaskManagers of a slot",
    "spark": "Spark 3.5.5: a Master, two Workers of a core",
}
#: The components whose work Beam does.
OF_BEAM = (
    *("ParallelTextExampleGen", "StatisticsGen", "Subwords", "Vocabulary", "Lexicon"),
    *("TextTransform", "Evaluator"),
)


def run(output: pathlib.Path, data: pathlib.Path, *options: str) -> dict[str, float]:
    """Runs the pipeline in a process of its own; returns its seconds, also by component.

    Raises:
        RuntimeError: it failed.
    """
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [sys.executable, "-m", "pipeline.commands.main", "run", RECIPE, *settings]
    begun = time.monotonic()
    finished = subprocess.run(
        [*command, "--data", str(data), "--output", str(output), *options],
        cwd=clusters.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(f"{finished.returncode}: {finished.stderr[-3000:]}")
    stages = json.loads((output / "run.json").read_text())["stages"]
    return {
        "all": round(time.monotonic() - begun, 1),
        **{stage["name"]: stage["seconds"] for stage in stages},
    }


def differing(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Returns the names of what two runs did not write alike."""
    return sorted(key for key in expected | found if expected.get(key) != found.get(key))


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


def main() -> int:
    """Runs it; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=clusters.CLUSTERS, action="append")
    parser.add_argument("--java", action="store_true", help="with --engine: Java, too")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    # The processes of the engines end with this one, also where it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / "pairs.tsv"
        lines = ["\t".join(row) for row in (("source", "target"), *made_pairs())]
        data.write_text("\n".join([*lines, "only one column", lines[1]]) + "\n", "utf-8")
        seconds = run(folder / "memory", data)
        print(f"in memory: {seconds['all']} s", flush=True)
        expected = artifacts.digests(folder / "memory")
        rows = [_row("memory", seconds, len(expected), 0)]
        for name in options.engine or clusters.CLUSTERS:
            try:
                with clusters.CLUSTERS[name](folder / f"{name}-cluster") as (engine, _):
                    where = ("--master", engine.master, "--workers", engine.workers)
                    slots = ("--slots", str(engine.slots))
                    seconds = run(folder / name, data, "--engine", name, *where, *slots)
            except RuntimeError as error:
                print(f"{name}: {error}", flush=True)
                failed = True
                continue
            differ = differing(expected, artifacts.digests(folder / name))
            rows.append(_row(name, seconds, len(expected) - len(differ), len(differ)))
            print(f"{name}: {seconds['all']} s, {len(differ)} artifacts differ", flush=True)
            for key in differ:
                print(f"  {key}")
            failed = failed or bool(differ)
        # Last, since it compiles the model in this process.
        if not options.engine or options.java:
            outputs = call_from_java.compare(folder / "memory" / "models" / RECIPE, CALLS)
            print(f"Java: {outputs} outputs are the same bytes", flush=True)
    if not failed:
        packages = ("tfx", "apache-beam", "tensorflow")
        measuring.write(options.record, measuring.table_of(rows, 1, machine, packages))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
