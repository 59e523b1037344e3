"""The fixed costs of a run: what each component takes for a few dozen pairs.

    python -m benchmarks.tiny_run

Each round gives `verbatim run` the same pairs and a new folder, from the start of its process to
its end. Seconds of components are those that the run itself reports in `run.json`. The rest is the
start of the process, its imports and its end. The recipe trains and exports a baseline too; each
round has a second run without one.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from benchmarks.peers import rounds
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from pipeline.commands.run import NOT_BLESSED

RECIPE = "localization_en_fr"
#: A training of a second; the search and its buckets are small too.
SETTINGS = (
    "data.format=tsv",
    "data.max_tokens=16",
    "lexicon.kind=learned",
    "model.hidden_size=32",
    "model.embedding_size=32",
    "training.epochs=1",
    "training.max_seconds=0",
    "training.batch_tokens=256",
    "decoding.beam_size=2",
    "decoding.n_best=2",
    "decoding.batch_buckets=[1, 4]",
    "decoding.length_buckets=[8, 16]",
    "evaluation.bootstrap_samples=50",
)
VERBS = {"Delete": "Supprimer", "Open": "Ouvrir", "Close": "Fermer", "Move": "Déplacer"}
NOUNS = {"page": "la page", "file": "le fichier", "folder": "le dossier", "site": "le site"}
NO_BASELINE = ("baseline.head=",)
PAIRS_OF_A_PHRASE = 5
#: The rows of whole processes, and that of what is no component.
WHOLE, ALONE, REST = "whole run", "whole run, no baseline", "start, imports and end"


@dataclasses.dataclass(frozen=True)
class Run:
    """What a run took.

    Attributes:
        seconds: from the start of its process to its end.
        cpu_seconds: processor time of the process.
        peak_bytes: the most memory that it had.
        components: seconds of each, in their order.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    components: Mapping[str, float]


def write_pairs(path: pathlib.Path) -> int:
    """Writes the pairs, each with a placeholder of its own; returns their number."""
    lines = [
        f"{verb} the {noun} %(item_{number})s\t{to_verb} {to_noun} %(item_{number})s"
        for number in range(PAIRS_OF_A_PHRASE)
        for verb, to_verb in VERBS.items()
        for noun, to_noun in NOUNS.items()
    ]
    path.write_text("\n".join(["source\ttarget", *lines]) + "\n", encoding="utf-8")
    return len(lines)


def command(data: pathlib.Path, output: pathlib.Path, settings: Sequence[str] = ()) -> list[str]:
    """Returns the command of a run, with more settings than those of every run."""
    settings = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
    program = [sys.executable, "-m", "pipeline.commands.main", "run", RECIPE]
    return [*program, "--data", str(data), "--output", str(output), *settings]


def measure(settings: Sequence[str] = ()) -> Run:
    """Runs once, with more settings than those of every run.

    Raises:
        RuntimeError: the run failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        data, output = pathlib.Path(scratch) / "pairs.tsv", pathlib.Path(scratch) / "run"
        write_pairs(data)
        log = pathlib.Path(scratch) / "log"
        with log.open("wb") as file:
            started = time.perf_counter()
            process = subprocess.Popen(command(data, output, settings), stdout=file, stderr=file)
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        # A training of a second need not be good enough.
        if process.returncode not in (0, NOT_BLESSED):
            raise RuntimeError(f"The run failed: {log.read_text('utf-8', 'replace')[-2000:]}")
        facts = json.loads((output / "run.json").read_text("utf-8"))
    components = {stage["name"]: stage["seconds"] for stage in facts["stages"]}
    # The kernel counts in KiB.
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, components)


def rows_of(runs: Sequence[Run], alone: Sequence[Run]) -> list[MeasuredRow]:
    """Returns the rows of the table.

    Args:
        runs: those with a baseline.
        alone: those without one, of the same rounds.
    """
    parts = {
        REST: [run.seconds - sum(run.components.values()) for run in runs],
        **{name: [run.components[name] for run in runs] for name in runs[0].components},
    }
    wholes = [run.seconds for run in runs]
    return [
        _row_of_wholes(WHOLE, runs, wholes),
        _row_of_wholes(ALONE, alone, wholes),
        *(_row(name, seconds, wholes) for name, seconds in parts.items()),
    ]


def _row(name: str, seconds: Sequence[float], wholes: Sequence[float]) -> MeasuredRow:
    """Returns the row of a part, with its share of the whole runs."""
    figures = {
        "seconds": measuring.spread(rounds.spread(seconds)),
        "share": measuring.spread(
            rounds.spread([one / whole for one, whole in zip(seconds, wholes)])
        ),
    }
    return measuring.row({"part": name}, {**figures, "cpu": None, "peak": None})


def _row_of_wholes(name: str, runs: Sequence[Run], wholes: Sequence[float]) -> MeasuredRow:
    """Returns the row of whole processes, with their processor time and memory."""
    row = _row(name, [run.seconds for run in runs], wholes)
    row.figures["cpu"] = measuring.spread(rounds.spread([run.cpu_seconds for run in runs]))
    row.figures["peak"] = measuring.spread(rounds.spread([run.peak_bytes / 1e6 for run in runs]))
    return row


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    runs: list[Run] = []
    alone: list[Run] = []
    for number in range(options.rounds):
        runs.append(measure())
        alone.append(measure(NO_BASELINE))
        took = f"{runs[-1].seconds:.1f} s, {runs[-1].cpu_seconds:.1f} s of processor time"
        without = f"without a baseline {alone[-1].seconds:.1f} s"
        print(f"  {number + 1}: {took}; {without}", file=sys.stderr, flush=True)
    packages = ("tfx", "tensorflow", "apache-beam")
    table = measuring.table_of(rows_of(runs, alone), options.rounds, machine, packages)
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
