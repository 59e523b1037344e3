"""The command `report`: writes a run's report again."""

import argparse

from pipeline.commands import arguments


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("report", help="write a run's report again")
    parser.add_argument("directory", metavar="DIR", help="the --output folder of a run")
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.reporting import report

    print(report.write_report(options.directory, report.load_facts(options.directory)))
    return 0
