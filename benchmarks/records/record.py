"""The records of `benchmarks/results/NAME.json`: a table's figures, and where they come from.

A table of trained models has a `RowRecord` for each row, with a `RunRecord` for each seed. A table
of speed has a `MeasuredRow` for each row. A program wrote every one of them.

Speed depends on the stack. A table with `by_stack` has a file for each, such as
`decoding-tensorflow-2.21.json`, and one stack never overwrites another.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from pipeline.common import whole_files

FORMAT = 1
RESULTS = pathlib.Path(__file__).parents[1] / "results"
# What a table's stack is named after: the first of these that it used.
_BACKENDS = ("tensorflow", "jax")
# A list of numbers, each on a line of its own.
_NUMBERS = re.compile(r"\[\n\s*([^\[\]{}\"]*?)\n\s*\]")


class RecordError(Exception):
    """A result file that cannot be read; its message is one sentence."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """The part of a machine that a program used.

    Attributes:
        processor: its model's name.
        cores: how many of its cores the program used.
        memory_gb: of the whole machine.
        accelerator: the model's name, or "".
        load: one-minute load average before the measurement; None where it does not matter.
    """

    processor: str
    cores: int
    memory_gb: float
    accelerator: str = ""
    load: float | None = None


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where figures come from.

    Attributes:
        command: what to type to get them again; `data` is the folder of the public corpora.
        commit: of the code, with a `+` where files had changed since; "" outside git.
        date: the day on which the command ended, such as `2026-11-26`.
        machine: what it ran on.
        stack: versions by package.
    """

    command: str
    commit: str
    date: str
    machine: Machine
    stack: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Value:
    """A metric of one run.

    Attributes:
        value: None where it is undefined.
        low, high: 95 % bootstrap interval over the sentences; None without one.
        unit: `points` or `share`.
        lower_is_better: whether it is an error.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = "points"
    lower_is_better: bool = False


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A model, trained with one seed and measured.

    Attributes:
        origin: where the figures come from.
        seed: of the training.
        pairs: how many pairs of the measured split; 0 where it is a running text.
        epochs, updates: of the training; a part of an epoch counts as one.
        converged: see `benchmarks.records.convergence`; None where nobody can tell.
        minutes: of the training.
        parameters: how many numbers the network has.
        metrics: by name.
        eval_losses: on the eval split, one for each evaluation.
        recipe: a digest of its keys without the seed; "" in records of before. Those that begin
            with `cut-` are of trainings before commit 660f673, which chose epochs by outputs that
            were cut; new seeds replace them.
    """

    origin: Origin
    seed: int
    pairs: int
    epochs: int
    updates: int
    converged: bool | None
    minutes: float
    parameters: int
    metrics: dict[str, Value]
    eval_losses: list[float]
    recipe: str = ""


@dataclasses.dataclass(frozen=True)
class TestRecord:
    """A test of a row against another, over seeds and sentences.

    Attributes:
        metric: the metric's name.
        against: the name of the other row.
        difference: this row's mean minus the other's; `low` and `high` are its 95 % interval.
        p_value: two-sided.
        signature: test, resamples, seeds.
    """

    # Its name is not that of a test class.
    __test__ = False

    metric: str
    against: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    signature: str


@dataclasses.dataclass(frozen=True)
class RowRecord:
    """A system of a table: its trainings, and its tests against another."""

    name: str
    runs: list[RunRecord]
    tests: list[TestRecord] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Spread:
    """A quantity that was measured in several rounds; without rounds, the three are one."""

    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class MeasuredRow:
    """A row of a table of speed, size or the like.

    Attributes:
        labels: what was measured, by column.
        figures: the quantities, by column; None where there is none.
    """

    labels: dict[str, str]
    figures: dict[str, Spread | None]


@dataclasses.dataclass(frozen=True)
class TableRecord:
    """All figures of a table.

    Attributes:
        name: of the table, and of the file.
        rows: trained models.
        measured: rows of a table of speed, which has one `origin` and a number of `rounds`.
        notes: sentences for the reader, such as which program is left out and why.
    """

    name: str
    rows: list[RowRecord] = dataclasses.field(default_factory=list)
    measured: list[MeasuredRow] = dataclasses.field(default_factory=list)
    origin: Origin | None = None
    rounds: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)

    def row(self, name: str) -> RowRecord | None:
        """Returns the row of a name, or None."""
        return next((row for row in self.rows if row.name == name), None)

    def with_row(self, row: RowRecord) -> "TableRecord":
        """Returns the table with a row replaced, or added at the end."""
        names = [known.name for known in self.rows]
        rows = [row if known.name == row.name else known for known in self.rows]
        return dataclasses.replace(self, rows=rows if row.name in names else [*rows, row])


