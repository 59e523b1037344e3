"""Arguments that several commands share."""

import argparse
from typing import TYPE_CHECKING, TypeAlias

from pipeline.recipes import loading
from pipeline.runners.engine import ENGINES, WORKERS, Engine
from pipeline.runners.engine_error import EngineError

if TYPE_CHECKING:
    from serving.glossary import Glossary

#: What a command's `add_parser` adds its own parser to.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe and `--set`."""
    names = ", ".join(loading.available_recipes())
    parser.add_argument("recipe", metavar="RECIPE", help=f"a .toml file, or one of: {names}")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override, such as model.head=softmax",
    )


def add_beam_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--beam`."""
    parser.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="OPTION",
        help="--beam=--OPTION: an option for Beam; repeatable",
    )


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--engine` and where it is, which `read_engine` reads."""
    parser.add_argument(
        "--engine", choices=ENGINES, help="where the data are processed; here if not set"
    )
    parser.add_argument(
        "--master", metavar="HOST:PORT", help="the engine's job server, with --engine"
    )
    parser.add_argument(
        "--workers",
        metavar="HOST:PORT",
        default=WORKERS,
        help="`verbatim workers`, as seen from the engine's machines",
    )
    parser.add_argument(
        "--slots", type=int, default=1, metavar="N", help="slots of Flink that the work takes (1)"
    )


def read_engine(options: argparse.Namespace) -> Engine | None:
    """Returns the engine that `--engine` and the options beside it name, if any.

    Raises:
        EngineError: an address is missing or wrong.
    """
    if not options.engine:
        if options.master:
            raise EngineError("--master needs --engine: say which engine it is, flink or spark.")
        return None
    if not options.master:
        raise EngineError(
            f"--engine {options.engine} needs --master HOST:PORT: the address of its job server."
        )
    return Engine(options.engine, options.master, options.workers, options.slots)


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`, which `pipeline.commands.output` reads."""
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the results as JSON; - for standard output",
    )


def add_glossary_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--glossary`, which `read_glossary` reads."""
    parser.add_argument(
        "--glossary",
        metavar="FILE",
        help="translations of terms, which outputs must contain: a .csv, .tsv or .tbx file",
    )


def read_glossary(options: argparse.Namespace) -> "Glossary | None":
    """Returns the glossary that `--glossary` names, if any.

    Raises:
        RequestError: it cannot be used.
    """
    if not options.glossary:
        return None
    from serving import glossary_files

    return glossary_files.read_glossary(options.glossary)
