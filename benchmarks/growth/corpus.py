"""Measures how time and memory of the components grow with the corpus.

    python -m benchmarks.growth.corpus translation_en_ja --data PATH --output DIR
        --pairs 50000,500000
        --components ingest,statistics,vocabulary,lexicon,transform,training,evaluation

The corpus is two line-aligned files of real text, repeated up to each size. Every repetition after
the first has numbers of its own appended to both sides, so no pair is a duplicate, the hash divides
all of them, and the vocabulary grows as slowly as that of real text. The training makes 300
updates of a tiny model; what grows is the reading before it and the eval split after it. The
evaluation reads the test split, a fiftieth of the pairs, with a tiny untrained model: outputs do
not change how it grows.

Each component runs at each size in a process of its own. The table has its seconds, and the most
memory that the process and its descendants had resident together, sampled every 0.2 seconds;
DIR/progress.json holds the same facts, DIR/growth.svg draws them, --record writes a result file.
`--beam OPTION` is an option for Beam, as in `verbatim run`. An interrupted measurement goes on
where it stopped, if code, packages, machine and options are still the same.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, TypedDict

from benchmarks.growth import exponents
from benchmarks.growth.component_work import COMPONENTS, MODEL, work
from benchmarks.records import measuring, provenance
from benchmarks.records.record import MeasuredRow
from pipeline.common import tensorflow_settings, whole_files
from pipeline.recipes import loading

_TINY_MODEL = {
    "training.max_updates": 300,
    "training.select_by": "loss",
    "model.hidden_size": 32,
    "model.embedding_size": 32,
    "decoding.beam_size": 1,
    "decoding.n_best": 1,
    "decoding.max_length_factor": 0.0,
    "decoding.max_length_offset": 12,
}
_SAMPLE_SECONDS = 0.2


class Row(TypedDict):
    """A component at one size: how long it worked, and the most memory it had."""

    component: str
    pairs: int
    seconds: float
    peak_bytes: int


class Progress:
    """The rows that were measured, in a file, so that an interrupted measurement can go on.

    Args:
        path: of the file; it may be absent.
        conditions: of what the rows depend on. Rows of other conditions are measured again.
    """

    def __init__(self, path: pathlib.Path, conditions: dict[str, Any]) -> None:
        self._path = path
        self._conditions = conditions
        before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self.rows: list[Row] = before["rows"] if before.get("conditions") == conditions else []

    def has(self, component: str, pairs: int) -> bool:
        """Whether a component was measured at a size."""
        return any((row["component"], row["pairs"]) == (component, pairs) for row in self.rows)

    def add(self, row: Row) -> None:
        """Keeps a row."""
        self.rows.append(row)
        whole_files.write_json(self._path, {"conditions": self._conditions, "rows": self.rows})


def grow(
    source_path: pathlib.Path, target_path: pathlib.Path, folder: pathlib.Path, pairs: int
) -> None:
    """Writes line-aligned files `train.LANGUAGE` of a given number of pairs.

    Args:
        source_path, target_path: files of real text; their extensions are the languages.
        folder: where the corpus goes; its other files stay.
        pairs: how many pairs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = [path.read_text(encoding="utf-8").splitlines() for path in (source_path, target_path)]
    with (
        (folder / f"train{source_path.suffix}").open("w", encoding="utf-8") as sources,
        (folder / f"train{target_path.suffix}").open("w", encoding="utf-8") as targets,
    ):
        for number, (source, target) in enumerate(
            itertools.islice(itertools.cycle(zip(*texts)), pairs)
        ):
            repetition = number // len(texts[0])
            added = f" {repetition} {number % 1000}" if repetition else ""
            sources.write(f"{source}{added}\n")
            targets.write(f"{target}{added}\n")


