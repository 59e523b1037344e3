"""Files that commands read and write as bytes."""

import os
import sys

from pipeline.commands.command_error import CommandError
from pipeline.common import whole_files
from pipeline.documents import languages


def content_of(path: str) -> bytes:
    """Returns the content of a file, or of standard input for `-`.

    Raises:
        CommandError: it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise CommandError(f"The file {path} does not exist.") from None
    except OSError as error:
        raise CommandError(f"The file {path} cannot be read: {error.strerror}.") from None


def write_content(path: str, content: bytes) -> None:
    """Writes a file, whole or not at all, or standard output for `-`.

    Raises:
        CommandError: it cannot be written.
    """
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        with whole_files.whole_file(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise CommandError(f"The file {path} cannot be written: {error.strerror}.") from None


def language_of(tag: str | None, target: str) -> str:
    """Returns the language of translations: the one that is named, or that of their path.

    Args:
        tag: what the user names, or None.
        target: the path.

    Raises:
        CommandError: there is no such language.
    """
    if tag is None:
        return languages.language_of_path(os.path.abspath(target))
    if language := languages.normalize(tag):
        return language
    raise CommandError(f"--target-language {tag} is not a language: give a tag such as pt-BR.")
