"""The command `fetch`: gets a public corpus that a recipe is for."""

import argparse
import pathlib

from pipeline.commands import arguments, output
from pipeline.public_corpora import corpus, fetching


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "fetch",
        help="fetch a public corpus that a recipe is for",
        description=(
            "Fetches a public corpus and checks the digest of each file. Files that are there "
            "already are kept. For a corpus that cannot be fetched, it says how to get it, and "
            "checks what the folder holds."
        ),
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help=f"a recipe that has a public corpus, or a corpus: {', '.join(corpus.names())}",
    )
    parser.add_argument("--output", metavar="DIR", help="the folder (default: data/CORPUS)")
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    output.check_writable(options.json)
    line = output.printer(options)
    found = corpus.load(options.name)
    folder = pathlib.Path(options.output or pathlib.Path("data", found.name))
    line(f"{found.title}. Licence: {found.licence}. See {found.page}")
    written = fetching.fetch(found, folder)
    kept = len(found.files) - len(written)
    line(f"{folder} is complete: {len(written)} files fetched, {kept} there already.")
    output.write_json(
        options.json,
        {
            "corpus": found.name,
            "folder": str(folder.absolute()),
            "licence": found.licence,
            "written": written,
            "kept": kept,
        },
    )
    return 0
