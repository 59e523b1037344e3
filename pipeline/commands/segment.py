"""The command `segment`: prints the words that a model with a segmenting encoder finds."""

import argparse
import sys

from pipeline.commands import arguments, model_folders, output
from pipeline.commands.command_error import CommandError
from pipeline.common import progress
from pipeline.recipes import views


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "segment", help="print the words that a model with a segmenting encoder finds"
    )
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="one text per line; its spaces are the reference, hidden from the model",
    )
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.export.served_model import version_directory
    from pipeline.metrics import scored_files, segmentation_scores
    from pipeline.reporting.model_evaluation import model_for_many_texts, recipe_of

    output.check_writable(options.json)
    model_folders.check(options.model)
    directory = version_directory(options.model)
    recipe = recipe_of(directory)
    if not views.segments(recipe):
        raise CommandError(
            f"The model {directory} finds no words: it was trained with 'model.encoder' = "
            f'{recipe.model.encoder!r}, not "segmenting".'
        )
    lines = scored_files.read_lines(options.file, "text")
    sources = [line for line in lines if line.strip()]
    if not sources:
        raise CommandError(f"{options.file} has no text: give one text per line.")
    answers = model_for_many_texts(directory).predict(sources)
    # An empty line stays empty, so that the lines of both files correspond.
    remaining = iter(answers)
    words = [next(remaining)["source_tokens"] if line.strip() else [] for line in lines]
    print_line = output.printer(options)
    for of_line in words:
        print_line(" ".join(of_line))
    if len(sources) < len(lines):
        progress.warn(f"{len(lines) - len(sources)} of {len(lines)} lines are empty.")
    scores = segmentation_scores.of_answers(sources, answers)
    if "word_f1" in scores:
        print(segmentation_scores.describe(scores), file=sys.stderr)
    output.write_json(options.json, {"scores": scores, "words": words})
    return 0
