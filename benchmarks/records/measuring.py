"""What a program that measures speed leaves behind: a table on the terminal, and a result file."""

import argparse
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.records import provenance, record
from benchmarks.records.record import Machine, MeasuredRow, Spread, TableRecord


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option by which a campaign asks for the result file."""
    parser.add_argument(
        "--record", type=pathlib.Path, metavar="FILE", help="write a result file (JSON)"
    )


def machine(cores: int | None = None, accelerator: str = "") -> Machine:
    """Returns the facts of this machine and its load; to be called before the measurement."""
    return provenance.machine(cores, with_load=True, accelerator=accelerator)


def spread(of: Mapping[str, Any], factor: float = 1.0) -> Spread:
    """Returns what `benchmarks.peers.rounds.spread` returned, times a factor."""
    return Spread(of["median"] * factor, of["low"] * factor, of["high"] * factor)


def one(value: float | None) -> Spread | None:
    """Returns a quantity that was measured once; None for None."""
    return None if value is None else Spread(value, value, value)


def row(labels: Mapping[str, Any], figures: Mapping[str, Spread | None]) -> MeasuredRow:
    """Returns a row; numbers among its labels have separators."""
    shown = {
        name: f"{label:,}" if isinstance(label, int) else str(label)
        for name, label in labels.items()
    }
    return MeasuredRow(shown, dict(figures))


def sentence(facts: Any) -> str:
    """Returns facts as JSON has them in words: `answered 335, failed 0, memory 1,601 to 1,608`."""
    if isinstance(facts, Mapping):
        return ", ".join(f"{name} {sentence(value)}" for name, value in facts.items()) or "none"
    if isinstance(facts, list):
        numbers = facts and all(isinstance(value, (int, float)) for value in facts)
        ends = facts if len(facts) < 2 or not numbers else [facts[0], "to", facts[-1]]
        return " ".join(map(sentence, ends)) or "none"
    return f"{facts:,}" if isinstance(facts, int) else str(facts)


def table_of(
    rows: Sequence[MeasuredRow],
    rounds: int,
    measured_on: Machine,
    packages: Iterable[str] = ("tensorflow", "keras"),
    name: str = "",
    notes: Iterable[str] = (),
) -> TableRecord:
    """Returns the figures of a table that this process measured.

    Args:
        rows: what it measured.
        rounds: how often.
        measured_on: what `machine` returned before.
        packages: whose versions matter.
        name: of the table; a campaign gives it its own.
        notes: sentences for the reader.
    """
    module = getattr(sys.modules["__main__"], "__spec__", None)
    program = ["python", "-m", module.name] if module else ["python", *sys.argv[:1]]
    command = shlex.join([*program, *sys.argv[1:]])
    origin = provenance.origin(command, measured_on, packages)
    return TableRecord(name, measured=list(rows), origin=origin, rounds=rounds, notes=list(notes))


def kept(
    path: pathlib.Path | None, again: Callable[[Mapping[str, str]], bool]
) -> list[MeasuredRow]:
    """Returns the rows that a result file has already, but for those that are measured again.

    Args:
        path: of the file that the command line asked for; it may be absent.
        again: whether the row of these labels is measured again.
    """
    if not (path and path.is_file()):
        return []
    return [one for one in record.read_file(path).measured if not again(one.labels)]


def write(path: pathlib.Path | None, table: TableRecord) -> None:
    """Writes the result file that the command line asked for, if it did."""
    if path:
        record.write_file(table, path)
