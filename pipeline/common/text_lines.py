"""Reading files of text, one segment per line."""

import codecs
import os
import pathlib

from pipeline.common.errors import VerbatimError


def read_lines(
    path: str | os.PathLike[str], kind: str, error_type: type[VerbatimError]
) -> list[str]:
    """Returns a file's lines, which only line feeds end.

    `str.splitlines` cuts at U+2028 too and loses alignment.

    Args:
        path: a file of UTF-8 text.
        kind: what it is called in messages.
        error_type: what is raised.

    Raises:
        VerbatimError: of that type; it cannot be read, is empty, or is not text.
    """
    path = pathlib.Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise error_type(f"The {kind} file {path} does not exist.") from None
    except IsADirectoryError:
        raise error_type(f"The {kind} file {path} is a folder: give a text file.") from None
    except OSError as error:
        raise error_type(f"The {kind} file {path} cannot be read: {error.strerror}.") from None
    # ASCII letters in UTF-16 are UTF-8 too, with a NUL after or before each.
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
        raise error_type(
            f"The {kind} file {path} is UTF-16, or not text at all: convert it to UTF-8."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise error_type(
            f"The {kind} file {path} is not UTF-8: line {line} cannot be read; convert the file to "
            "UTF-8."
        ) from None
    if not text:
        raise error_type(f"The {kind} file {path} is empty.")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not text.strip():
        which = "its only line is" if len(lines) == 1 else f"all of its {len(lines)} lines are"
        raise error_type(f"The {kind} file {path} contains no text: {which} empty.")
    return [line.removesuffix("\r") for line in lines]
