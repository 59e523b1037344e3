"""Config files of TensorFlow Serving: protocol messages written as text."""

import os
import pathlib
from typing import TYPE_CHECKING, TypeVar

from serving.errors import ServeError

if TYPE_CHECKING:
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")


def read(path: str | os.PathLike[str], message: M, what: str) -> M:
    """Reads a text file into a protocol message.

    Args:
        path: the file.
        message: an empty message, which is filled.
        what: what the file is, for sentences, such as "model config".

    Returns:
        The message.

    Raises:
        ServeError: it cannot be read or understood; one sentence.
    """
    from google.protobuf import text_format

    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ServeError(f"The {what} file {path} cannot be read: {reason}.") from None
    try:
        return text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise ServeError(
            f"The {what} file {path} is not a {message.DESCRIPTOR.name}: {error}."
        ) from None
