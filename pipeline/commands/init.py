"""The command `init`: writes a project of one's own, which TFX's command line can run."""

import argparse
import pathlib
import re
import shutil
import string

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError

TEMPLATE = pathlib.Path(__file__).parent / "project"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
# What a script's folder must not hold: it comes first where Python looks for modules.
_OURS = ("pipeline", "components", "serving", "keras_models")


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "init",
        help="write a project of your own: recipe, sample data, runners",
        description=(
            "Writes a folder with a recipe, sample data, and scripts that run or compile its "
            "pipeline, by themselves or with TFX's own command line."
        ),
    )
    parser.add_argument("directory", metavar="DIR", help="the project's folder, new or empty")
    parser.add_argument("--name", help="the project's name (default: the folder's)")
    parser.add_argument("--source", default="en", metavar="LANGUAGE", help="default: en")
    parser.add_argument("--target", default="fr", metavar="LANGUAGE", help="default: fr")
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    output.check_writable(options.json)
    folder = pathlib.Path(options.directory).absolute()
    name = options.name or re.sub(r"[^a-z0-9_]+", "_", folder.name.lower()).strip("_")
    if not _NAME.fullmatch(name) or name in _OURS:
        raise CommandError(
            f"{name!r} cannot be a project's name: give a --name of lower-case letters, digits and "
            "_ that begins with a letter."
        )
    for language in (options.source, options.target):
        if not _LANGUAGE.fullmatch(language):
            raise CommandError(f"{language!r} is not the code of a language, such as en or pt_BR.")
    write_project(folder, {"name": name, "source": options.source, "target": options.target})
    line = output.printer(options)
    line(f"The project {name} is in {folder}. Next:")
    line(f"  cd {folder} && python local_runner.py")
    output.write_json(options.json, {"folder": str(folder), "name": name})
    return 0


def write_project(folder: pathlib.Path, values: dict[str, str]) -> None:
    """Writes the files of the template, with `$name` and the like replaced.

    Raises:
        CommandError: the folder holds something, or cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CommandError(f"{folder} is not empty: name a new folder.")
        for path in sorted(TEMPLATE.rglob("*")):
            relative = path.relative_to(TEMPLATE)
            target = folder / string.Template(str(relative)).substitute(values)
            if path.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".tsv":
                shutil.copyfile(path, target)
                continue
            text = string.Template(path.read_text(encoding="utf-8")).substitute(values)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"The project cannot be written to {folder}: {error.strerror or error}."
        ) from None
