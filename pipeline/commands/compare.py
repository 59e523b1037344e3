"""The command `compare`: writes a report on several runs side by side."""

import argparse
import os

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("compare", help="write a report on several runs side by side")
    parser.add_argument(
        "directories", nargs="+", metavar="DIR", help="the --output folders of two runs or more"
    )
    parser.add_argument(
        "--output", default="comparison", metavar="DIR", help="where (default: comparison)"
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=1000,
        metavar="N",
        help="resampled test sets behind each p-value (default: 1000)",
    )
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.reporting import comparison, facts, report, score_tables

    output.check_writable(options.json)
    if os.path.realpath(options.output) in map(os.path.realpath, options.directories):
        raise CommandError(
            f"--output {options.output} is the folder of a compared run, whose report would be "
            "overwritten: give another folder."
        )
    compared = comparison.compare(options.directories, options.samples)
    path = report.write_report(options.output, compared)
    results = {system["name"]: facts.metric_results(system) for system in compared["systems"]}
    line = output.printer(options)
    line(score_tables.format_table(results, compared.get("comparisons"), next(iter(results))))
    line(compared["note"])
    line(f"Report:  {path}")
    output.write_json(options.json, report.load_facts(options.output))
    return 0
