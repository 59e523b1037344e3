"""The runs of a campaign: their commands, their files, and how far each is."""

import dataclasses
import json
import os
import pathlib
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from benchmarks.campaign.plan import Plan, Row, Table
from benchmarks.variants import VARIANTS
from pipeline.common import whole_files

#: What stands in shown commands for the folder of the corpora.
DATA = "data"
#: The exit statuses of a run that was measured; 3 is that of a model that is not blessed.
MEASURED = (0, 3)

State = Literal["waiting", "running", "interrupted", "failed", "done"]


@dataclasses.dataclass(frozen=True)
class Folders:
    """Where a campaign reads and writes.

    Attributes:
        data: the public corpora; None where all data are made up.
        output: of the campaign; may be removed when all is done.
        results: of the result files, which are committed.
        shared: whether all runs work in one folder, so that what they have in common is done once.
    """

    data: str | None
    output: pathlib.Path
    results: pathlib.Path
    shared: bool = False


@dataclasses.dataclass(frozen=True)
class Job:
    """One run: a row of a table with one seed, or a whole table of speed.

    Attributes:
        table: the table.
        row: the row; None for a whole table.
        seed: of the training.
        folders: those of the campaign.
    """

    table: Table
    row: Row | None
    seed: int
    folders: Folders

    @property
    def name(self) -> str:
        """`TABLE/ROW-SEED`, or `TABLE`."""
        return f"{self.table.name}/{self.row.name}-{self.seed}" if self.row else self.table.name

    @property
    def stem(self) -> pathlib.Path:
        """What the names of its files begin with."""
        return self.folders.output / self.name

    def file(self, suffix: str) -> pathlib.Path:
        """Returns the path of one of its files."""
        return self.stem.with_name(self.stem.name + suffix)

    @property
    def folder(self) -> pathlib.Path:
        """The run's own folder, which it may share with others."""
        if self.folders.shared:
            return self.folders.output / "run"
        if self.row and self.row.shares:
            owner = dataclasses.replace(self, row=self.table.row(self.row.shares))
            return owner.folder
        return self.stem

    @property
    def facts(self) -> pathlib.Path:
        """What the run wrote as JSON, once it has ended."""
        return self.file(".facts.json")

    @property
    def outputs(self) -> pathlib.Path:
        """The texts that its model made."""
        return self.file(".outputs.jsonl")

    @property
    def log(self) -> pathlib.Path:
        """What the run said."""
        return self.file(".log.txt")

    def command(self) -> list[str]:
        """Returns the command line that runs it."""
        folders = self.folders
        words = self._words(
            folders.data or "", folders.output, self.folder, self.file(".part.json")
        )
        if words[0] == "verbatim":
            return [sys.executable, "-m", "pipeline.commands.main", *words[1:]]
        return [sys.executable, *words[1:]] if words[0] == "python" else words

    def shown_command(self) -> str:
        """Returns the command line as people may type it, with a folder of its own."""
        runs = pathlib.Path("runs")
        own = runs / self.name
        return shlex.join(self._words(DATA, runs, own, pathlib.Path(f"{own}.json")))

    def _words(
        self, data: str, runs: pathlib.Path, output: pathlib.Path, json_path: pathlib.Path
    ) -> list[str]:
        own = self.row.command if self.row else self.table.command
        if own:
            places = {"data": data, "runs": runs, "output": output}
            return [word.format(**places, seed=self.seed, json=json_path) for word in own]
        assert self.row
        row, table = self.row, self.table
        words = ["verbatim", "run", row.recipe or table.recipe, "--output", str(output)]
        if corpus := table.data if row.data is None else row.data:
            words += ["--data", ",".join(os.path.join(data, part) for part in corpus.split(","))]
        overrides = [*table.set, *VARIANTS.get(row.variant, ()), *row.set]
        for override in (*overrides, f"training.seed={self.seed}", "baseline.head="):
            words += ["--set", override]
        return [*words, "--json", str(json_path)]

    def read_status(self) -> "Status":
        """Returns how far it is, as its file says.

        A run of another command, because the campaign has changed since, counts for nothing.
        """
        path = self.file(".status.json")
        if not path.is_file():
            return Status(self.shown_command())
        status = Status(**json.loads(path.read_text(encoding="utf-8")))
        return status if status.command == self.shown_command() else Status(self.shown_command())

    def write_status(self, status: "Status") -> None:
        """Writes how far it is."""
        self.stem.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write_json(self.file(".status.json"), dataclasses.asdict(status))


@dataclasses.dataclass(frozen=True)
class Status:
    """How far a job is.

    Attributes:
        command: as shown; what was run.
        state: `running` also if the campaign was killed meanwhile; see `seen`.
        pid: of the process while it runs.
        started: seconds since 1970.
        seconds: of all attempts that have ended.
        attempts: how often it was started.
        message: why it failed.
        commit, machine: of the last attempt, for the record.
    """

    command: str
    state: State = "waiting"
    pid: int = 0
    started: float = 0.0
    seconds: float = 0.0
    attempts: int = 0
    message: str = ""
    commit: str = ""
    machine: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def seen(self) -> State:
        """The state; a run whose process is gone was interrupted."""
        if self.state == "running" and not _alive(self.pid):
            return "interrupted"
        return self.state


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def jobs_of(plan: Plan, folders: Folders, only: Sequence[str] = ()) -> list[Job]:
    """Returns the jobs of a campaign, in the order in which they are run.

    Within a table the first seed of every row comes before the second: an early look at the whole
    table is worth more than one row complete. What must run alone comes last.

    Args:
        plan: the campaign.
        folders: where it reads and writes.
        only: names of tables, or of rows as `TABLE/ROW`; all by default.
    """
    jobs = [job for table in plan.tables for job in _jobs_of(table, folders)]
    if only:
        jobs = [job for job in jobs if _names(job) & set(only)]
    return sorted(jobs, key=lambda job: job.table.alone)


def _jobs_of(table: Table, folders: Folders) -> Iterable[Job]:
    if table.command:
        yield Job(table, None, 0, folders)
        return
    for seed in table.seeds:
        for row in table.rows:
            yield Job(table, row, seed, folders)


def _names(job: Job) -> set[str]:
    row = f"{job.table.name}/{job.row.name}" if job.row else job.table.name
    return {job.table.name, row, job.name}


def read_facts(job: Job) -> Any:
    """Returns what a finished run wrote as JSON."""
    return json.loads(job.facts.read_text(encoding="utf-8"))
