"""Runs the pipeline in memory, on Flink and on Spark, and calls its model from Java.

What they wrote and answered must be the same.

python -m tests.engines.run_on_engines [--engine flink] [--keep FOLDER] [--json FILE]
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

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


def run(output: pathlib.Path, data: pathlib.Path, *options: str) -> dict:
    """Runs the pipeline in a process of its own; returns its `run.json`, with all its seconds.

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
    facts = json.loads((output / "run.json").read_text())
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "components": {stage["name"]: stage["seconds"] for stage in facts["stages"]},
        "versions": facts["versions"],
    }


def main() -> int:
    """Runs it; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=clusters.CLUSTERS, action="append")
    parser.add_argument("--java", action="store_true", help="with --engine: Java, too")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the results")
    options = parser.parse_args()
    # The processes of the engines end with this one, also where it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / "pairs.tsv"
        lines = ["\t".join(row) for row in (("source", "target"), *made_pairs())]
        data.write_text("\n".join([*lines, "only one column", lines[1]]) + "\n", "utf-8")
        results: dict = {"memory": run(folder / "memory", data)}
        print(f"in memory: {results['memory']['seconds']} s", flush=True)
        expected = artifacts.digests(folder / "memory")
        different = 0
        if not options.engine or options.java:
            outputs = call_from_java.compare(folder / "memory" / "models" / RECIPE, CALLS)
            results["java"] = {"same": outputs}
            print(f"Java: {outputs} outputs are the same bytes", flush=True)
        for name in options.engine or clusters.CLUSTERS:
            try:
                with clusters.CLUSTERS[name](folder / f"{name}-cluster") as (engine, _):
                    where = ("--master", engine.master, "--workers", engine.workers)
                    result = run(
                        folder / name, data, "--engine", name, *where, "--slots", str(engine.slots)
                    )
            except RuntimeError as error:
                print(f"{name}: {error}", flush=True)
                results[name] = {"failed": str(error)}
                different += 1
                continue
            found = artifacts.digests(folder / name)
            differ = sorted(
                key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)
            )
            results[name] = {**result, "same": len(expected) - len(differ), "differ": differ}
            print(f"{name}: {result['seconds']} s, {len(differ)} artifacts differ", flush=True)
            for key in differ:
                print(f"  {key}")
            different += len(differ)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
