"""The command `run`: trains on a user's data through the whole pipeline, and pushes the model."""

import argparse
import contextlib
import sys
from typing import Any

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError
from pipeline.entry_points import cluster_run
from pipeline.recipes import loading
from pipeline.runners import run_folder
from pipeline.training import meeting

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
    parser.add_argument(
        "--worker-patience",
        type=_seconds,
        default=meeting.PATIENCE,
        metavar="SECONDS",
        help=f"with TF_CONFIG: how long workers wait for each other ({meeting.PATIENCE:g})",
    )
    arguments.add_json_argument(parser)
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.commands import run_summary
    from pipeline.runners import local_runner

    recipe = loading.load_recipe(options.recipe, options.set)
    place = cluster_run.place_of(recipe)
    if place and place.number:
        folder = str(run_folder.checked_path(options.output))
        cluster_run.follow(folder, place, options.worker_patience)
        return 0
    engine = arguments.read_engine(options)
    output.check_writable(options.json)
    if not options.data and not recipe.data.synthetic:
        raise CommandError(f"The recipe {recipe.name} needs data: give --data PATH.")
    more: dict[str, Any] = {"engine": engine} if engine else {}
    if place:
        more["worker_patience"] = options.worker_patience
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
            **more,
        )
    line = output.printer(options)
    for text in run_summary.lines_of(facts):
        line(text)
    keys = (*local_runner.METRICS_KEYS, *local_runner.RUN_KEYS)
    output.write_json(options.json, local_runner.selected(facts, keys))
    return 0 if facts["blessed"] else NOT_BLESSED
