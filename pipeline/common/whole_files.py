"""Files that appear under their names complete or not at all."""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import IO, Any


def is_remote(path: str) -> bool:
    """Whether a path is an address, such as `gs://bucket/file`, which TensorFlow's gfile opens."""
    return "://" in path


def absolute(path: str) -> str:
    """Returns the absolute path of a local file or folder; an address is as it was."""
    return path if is_remote(path) else os.path.abspath(path)


@contextlib.contextmanager
def whole_file(
    path: str | os.PathLike[str], mode: str = "w", durable: bool = False
) -> Iterator[IO[Any]]:
    """Opens a file for writing that replaces `path` in one step when the block ends.

    If the block raises, whatever was at `path` before is still there. A file that cannot be
    replaced (a pipe, a device, a file in a read-only folder) is written in place.

    Args:
        path: a path on this machine, or an address. Text is UTF-8.
        mode: `"w"` or `"wb"`.
        durable: whether the file must survive a power cut: content and name are flushed to disk.

    Yields:
        The open file.

    Raises:
        OSError: the file cannot be written.
    """
    name = os.fspath(path)
    if is_remote(name):
        with _remote(name, mode) as file:
            yield file
        return
    name = os.path.realpath(name)
    folder = os.path.dirname(name)
    replaceable = not os.path.exists(name) or os.path.isfile(name)
    in_place = not replaceable or not os.access(folder, os.W_OK)
    partial = name if in_place else f"{name}.partial"
    try:
        with open(partial, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if not in_place:
            os.replace(partial, name)
    except BaseException:
        if not in_place:
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise
    if durable:
        _flush_folder(folder)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text)


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Writes a JSON file that people can read, whole or not at all."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def _remote(name: str, mode: str) -> Iterator[IO[Any]]:
    import tensorflow as tf

    partial = f"{name}.partial"
    try:
        with tf.io.gfile.GFile(partial, mode) as file:
            yield file
        tf.io.gfile.rename(partial, name, overwrite=True)
    except BaseException:
        if tf.io.gfile.exists(partial):
            tf.io.gfile.remove(partial)
        raise


def _flush_folder(folder: str) -> None:
    """Flushes a folder's entries; otherwise a power cut could undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
