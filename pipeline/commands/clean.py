"""The command `clean`: removes artifacts from a run's folder that nothing refers to any more."""

import argparse
import pathlib
import sys

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "clean",
        help="remove what earlier runs left in a run's folder",
        description=(
            "Removes the artifacts of earlier and failed runs from a run's folder, after it has "
            "listed them. Keeps what the last complete run wrote or read, the model that was "
            "blessed last, pushed models, reports and checkpoints. A later run with earlier "
            "settings computes again what was removed."
        ),
    )
    parser.add_argument("directory", metavar="DIR", help="the --output folder of a run")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be removed, and remove nothing"
    )
    parser.add_argument("--yes", action="store_true", help="remove it without asking")
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.runners import run_folder, unused_artifacts

    output.check_writable(options.json)
    line = output.printer(options)
    folder = pathlib.Path(options.directory).absolute()
    if not (folder / unused_artifacts.METADATA_FILE).is_file():
        raise CommandError(
            f"{folder} is not the folder of a run: give the --output folder of a verbatim run."
        )
    with run_folder.locked(folder):
        unused = unused_artifacts.find(folder)
        for one in unused:
            line(f"{one.path.relative_to(folder)}  {_megabytes(one.size)}")
        total = _megabytes(sum(one.size for one in unused))
        removes = bool(unused) and not options.dry_run
        if not unused:
            line("Nothing to remove: the last run refers to everything.")
        elif options.dry_run:
            line(f"{len(unused)} folders, {total}, would be removed.")
        elif options.yes or _agreed(f"Remove these {len(unused)} folders, {total}? [y/N] "):
            unused_artifacts.remove(folder, unused)
            line(f"Removed {len(unused)} folders, {total}.")
        else:
            removes = False
            line("Nothing was removed.")
    output.write_json(
        options.json,
        {
            "removed": removes,
            "folders": [{"path": str(one.path), "bytes": one.size} for one in unused],
        },
    )
    return 0


def _agreed(question: str) -> bool:
    """Asks the user at the terminal.

    Raises:
        CommandError: there is no terminal.
    """
    if not sys.stdin.isatty():
        raise CommandError(
            "Nothing was removed, because the command cannot ask without a terminal: give --yes to "
            "remove the files, or --dry-run to list them."
        )
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
