"""Fingerprints of input files, by which a cache knows whether it has to read them again.

A file on this machine is known by its content, so that a copy, a checkout or a changed time makes
no difference. Content that would have to be fetched first is known by its size and time.
"""

import functools
import hashlib
import os
import pathlib
from collections.abc import Iterable

from pipeline.common.file_digests import sha256_of
from pipeline.common.whole_files import is_remote


def fingerprint_of(files: Iterable[tuple[str, str]]) -> str:
    """Returns a text that changes exactly when the files or their names do.

    Args:
        files: (label, path) of each file, in the order in which they are read. The label is what
            the user calls it, the path where it is opened.
    """
    lines = (f"{label}\0{_content(path)}\n" for label, path in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def files_below(folder: str) -> list[tuple[str, str]]:
    """Returns (path below the folder, path) of each file of a folder on this machine, sorted."""
    paths = sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), str(path)) for path in paths]


def fingerprint_of_folder(folder: str) -> str:
    """Returns `fingerprint_of` the files below a folder on this machine.

    Files whose sizes and times are those of the last call in this process are not read again.
    """
    files = files_below(folder)
    states = [os.stat(path) for _, path in files]
    return _remembered(tuple(files), tuple((one.st_size, one.st_mtime_ns) for one in states))


@functools.lru_cache(maxsize=16)
def _remembered(files: tuple[tuple[str, str], ...], states: tuple[tuple[int, int], ...]) -> str:
    return fingerprint_of(files)


def _content(path: str) -> str:
    if is_remote(path):
        from tfx.dsl.io import fileio

        state = fileio.stat(path)
        return f"bytes:{state.length}, time:{state.mtime_nsec}"
    with open(path, "rb") as file:
        return sha256_of(file)