def read(name: str, folder: pathlib.Path = RESULTS) -> TableRecord | None:
    """Returns the figures of a table, or None where it has no file.

    Raises:
        RecordError: the file is broken, or of another format.
    """
    path = folder / f"{name}.json"
    return read_file(path) if path.is_file() else None


def stack(record: TableRecord) -> tuple[str, tuple[int, ...]] | None:
    """Returns the stack of a table of speed: its backend and the first two parts of its version.

    None where the table does not say.
    """
    versions = record.origin.stack if record.origin else {}
    for backend in _BACKENDS:
        if version := re.match(r"(\d+)\.(\d+)", versions.get(backend, "")):
            return backend, (int(version[1]), int(version[2]))
    return None


def stem_by_stack(record: TableRecord) -> str:
    """Returns the name of the file of a table with `by_stack`: `decoding-tensorflow-2.21`."""
    found = stack(record)
    if found is None:
        return record.name
    backend, version = found
    return f"{record.name}-{backend}-{'.'.join(map(str, version))}"


def read_by_stack(name: str, folder: pathlib.Path = RESULTS) -> list[TableRecord]:
    """Returns the figures of a table on each stack, the newest stack first.

    Raises:
        RecordError: as `read`.
    """
    paths = {path for backend in _BACKENDS for path in folder.glob(f"{name}-{backend}-*.json")}
    read_ones = [read_file(path) for path in sorted(paths)]
    if (plain := read(name, folder)) is not None:
        read_ones.append(plain)
    return sorted(read_ones, key=lambda one: (stack(one) or ("", ()))[1], reverse=True)


def write_by_stack(record: TableRecord, folder: pathlib.Path = RESULTS) -> pathlib.Path:
    """Writes the figures of a table beside those of other stacks; returns the file's path."""
    path = folder / f"{stem_by_stack(record)}.json"
    write_file(record, path)
    return path


def read_file(path: pathlib.Path) -> TableRecord:
    """Returns the figures that a file holds; as `read`."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if tree["format"] != FORMAT:
            raise RecordError(
                f"{path} has format {tree['format']}; this code reads format {FORMAT}."
            )
        return _table(tree)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} is no result file: {error!r}.") from None


def write(record: TableRecord, folder: pathlib.Path = RESULTS) -> pathlib.Path:
    """Writes the figures of a table; returns the file's path."""
    path = folder / f"{record.name}.json"
    write_file(record, path)
    return path


def write_file(record: TableRecord, path: pathlib.Path) -> None:
    """Writes the figures of a table into a file of any name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_files.write_text(path, as_text({"format": FORMAT, **dataclasses.asdict(record)}))


def as_text(tree: Any) -> str:
    """Returns a record's JSON, with rounded numbers and one line for a list of numbers."""
    text = json.dumps(_rounded(tree), indent=1, ensure_ascii=False, allow_nan=False)
    return _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


def _rounded(tree: Any) -> Any:
    """Returns numbers with six significant digits: more say nothing, and change with a machine."""
    if isinstance(tree, float):
        return float(f"{tree:.6g}")
    if isinstance(tree, Mapping):
        return {key: _rounded(value) for key, value in tree.items()}
    return [_rounded(value) for value in tree] if isinstance(tree, (list, tuple)) else tree


def origin_of(tree: Mapping[str, Any]) -> Origin:
    """Returns the `Origin` that JSON holds."""
    return Origin(**{**tree, "machine": Machine(**tree["machine"])})


def run_of(tree: Mapping[str, Any]) -> RunRecord:
    """Returns the `RunRecord` that JSON holds."""
    metrics = {name: Value(**value) for name, value in tree["metrics"].items()}
    return RunRecord(**{**tree, "origin": origin_of(tree["origin"]), "metrics": metrics})


def _table(tree: Mapping[str, Any]) -> TableRecord:
    return TableRecord(
        name=tree["name"],
        rows=[
            RowRecord(
                row["name"],
                [run_of(run) for run in row["runs"]],
                [TestRecord(**test) for test in row["tests"]],
            )
            for row in tree["rows"]
        ],
        measured=[
            MeasuredRow(
                row["labels"],
                {
                    name: None if spread is None else Spread(**spread)
                    for name, spread in row["figures"].items()
                },
            )
            for row in tree["measured"]
        ],
        origin=None if tree["origin"] is None else origin_of(tree["origin"]),
        rounds=tree["rounds"],
        notes=tree.get("notes", []),
    )
