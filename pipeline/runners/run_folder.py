"""A run's folder: checks its name, and lets one process at a time write to it."""

import contextlib
import errno
import fcntl
import os
import pathlib
from collections.abc import Iterator

from pipeline.common import progress, whole_files
from pipeline.runners.run_error import RunError

LOCK_FILE = "run.lock"
# Wildcards for TFX, Beam and TensorFlow when they look for the files of an artifact.
_WILDCARDS = "*?[\\"
# A file system without locks, such as some network mounts.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def checked_path(output: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the absolute path of a run's folder.

    Raises:
        RunError: it is an address, such as `gs://bucket/run`, or not text. Or its name has a
            character that TFX, Beam and TensorFlow read as a wildcard: they would find no files, or
            those of another folder.
    """
    if whole_files.is_remote(os.fspath(output)):
        raise RunError(
            f"The output folder {os.fspath(output)} is an address, but a run on this machine needs "
            "a folder of it: give another --output, or compile the pipeline for a cluster."
        )
    folder = pathlib.Path(output).absolute()
    if found := [character for character in _WILDCARDS if character in str(folder)]:
        raise RunError(
            f"The output folder {folder} has {' and '.join(found)} in its path, which TFX reads as "
            "a wildcard: give another --output."
        )
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = str(folder).encode("utf-8", "backslashreplace").decode()
        raise RunError(
            f"The path of the output folder {shown} is not UTF-8: give another --output."
        ) from None
    return folder


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Makes a run's folder, and keeps other processes out of it while the block runs.

    The lock is freed when the process ends, however it ends.

    Raises:
        RunError: the folder cannot be made, or another process holds its lock.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / LOCK_FILE, "a+", encoding="utf-8")
    except OSError as error:
        raise RunError(f"The output folder {folder} cannot be created: {error.strerror}.") from None
    with file:
        _lock(file.fileno(), folder)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        # Closing the file frees the lock. The file stays: removing it could let two processes in.
        yield


def _lock(descriptor: int, folder: pathlib.Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = (folder / LOCK_FILE).read_text(encoding="utf-8").strip()
        process = f" (process {holder})" if holder else ""
        raise RunError(
            f"Another run{process} is using the output folder {folder}: wait until it ends, or "
            "give another --output."
        ) from None
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        progress.warn(
            f"The file system of {folder} has no locks: do not start a second run in this folder."
        )
