"""The command `verbatim`. TensorFlow and TFX are imported only by the commands that need them."""

import argparse
import contextlib
import difflib
import sys
import warnings
from collections.abc import Sequence

from pipeline.commands import (
    batch,
    clean,
    compare,
    compile,
    convert,
    evaluate,
    fetch,
    init,
    output,
    pairs,
    progress_display,
    report,
    request,
    run,
    score,
    segment,
    serve,
    translate,
    workers,
)
from pipeline.common import native_notes, tensorflow_settings
from pipeline.common.errors import VerbatimError
from serving.own_version import own_version

_COMMANDS = (
    init,
    fetch,
    run,
    evaluate,
    score,
    translate,
    batch,
    pairs,
    serve,
    request,
    segment,
    compile,
    convert,
    report,
    compare,
    clean,
    workers,
)
#: Names that other programs have for our commands.
_ELSEWHERE = {
    "download": "fetch",
    "new": "init",
    "fit": "run",
    "test": "evaluate",
    "generate": "request",
    "ask": "request",
    "deploy": "serve",
    "diff": "compare",
    "prune": "clean",
    "gc": "clean",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit status: 0, 1 for an error, 2 for a wrong call, 3 for a model that was not blessed,
        4 for an engine that cannot be used, 130 when it was interrupted, 141 when the reader of its
        output ended.
    """
    output.write_what_the_encoding_lacks()
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(words).parse_args(words)
    notes = native_notes.left_out() if tensorflow_settings.quiet() else contextlib.nullcontext()
    if not sys.warnoptions:
        # Third parties' deprecation warnings do not help the user of a command; `python -W default
        # -m pipeline.commands.main` shows them.
        warnings.simplefilter("ignore")
    with notes:
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Runs a command; returns its exit status or that of its error."""
    try:
        with progress_display.shown_on(output.people_stream(options)):
            status: int = options.command.run(options)
            return status
    except KeyboardInterrupt:
        print(f"verbatim: interrupted.{_how_to_resume(options)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except VerbatimError as error:
        print(f"verbatim: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        if not error.filename or not error.strerror:
            raise
        print(f"verbatim: {error.filename} cannot be used: {error.strerror}.", file=sys.stderr)
        return 1


def _how_to_resume(options: argparse.Namespace) -> str:
    """Returns what to do after an interruption, or nothing."""
    if options.command is not run:
        return ""
    resume = " Run the same command again to resume."
    if not options.engine:
        return resume
    # Beam's job server gives up the job; the engine does not.
    engine = options.engine.capitalize()
    return f"{resume} {engine} may still work on its last job: cancel it in {engine}'s web page."


class _Version(argparse.Action):
    """Prints the version, which is looked up only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"verbatim {own_version()}")
        parser.exit()


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Returns the parser of a command line, after refusing an unknown command."""
    parser = argparse.ArgumentParser(
        prog="verbatim",
        description="Train, evaluate, serve and query text-to-text models that copy.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands).set_defaults(command=command)
    if words and not words[0].startswith("-") and words[0] not in commands.choices:
        close = difflib.get_close_matches(words[0], [*commands.choices, *_ELSEWHERE], n=1)
        meant = f"; did you mean '{_ELSEWHERE.get(close[0], close[0])}'?" if close else "."
        names = ", ".join(command.__name__.rpartition(".")[2] for command in _COMMANDS)
        parser.error(f"There is no command '{words[0]}'{meant} The commands are {names}.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
