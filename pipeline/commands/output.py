"""What commands write: lines for people, JSON for machines, and files."""

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from pipeline.commands.command_error import CommandError
from pipeline.common import whole_files


def people_stream(options: argparse.Namespace) -> TextIO:
    """Returns the stream for people: not standard output if that is for machines."""
    to_machines = (getattr(options, name, None) == "-" for name in ("json", "output"))
    return sys.stderr if any(to_machines) else sys.stdout


def printer(options: argparse.Namespace) -> Callable[[str], None]:
    """Returns the function that prints a line for people."""
    stream = people_stream(options)
    return lambda line: print(line, file=stream, flush=True)


def write_json(path: str | None, content: Any) -> None:
    """Writes facts as JSON to a file, to standard output for `-`, or nowhere for None."""
    if not path:
        return
    # A terminal's encoding may lack a character; JSON can spell each in ASCII.
    ascii_only = path == "-" and not _is_utf8(sys.stdout)
    text = json.dumps(_as_json(content), indent=1, ensure_ascii=ascii_only, allow_nan=False)
    if path == "-":
        print(text)
    else:
        write_text(path, text + "\n")


def json_line(content: Any) -> str:
    """Returns facts as JSON on one line."""
    return json.dumps(_as_json(content), ensure_ascii=False, allow_nan=False)


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"


def write_what_the_encoding_lacks() -> None:
    """Lets standard output show characters that its encoding lacks as escapes, such as `\\xe9`.

    Otherwise the first of them would end the command, for example where `PYTHONIOENCODING=ascii`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _as_json(content: Any) -> Any:
    """Returns content with null for numbers that JSON does not have, such as infinity."""
    if isinstance(content, dict):
        return {key: _as_json(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_as_json(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_text(path: str, text: str) -> None:
    """Writes a file, whole or not at all.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        whole_files.write_text(path, text)
    except OSError as error:
        raise CommandError(f"The file {path} cannot be written: {error.strerror}.") from None


def check_writable(*paths: str | None) -> None:
    """Refuses files that cannot be written, before the work whose results go there.

    Args:
        paths: files; None and `-` stand for no file.

    Raises:
        CommandError: one of them cannot be written.
    """
    for path in paths:
        if not path or path == "-":
            continue
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise CommandError(f"The file {path} cannot be written: there is no folder {folder}.")
        if os.path.isdir(path):
            raise CommandError(f"The file {path} cannot be written: it is a folder.")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise CommandError(f"The file {path} cannot be written: permission denied.")
