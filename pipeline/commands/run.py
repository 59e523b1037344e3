"""The command `run`: trains on a user's data through the whole pipeline, and pushes the model."""

import argparse
import contextlib
import sys

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError
from pipeline.recipes import loading

#: The exit status of a run whose model is not good enough to be pushed.
NOT_BLESSED = 3


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "run",
        # The name that most similar programs have for it.
        aliases=["train"],
        help="train on your data through the whole pipeline, and push the model",
    )
    arguments.add_recipe_arguments(parser)
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="a file, a folder, or two aligned files A,B (not for generated data)",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the run's folder")
    arguments.add_engine_arguments(parser)
    arguments.add_beam_argument(parser)
    parser.add_argument("--no-cache", action="store_true", help="ignore cached results")
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.commands import run_summary
    from pipeline.runners import local_runner

    recipe = loading.load_recipe(options.recipe, options.set)
    engine = arguments.read_engine(options)
    output.check_writable(options.json)
    if not options.data and not recipe.data.synthetic:
        raise CommandError(f"The recipe {recipe.name} needs data: give --data PATH.")
    # Third parties print to standard output, which is for machines here.
    with (
        contextlib.redirect_stdout(sys.stderr) if options.json == "-" else contextlib.nullcontext()
    ):
        facts = local_runner.run(
            recipe,
            options.data or None,
            options.output,
            options.beam,
            enable_cache=not options.no_cache,
            **({"engine": engine} if engine else {}),
        )
    line = output.printer(options)
    for text in run_summary.lines_of(facts):
        line(text)
    keys = (*local_runner.METRICS_KEYS, *local_runner.RUN_KEYS)
    output.write_json(options.json, local_runner.selected(facts, keys))
    return 0 if facts["blessed"] else NOT_BLESSED
