"""Runs the campaign of a TOML file, or says how far it is.

    python -m benchmarks.campaign NAME_OR_FILE --data FOLDER [--output DIR] [--at-a-time 2]
    python -m benchmarks.campaign NAME_OR_FILE --status

A campaign is a list of runs (`benchmarks.campaign.plan`). Each has a folder of its own below
`--output`, works on one core of its own, and gives way to other work. As each run ends, its figures
go into `benchmarks/results/TABLE.json`. Stop the campaign with Ctrl+C or SIGTERM, or kill it; the
same command goes on where it stopped, and tries again what failed. The exit status is 1 if a run
failed.
"""

import argparse
import os
import pathlib
import signal
import sys
import time
from collections.abc import Sequence

from benchmarks.campaign import plan as plans
from benchmarks.campaign.jobs import Folders, Job, jobs_of
from benchmarks.campaign.queue import Limits, Queue, last_line
from benchmarks.records import record
from pipeline.runners import run_folder
from pipeline.runners.run_error import RunError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign, or says how far it is; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        plan = plans.load(options.list)
    except plans.PlanError as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 1
    output = options.output or pathlib.Path("runs", plan.name)
    folders = Folders(options.data, output.absolute(), options.results)
    jobs = jobs_of(plan, folders, options.only)
    if not jobs:
        print(f"campaign: no run of {plan.name} is called {options.only}.", file=sys.stderr)
        return 1
    if options.status:
        print("\n".join(status_lines(jobs)))
        return 0
    if not options.data and any(_needs_data(job) for job in jobs):
        print("campaign: give --data, the folder of the public corpora.", file=sys.stderr)
        return 1
    limits = Limits(options.at_a_time, tuple(options.cores), options.cores_each, options.nice)
    queue = Queue(jobs, limits, say, known=jobs_of(plan, folders, []))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with run_folder.locked(run_folder.checked_path(folders.output)):
            queue.work()
    except RunError as error:
        print(f"campaign: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("campaign: interrupted; the same command goes on.", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    say("\n".join(status_lines(jobs)))
    return 1 if queue.failed else 0


def say(line: str) -> None:
    """Prints a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def _needs_data(job: Job) -> bool:
    command = job.row.command if job.row else job.table.command
    if command:
        return any("{data}" in word for word in command)
    data = job.row.data if job.row and job.row.data is not None else job.table.data
    return bool(data)


def status_lines(jobs: Sequence[Job]) -> list[str]:
    """Returns a line for each job, and one with their numbers."""
    width = max(len(job.name) for job in jobs)
    lines, numbers = [], dict.fromkeys(("done", "running", "interrupted", "failed", "waiting"), 0)
    for job in jobs:
        status = job.read_status()
        state = status.seen
        numbers[state] += 1
        seconds = status.seconds
        if state == "running":
            seconds += time.time() - status.started
        minutes = f"{seconds / 60:.1f} min" if seconds else ""
        note = last_line(job.log) if state in ("running", "interrupted") else status.message
        lines.append(f"{job.name:{width}}  {state:11}  {minutes:>10}  {note}".rstrip())
    return [*lines, ", ".join(f"{number} {state}" for state, number in numbers.items() if number)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.campaign", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("list", help="a name of benchmarks/campaigns, or a TOML file")
    parser.add_argument("--data", help="folder of the public corpora")
    parser.add_argument("--output", type=pathlib.Path, help="folder of the runs (runs/NAME)")
    parser.add_argument("--results", type=pathlib.Path, default=record.RESULTS)
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="tables, or TABLE/ROW"
    )
    parser.add_argument("--status", action="store_true", help="say how far it is, run nothing")
    parser.add_argument("--at-a-time", type=int, default=1, help="how many runs at once (1)")
    parser.add_argument(
        "--cores",
        type=lambda text: [int(core) for core in text.split(",")],
        default=sorted(os.sched_getaffinity(0)),
        help="numbers of the cores that it may use, such as 0,1 (all)",
    )
    parser.add_argument("--cores-each", type=int, default=1, help="how many a run has (1)")
    parser.add_argument("--nice", type=int, default=10, help="how much runs give way (10)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
