"""The folders of a model's versions on disk."""

import contextlib
import os
import pathlib
import re
from collections.abc import Mapping

from serving.errors import ServeError

#: What makes a folder a SavedModel.
MODEL_FILE = "saved_model.pb"
MAX_VERSION = 2**63 - 1
#: Names, sizes and times of files.
Fingerprint = tuple[tuple[str, int, int], ...]


def check_local(base: str | os.PathLike[str]) -> None:
    """Refuses an address, such as `s3://bucket/models/NAME`.

    Raises:
        ServeError: it is one.
    """
    if "://" in os.fspath(base):
        raise ServeError(
            f"{os.fspath(base)} cannot be read: this server reads folders and gs:// addresses; "
            "copy the model here, or mount the bucket."
        )


def version_of(name: str) -> int | None:
    """Returns the version that a folder's name is; None for other names."""
    if not re.fullmatch(r"[0-9]{1,19}", name):
        return None
    version = int(name)
    return version if version <= MAX_VERSION else None


def numbered_folders(base: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns number to folder of everything in a folder that is named as a version."""
    try:
        entries = {path: version_of(path.name) for path in base.iterdir()}
    except OSError:
        return {}
    return {
        version: path for path, version in entries.items() if version is not None and path.is_dir()
    }


def check_holds_a_model(
    named: str, base: pathlib.Path, versions: Mapping[int, pathlib.Path]
) -> None:
    """Refuses a model folder without a version that is a SavedModel.

    Args:
        named: the folder as the user named it.
        base: where it is on this machine.
        versions: number to folder of its versions.

    Raises:
        ServeError: it does not exist, or has none; one sentence.
    """
    if not base.is_dir():
        raise ServeError(f"The model folder {named} does not exist.")
    if not versions:
        raise ServeError(
            f"The model folder {named} has no version: it must hold folders named by numbers, such "
            f"as 1, with a {MODEL_FILE}."
        )
    if not any((path / MODEL_FILE).is_file() for path in versions.values()):
        raise ServeError(
            f"The model folder {named} has no SavedModel: there is no {MODEL_FILE} in "
            f"{', '.join(path.name for path in versions.values())}."
        )


def fingerprint_of(path: pathlib.Path) -> Fingerprint:
    """Returns what changes while a folder is written: names, sizes and times of all its files."""
    facts = []
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                stat = os.stat(os.path.join(folder, name))
                facts.append((os.path.join(folder, name), stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(facts))
