"""Errors of object stores, such as Google's, in one sentence each."""

import contextlib
import os
import uuid
from collections.abc import Iterator

from pipeline.common.errors import VerbatimError
from pipeline.common.whole_files import is_remote

_ADVICE = "check the bucket's name, and that this task's key is valid and allows it"


class StorageError(VerbatimError, OSError):
    """A bucket cannot be read or written; one sentence."""


@contextlib.contextmanager
def one_sentence(path: str, done: str) -> Iterator[None]:
    """Turns TensorFlow's errors in the block into one sentence.

    Args:
        path: the file or folder at an address.
        done: what cannot be done: `"read"` or `"written"`.

    Raises:
        StorageError: the bucket does not exist, or the key is missing, has expired or does not
            allow it. That a file is not found is no such error.
    """
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        if isinstance(error, tf.errors.NotFoundError) and done == "read":
            raise
        raise StorageError(f"{path} cannot be {done} ({_reason(error)}): {_ADVICE}.") from None


def check_writable(folder: str) -> None:
    """Writes a small file into a folder at an address, and removes it; two requests.

    Raises:
        StorageError: the folder cannot be written.
    """
    if not is_remote(folder):
        return
    import tensorflow as tf

    probe = os.path.join(folder, f"writable-{uuid.uuid4().hex}")
    with one_sentence(folder, "written"):
        with tf.io.gfile.GFile(probe, "w") as file:
            file.write("x")
        tf.io.gfile.remove(probe)


def _reason(error: Exception) -> str:
    """Returns what the store answered, without the pages that it may have added."""
    code = getattr(error, "message", None) or str(error)
    code = code.split(" with body ")[0].split("\n")[0].strip()
    return code[:200]
