"""The folders of a model's versions on disk."""

import contextlib
import os
import pathlib
import re

from serving.errors import ServeError

_MAX_VERSION = 2**63 - 1
#: Names, sizes and times of files.
Fingerprint = tuple[tuple[str, int, int], ...]


def check_local(base: str | os.PathLike[str]) -> None:
    """Refuses an address, such as `gs://bucket/models/NAME`.

    Raises:
        ServeError: it is one.
    """
    if "://" in os.fspath(base):
        raise ServeError(
            f"{os.fspath(base)} is an address, but this server reads folders of this machine: copy "
            "the model here, mount the bucket, or let TensorFlow Serving read it."
        )


def numbered_folders(base: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns number to folder of everything in a folder that is named as a version."""
    try:
        entries = [path for path in base.iterdir() if re.fullmatch(r"[0-9]{1,19}", path.name)]
    except OSError:
        return {}
    return {
        int(path.name): path for path in entries if path.is_dir() and int(path.name) <= _MAX_VERSION
    }


def fingerprint_of(path: pathlib.Path) -> Fingerprint:
    """Returns what changes while a folder is written: names, sizes and times of all its files."""
    facts = []
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                stat = os.stat(os.path.join(folder, name))
                facts.append((os.path.join(folder, name), stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(facts))
