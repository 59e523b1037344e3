"""From finished jobs to result files."""

import dataclasses
import json
import shutil
from collections.abc import Sequence

from benchmarks.campaign.jobs import Job, read_facts
from benchmarks.campaign.plan import Row, Table
from benchmarks.records import collecting, provenance, record
from benchmarks.records.record import Machine, Origin, RowRecord, RunRecord, TableRecord


class NoResult(Exception):
    """A run that ended well and left no result that can be read; its message is one sentence."""


def keep(job: Job) -> None:
    """Takes what a run has just left behind out of its folder, which the next run may change.

    Raises:
        NoResult: the run left nothing that can be read.
    """
    part = job.file(".part.json")
    try:
        facts = json.loads(part.read_text(encoding="utf-8"))
        if job.row:
            _ = facts["systems"][job.row.system]["metrics"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NoResult(f"It wrote no result that can be read ({error!r}).") from None
    system = facts["systems"][job.row.system]["name"] if job.row else ""
    # One file for each system; none of a language model.
    found = sorted((job.folder / "outputs").glob("*.jsonl"))
    own = [path for path in found if path.stem == system] or found
    if job.row and own:
        shutil.copyfile(own[0], job.outputs)
    part.replace(job.facts)


def update_results(jobs: Sequence[Job], table: Table, finished: Job | None = None) -> list[str]:
    """Writes the result file of a table, from the jobs of the campaign that are done.

    A row of the file stays as it is where nothing has changed, and where seeds that it has already
    are some of its seeds. Seeds that were run elsewhere stay beside new ones of the same model.
    Tests are made when all seeds of both rows have been run here, as they need the outputs.

    Args:
        jobs: of the campaign.
        table: the table.
        finished: the job that has just ended; its row, and those tested against it, have changed.

    Returns:
        A sentence for each run that is left out.
    """
    folder = jobs[0].folders.results
    old = record.read(table.name, folder)
    known = TableRecord(table.name, old.rows if old else [])
    done_by_row = {
        row.name: [
            job
            for job in jobs
            # Rows of two tables may be alike.
            if job.table == table and job.row == row and job.read_status().state == "done"
        ]
        for row in table.rows
    }
    changed = finished.row.name if finished and finished.row else ""
    sentences: list[str] = []
    for row in table.rows:
        done, before = done_by_row[row.name], known.row(row.name)
        base = done_by_row.get(table.against, [])
        can_test = row.name != table.against and len(done) == len(base) == len(table.seeds)
        untested = can_test and before is not None and not before.tests
        concerned = untested or (changed != "" and changed in (row.name, table.against))
        new_seed = finished.seed if finished and changed == row.name else None
        if not done or not _is_news(done, before, concerned, new_seed):
            continue
        runs, left_out = _of_one_model(done, row, before)
        sentences += [
            f"{table.name}/{row.name}-{seed}: left out, for its recipe was another."
            for seed in left_out
        ]
        tested = []
        if can_test and not left_out:
            tested = collecting.tests(
                read_facts(done[0]),
                table.metrics,
                [collecting.Outputs.read(job.outputs) for job in done],
                [collecting.Outputs.read(job.outputs) for job in base],
                table.against,
            )
        known = known.with_row(collecting.row_record(row.name, runs, tested))
    if known.rows:
        record.write(_ordered(known, table), folder)
    return sentences


def _is_news(
    done: Sequence[Job], before: RowRecord | None, changed: bool, new_seed: int | None
) -> bool:
    """Whether the jobs of a row say more than its row of the result file.

    With as many seeds they do only if `changed`. Seeds that the row lacks are news if it is of the
    same model as the newest job.

    Args:
        done: the jobs.
        before: the row of the file.
        changed: whether the row, or what it is tested against, has a new run.
        new_seed: that of the run that has just ended, if it is of this row.
    """
    if before is None:
        return True
    commands = {run.seed: run.origin.command for run in before.runs}
    here = {job.seed: job.shown_command() for job in done}
    if any(commands.get(seed, command) != command for seed, command in here.items()):
        return True
    if new_seed is not None and new_seed not in commands:
        return True
    newest = _newest(done)
    if here.keys() - commands.keys() and newest.row:
        model = run_record(newest, newest.row)
        known = {(run.recipe, run.parameters) for run in before.runs}
        if model.recipe and (model.recipe, model.parameters) in known:
            return True
    return len(here) > len(commands) or (changed and len(here) == len(commands))


def _newest(done: Sequence[Job]) -> Job:
    return max(done, key=lambda job: job.read_status().started)


def _of_one_model(
    done: Sequence[Job], row: Row, before: RowRecord | None
) -> tuple[list[RunRecord], list[int]]:
    """Returns the runs of a row in the order of their seeds, and the seeds that are left out.

    All are of the same model as the newest run: their recipe had the same keys, and they have as
    many parameters. Of a row with a command of its own, the campaign has their command, too.

    Args:
        done: the jobs of the row that are done here.
        row: the row.
        before: the row of the result file, whose other seeds were run elsewhere.
    """
    newest = _newest(done)
    runs = {run.seed: run for run in before.runs} if before else {}
    runs |= {job.seed: run_record(job, row) for job in done}
    model = runs[newest.seed]

    def is_same(run: RunRecord) -> bool:
        if row.command:
            command = dataclasses.replace(newest, seed=run.seed).shown_command()
            if run.origin.command != command:
                return False
        return (run.recipe, run.parameters) == (model.recipe, model.parameters)

    same = [run for _, run in sorted(runs.items()) if is_same(run)]
    return same, sorted(runs.keys() - {run.seed for run in same})


def _ordered(known: TableRecord, table: Table) -> TableRecord:
    """Returns the rows in the order of the plan; those that it no longer has are gone."""
    rows = [row for name in table.rows if (row := known.row(name.name))]
    return TableRecord(known.name, rows)


def run_record(job: Job, row: Row) -> RunRecord:
    """Returns the record of a finished job."""
    status = job.read_status()
    origin = Origin(
        job.shown_command(),
        status.commit,
        provenance.day(status.started + status.seconds),
        Machine(**status.machine),
        {},
    )
    return collecting.run_record(read_facts(job), origin, job.seed, row.system)


def keep_measured(job: Job) -> None:
    """Takes over the result file that a table's own command wrote.

    Raises:
        NoResult: the command wrote none.
    """
    part = job.file(".part.json")
    try:
        measured = record.read_file(part)
    except record.RecordError as error:
        raise NoResult(f"It wrote no result that can be read ({error}).") from None
    if not measured.rows and not measured.measured:
        raise NoResult("It wrote a result without rows.")
    origin = measured.origin and dataclasses.replace(measured.origin, command=job.shown_command())
    write = record.write_by_stack if job.table.by_stack else record.write
    write(dataclasses.replace(measured, name=job.table.name, origin=origin), job.folders.results)
    part.replace(job.facts)
