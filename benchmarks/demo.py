"""The figures of `make demo`, as result files.

    python -m benchmarks.demo --record benchmarks/results/demo.json
    python -m benchmarks.demo --machines benchmarks/results/demo_machines.json

The first writes the figures of the README's table, the second adds a row for this machine and these
packages to a table of all of them. Both run the demo, or with `--made` read what it has left in
`build/demo`.
"""

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import cast

from benchmarks.records import collecting, measuring, provenance, record
from benchmarks.records.record import MeasuredRow, Origin, RowRecord, TableRecord
from benchmarks.tables import cells
from pipeline.commands import demo
from pipeline.reporting.facts import RunFacts

COMMAND = "make demo"


def read_facts(folder: pathlib.Path = demo.OUTPUT) -> RunFacts:
    """Returns what the demo has left behind.

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


def table_of(facts: RunFacts, origin: Origin) -> TableRecord:
    """Returns the figures of both systems, and the demo's own test between them."""
    seed = facts["recipe"]["training"]["seed"]
    first, second = (system["name"] for system in facts["systems"])
    tests = [
        record.TestRecord(metric, second, None, None, None, p_value, "paired bootstrap")
        for metric, p_value in facts["comparison"].items()
    ]
    rows = [
        RowRecord(name, [collecting.run_record(facts, origin, seed, place)], tested)
        for place, (name, tested) in enumerate(((first, tests), (second, [])))
    ]
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
    parser.add_argument("--made", action="store_true", help="the demo has run already")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--machines", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if not options.made:
        status = subprocess.run([sys.executable, "-m", demo.__name__]).returncode
        if status:
            return status
    facts = read_facts()
    origin = Origin(COMMAND, provenance.commit(), provenance.day(), provenance.machine(), {})
    if options.record:
        record.write_file(table_of(facts, origin), options.record)
    if options.machines:
        known = record.read_file(options.machines) if options.machines.is_file() else None
        row = machine_row(facts, origin)
        record.write_file(with_machine(known, row, origin), options.machines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
