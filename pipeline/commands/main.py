"""The command `verbatim`. TensorFlow and TFX are imported only by the commands that need them."""

import argparse
import contextlib
import sys
import warnings
from collections.abc import Sequence

from pipeline.commands import (
    compare,
    compile,
    evaluate,
    output,
    progress_display,
    report,
    request,
    run,
    score,
    segment,
    serve,
)
from pipeline.common import native_notes, tensorflow_settings
from pipeline.common.errors import VerbatimError

_COMMANDS = (run, evaluate, score, serve, request, segment, compile, report, compare)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit status: 0, 1 for an error, 2 for a wrong call, 3 for a model that was not blessed,
        130 when it was interrupted, 141 when whoever read its output went away.
    """
    output.write_what_the_encoding_lacks()
    options = _parser().parse_args(arguments)
    notes = native_notes.left_out() if tensorflow_settings.quiet() else contextlib.nullcontext()
    if not sys.warnoptions:
        # Third parties' deprecations say nothing to whoever runs a command; `python -W default -m
        # pipeline.commands.main` shows them.
        warnings.simplefilter("ignore")
    with notes:
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Runs a command; returns its exit status, or that of its error."""
    try:
        with progress_display.shown_on(output.people_stream(options)):
            status: int = options.command.run(options)
            return status
    except KeyboardInterrupt:
        print("verbatim: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except VerbatimError as error:
        print(f"verbatim: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if not error.filename or not error.strerror:
            raise
        print(f"verbatim: {error.filename} cannot be used: {error.strerror}.", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verbatim",
        description="Text-to-text models that copy: train, evaluate, serve and ask them.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands).set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