def resident_bytes(pid: int | str) -> int:
    """Returns the memory of a process and its descendants together; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            total = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        children: list[str] = []
        for task in os.listdir(f"/proc/{pid}/task"):
            # A thread may end meanwhile.
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/task/{task}/children") as file,
            ):
                children += file.read().split()
    except (OSError, IndexError):
        return 0
    return total + sum(map(resident_bytes, children))


def measure(arguments: Sequence[str]) -> tuple[float, int]:
    """Runs a command; returns its seconds and its peak of resident bytes.

    Raises:
        SystemExit: it failed; its own message has been printed.
    """
    started, peak = time.monotonic(), 0
    process = subprocess.Popen(arguments)
    while process.poll() is None:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(_SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(
            f"The component ended with status {process.returncode}: {' '.join(arguments)}"
        )
    return time.monotonic() - started, peak


def table(rows: Sequence[Row]) -> str:
    """Returns the Markdown table of the rows."""
    lines = ["| component | pairs | seconds | ms a pair | peak, MB |", "|---|---|---|---|---|"]
    for row in rows:
        each = 1000 * row["seconds"] / row["pairs"]
        cells = [row["component"], f"{row['pairs']:,}", f"{row['seconds']:.0f}", f"{each:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{row['peak_bytes'] / 1e6:,.0f}"]) + " |")
    return "\n".join(lines) + "\n"


def measured(rows: Sequence[Row]) -> list[MeasuredRow]:
    """Returns the rows of the result file."""
    return [
        measuring.row(
            {"component": row["component"], "pairs": row["pairs"]},
            {
                "seconds": measuring.one(row["seconds"]),
                "ms_a_pair": measuring.one(1000 * row["seconds"] / row["pairs"]),
                "peak_mb": measuring.one(row["peak_bytes"] / 1e6),
            },
        )
        for row in rows
    ]


def curves(rows: Sequence[Row]) -> list[exponents.Curve]:
    """Returns the curves of time, then memory, of each component that ran at several sizes."""
    made: list[exponents.Curve] = []
    for component in dict.fromkeys(row["component"] for row in rows):
        own = [row for row in rows if row["component"] == component]
        if len(own) < 2:
            continue
        measures = {
            "seconds": [row["seconds"] for row in own],
            "peak of memory, MB": [row["peak_bytes"] / 1e6 for row in own],
        }
        made += [
            {
                "title": f"{component}: {title}",
                "x_label": "pairs",
                "points": [(row["pairs"], value) for row, value in zip(own, values)],
            }
            for title, values in measures.items()
        ]
    return made


def main() -> None:
    """Measures all components at all sizes and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder with train.SOURCE and train.TARGET"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--pairs", default="50000,500000,5000000")
    parser.add_argument("--components", default=",".join(COMPONENTS))
    parser.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="OPTION",
        help="--beam=--OPTION: an option for Beam; repeatable",
    )
    measuring.add_argument(parser)
    parser.add_argument("--only", nargs=2, metavar=("COMPONENT", "PAIRS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    tensorflow_settings.quiet()
    overrides = [
        "data.eval_files=[]",
        "data.test_files=[]",
        "data.eval_share=0.02",
        "data.test_share=0.02",
    ]
    overrides += [f"{key}={value}" for key, value in _TINY_MODEL.items()]
    recipe = loading.load_recipe(options.recipe, [*overrides, "lexicon.kind=learned"])
    if options.only:
        component, pairs = options.only
        folder = options.output / pairs
        work(component, recipe, folder / "data", folder / "artifacts", options.beam)
        return
    source_path, target_path = (
        options.data / f"train.{language}"
        for language in (recipe.data.source_language, recipe.data.target_language)
    )
    machine = measuring.machine()
    packages = ("tfx", "apache-beam", "tensorflow")
    conditions = {
        "commit": provenance.commit(),
        "packages": provenance.stack(packages),
        "processor": machine.processor,
        "arguments": [options.recipe, str(options.data), *options.beam],
    }
    progress = Progress(options.output / "progress.json", conditions)
    components = options.components.split(",")
    for pairs in map(int, options.pairs.split(",")):
        folder = options.output / str(pairs)
        if not progress.has(components[0], pairs):
            shutil.rmtree(folder, ignore_errors=True)
            grow(source_path, target_path, folder / "data", pairs)
        arguments = [
            sys.executable,
            "-m",
            "benchmarks.growth.corpus",
            options.recipe,
            "--data",
            str(options.data),
        ]
        arguments += [
            "--output",
            str(options.output),
            *(f"--beam={option}" for option in options.beam),
        ]
        for component in components:
            if progress.has(component, pairs):
                continue
            if component == "evaluation":
                measure([*arguments, "--only", MODEL, str(pairs)])
            seconds, peak = measure([*arguments, "--only", component, str(pairs)])
            progress.add(
                {"component": component, "pairs": pairs, "seconds": seconds, "peak_bytes": peak}
            )
            print(table(progress.rows[-1:]).splitlines()[-1], flush=True)
    rows = progress.rows
    if made := curves(rows):
        exponents.write(options.output / "growth.svg", "Growth with the corpus", made)
    print(table(rows))
    measuring.write(options.record, measuring.table_of(measured(rows), 1, machine, packages))


if __name__ == "__main__":
    main()
