"""Runs of the whole pipeline, each a process, that can be compared with each other."""

import json
import pathlib
import sys
import time
from collections.abc import Sequence

from pipeline.runners.engine import Engine
from tests.end_to_end.conftest import OVERRIDES, made_pairs
from tests.engines import clusters

RECIPE = "localization_en_fr"
SETTINGS = (
    *OVERRIDES,
    "training.epochs=1",
    # Weights are compared bit for bit.
    "training.deterministic=true",
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


def write_data(path: pathlib.Path) -> None:
    """Writes made pairs, a line that cannot be read, and a pair that stands there twice."""
    lines = ["\t".join(row) for row in (("source", "target"), *made_pairs())]
    path.write_text("\n".join([*lines, "only one column", lines[1]]) + "\n", "utf-8")


def on(engine: Engine) -> list[str]:
    """Returns the options of a run on an engine, as the guide has them."""
    where = ("--master", engine.master, "--workers", engine.workers)
    kept = ["--beam=--storage_level=MEMORY_AND_DISK"] if engine.name == "spark" else []
    return ["--engine", engine.name, *where, "--slots", str(engine.slots), *kept]


def start(
    processes: clusters.Processes,
    name: str,
    data: pathlib.Path,
    output: pathlib.Path,
    *options: str,
    recipe: str = RECIPE,
    settings: Sequence[str] = SETTINGS,
) -> None:
    """Starts a run; what it prints is in its log.

    Args:
        processes: those to which the run's process is added.
        name: of the process.
        data: the pairs.
        output: the run's folder.
        options: more of them.
        recipe: its name.
        settings: what is set in it.
    """
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "pipeline.commands.main", "run", recipe, *words]
    where = ["--data", str(data), "--output", str(output)]
    environment = {"PYTHONPATH": str(clusters.ROOT), **clusters.COMPILES_QUICKLY}
    processes.start(name, [*command, *where, *options], **environment)


def finish(processes: clusters.Processes, name: str, output: pathlib.Path) -> dict[str, float]:
    """Waits for a run that has just been started; returns its seconds, also by component.

    Raises:
        RuntimeError: it failed; the end of its log.
    """
    begun = time.monotonic()
    if status := processes.by_name[name].wait():
        raise RuntimeError(f"{status}: {processes.log_of(name)[-3000:]}")
    stages = json.loads((output / "run.json").read_text())["stages"]
    return {
        "all": round(time.monotonic() - begun, 1),
        **{stage["name"]: stage["seconds"] for stage in stages},
    }
