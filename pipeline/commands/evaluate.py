"""The command `evaluate`: measures an exported model on a user's data."""

import argparse
import os

from pipeline.commands import arguments, model_folders, output
from pipeline.commands.command_error import CommandError
from pipeline.recipes.choices import FORMATS


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("evaluate", help="measure an exported model on pairs")
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    parser.add_argument(
        "--data", required=True, metavar="PATH", help="pairs, in any format that run reads"
    )
    parser.add_argument("--format", default="auto", choices=("auto", *FORMATS))
    parser.add_argument("--metrics", metavar="A,B,...", help="default: those of the model's recipe")
    parser.add_argument(
        "--database",
        metavar="FILE",
        help="SQLite file for execution_accuracy (default: the recipe's)",
    )
    parser.add_argument(
        "--outputs", metavar="FILE", help="write the model's outputs to this file, one per line"
    )
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.export.served_model import version_directory
    from pipeline.metrics import registry
    from pipeline.reporting.model_evaluation import EvaluationRequest, recipe_of
    from pipeline.tasks import task_of

    output.check_writable(options.json, options.outputs)
    if (
        options.json
        and options.outputs
        and os.path.realpath(options.json) == os.path.realpath(options.outputs)
    ):
        raise CommandError(f"--json and --outputs both name {options.json}: give different files.")
    if options.metrics:
        # A misspelt metric is reported before anything else.
        registry.expand_metric_names(options.metrics)
    model_folders.check(options.model)
    directory = version_directory(options.model)
    recipe = recipe_of(directory)
    request = EvaluationRequest(
        options.data,
        options.format,
        options.metrics,
        options.database,
        writes_outputs=bool(options.outputs),
    )
    measured = task_of(recipe).evaluate(recipe, directory, request)
    if options.outputs:
        lines = (" ".join(text.split("\n")) + "\n" for text in measured.outputs)
        output.write_text(options.outputs, "".join(lines))
    line = output.printer(options)
    for text in measured.lines:
        line(text)
    output.write_json(options.json, measured.facts)
    return 0
