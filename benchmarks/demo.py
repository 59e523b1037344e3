"""The figures of `make demo`, as result files.

    python -m benchmarks.demo --record benchmarks/results/demo.json
    python -m benchmarks.demo --machines benchmarks/results/demo_machines.json

The first writes the figures of the README's table, from three trainings that differ only in their
seeds. The second adds a row for this machine and these packages to a table of all of them, from the
demo itself. Both train what they need, or with `--made` read what was left in `build`.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import cast

from benchmarks.records import collecting, measuring, provenance, record
from benchmarks.records.collecting import Outputs
from benchmarks.records.record import MeasuredRow, Origin, TableRecord
from benchmarks.tables import cells
from pipeline.commands import demo
from pipeline.reporting.facts import RunFacts

COMMAND = "make demo"
SEEDS = (1, 2, 3)


@dataclasses.dataclass(frozen=True)
class Training:
    """A run of the demo's recipe with one seed, that of the first being the demo's own."""

    seed: int

    @property
    def folder(self) -> pathlib.Path:
        """What it fills."""
        return (
            demo.OUTPUT
            if self.seed == SEEDS[0]
            else pathlib.Path("build/demo_seeds", f"{self.seed}")
        )

    @property
    def arguments(self) -> list[str]:
        """The module to run, and its arguments."""
        if self.seed == SEEDS[0]:
            return [demo.__name__]
        settings = [*demo.OVERRIDES, f"training.seed={self.seed}"]
        return [
            *(
                "pipeline.commands.main",
                "run",
                demo.RECIPE,
                "--data",
                f"{demo.OUTPUT / 'catalogues'}",
            ),
            *("--output", str(self.folder)),
            *(word for setting in settings for word in ("--set", setting)),
        ]

    @property
    def command(self) -> str:
        """What to type."""
        if self.seed == SEEDS[0]:
            return COMMAND
        return shlex.join(["verbatim", *self.arguments[1:]])


def read_facts(folder: pathlib.Path = demo.OUTPUT) -> RunFacts:
    """Returns what a run has left behind.

    Raises:
        OSError: it has not run.
    """
    parts = (
        json.loads((folder / name).read_text("utf-8")) for name in ("run.json", "metrics.json")
    )
    facts: dict[str, object] = {}
    for part in parts:
        facts |= part
    return cast(RunFacts, facts)


def table_of(trainings: Sequence[Training], origin: Origin) -> TableRecord:
    """Returns the figures of both systems, and the test between them over seeds and sentences.

    Raises:
        OSError: some run is missing.
    """
    all_facts = [read_facts(training.folder) for training in trainings]
    first = all_facts[0]
    names = [system["name"] for system in first["systems"]]
    outputs = [
        [Outputs.read(training.folder / "outputs" / f"{name}.jsonl") for training in trainings]
        for name in names
    ]
    ours, theirs = outputs
    metrics = first["recipe"]["evaluation"]["metrics"]
    tests = collecting.tests(first, metrics, ours, theirs, names[1])
    rows = []
    for place, (name, tested) in enumerate(zip(names, (tests, []))):
        runs = [
            collecting.run_record(
                facts, dataclasses.replace(origin, command=training.command), training.seed, place
            )
            for training, facts in zip(trainings, all_facts)
        ]
        rows.append(collecting.row_record(name, runs, tested))
    return TableRecord("demo", rows)


def machine_row(facts: RunFacts, origin: Origin) -> MeasuredRow:
    """Returns the row of one machine and its packages."""
    figures: dict[str, record.Spread | None] = {}
    for system in facts["systems"]:
        metrics, name = system["metrics"], system["name"].replace("_", " ")
        bleu, kept = metrics["bleu"], metrics["placeholder_fidelity"]
        figures[f"BLEU, {name}"] = record.Spread(
            bleu["value"] or 0.0, bleu.get("low") or 0.0, bleu.get("high") or 0.0
        )
        figures[f"placeholders kept, {name}"] = measuring.one(kept["value"])
    figures["minutes"] = measuring.one(facts["seconds"] / 60)
    versions = collecting.without_own_version(facts["versions"])
    labels = {"machine": cells.machine(origin.machine), "packages": cells.stack(versions)}
    return MeasuredRow(labels, figures)


def with_machine(table: TableRecord | None, row: MeasuredRow, origin: Origin) -> TableRecord:
    """Returns the table of all machines with a row added, or replaced."""
    others = [known for known in table.measured if known.labels != row.labels] if table else []
    return TableRecord("demo_machines", measured=[*others, row], origin=origin, rounds=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo and writes the files that are asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--made", action="store_true", help="everything has run already")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--machines", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    trainings = [Training(seed) for seed in (SEEDS if options.record else SEEDS[:1])]
    for training in () if options.made else trainings:
        status = subprocess.run([sys.executable, "-m", *training.arguments]).returncode
        if status:
            return status
    origin = Origin(COMMAND, provenance.commit(), provenance.day(), provenance.machine(), {})
    if options.record:
        record.write_file(table_of(trainings, origin), options.record)
    if options.machines:
        known = record.read_file(options.machines) if options.machines.is_file() else None
        row = machine_row(read_facts(), origin)
        record.write_file(with_machine(known, row, origin), options.machines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
