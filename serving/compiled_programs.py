"""What XLA compiled, kept in a folder for the processes that come after.

XLA compiles a search for each size of batch and length of text, which takes seconds, in every
process anew. TensorFlow can write each program into a file, and reads it in later processes that
run the same graph. The files are machine code: whoever may write to the folder decides what this
process runs. So the folder is its user's alone, and each kind of processor and version of
TensorFlow has its own in it.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import pathlib
import shutil
import stat
from typing import BinaryIO

from serving import processors
from serving.verbatim_error import VerbatimError

#: Names another folder than that of the user's caches, or says `OFF`.
VARIABLE = "VERBATIM_COMPILED_PROGRAMS"
OFF = "off"
#: The oldest programs beyond so many bytes are removed. One has 2 to 4 MB.
MOST_BYTES = 1 << 30
# A call fails where a program that it compiles cannot be written.
_LEAST_FREE_BYTES = 1 << 30
# TensorFlow reads it when a process compiles for the first time, and never again.
_FLAGS = "TF_XLA_FLAGS"
_FOLDER_FLAG = "--tf_xla_persistent_cache_directory"
# Programs for a GPU are not kept.
_DEVICES_FLAG = "--tf_xla_persistent_cache_device_types=CPU"
_CPU_FACTS = pathlib.Path("/proc/cpuinfo")
# What of them says which instructions there are, on x86 and on Arm; the rest is of the moment.
_INSTRUCTIONS = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU ")
# What changes a program beside its graph and the processor.
_SETTINGS = ("XLA_FLAGS", "TF_NUM_INTRAOP_THREADS")
# How the fields of a program's file begin: what it was made for, its graph, its machine code.
_TAGS = (b"\x0a", b"\x12", b"\x1a")
_MOST_BITS = 35
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class CompiledProgramsError(VerbatimError):
    """The folder that a user named cannot be used."""


def keep(folder: str | os.PathLike[str] | None = None) -> pathlib.Path | None:
    """Lets this process read and write programs; returns where, or None where it does not.

    It takes effect only before this process compiles anything with XLA. Damaged files are removed,
    and the oldest beyond `MOST_BYTES`.

    Args:
        folder: of the programs of all processors and versions. By default the one that `VARIABLE`
            names, and otherwise one among the user's caches. That last one is left alone where it
            cannot be used, and nothing is kept.

    Raises:
        CompiledProgramsError: a folder that was named cannot be used.
    """
    named = folder or os.environ.get(VARIABLE)
    if named == OFF or _FOLDER_FLAG in os.environ.get(_FLAGS, ""):
        return None
    root = pathlib.Path(named) if named else _of_user()
    if root is None:
        return None
    if problem := _problem_of(root):
        if named:
            raise CompiledProgramsError(f"Compiled programs cannot be kept in {root}: {problem}.")
        return None
    own = root.absolute() / _kind_of_process()
    own.mkdir(mode=0o700, exist_ok=True)
    _remove_damaged(own)
    _remove_oldest(root)
    flags = (os.environ.get(_FLAGS, ""), f"{_FOLDER_FLAG}={own}", _DEVICES_FLAG)
    os.environ[_FLAGS] = " ".join(flags).strip()
    return own


def _of_user() -> pathlib.Path | None:
    """Returns the folder among the user's caches; None for a user who has no home."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Containers run as users whom the system does not know.
    own = pathlib.Path(caches)
    return own / "verbatim" / "compiled_programs" if own.is_absolute() else None


def _problem_of(root: pathlib.Path) -> str:
    """Makes the folder if there is none; returns why it cannot be used, or an empty string."""
    if not _CPU_FACTS.is_file():
        return "this system does not say which instructions its processor has"
    if any(character.isspace() for character in str(root.absolute())):
        return "TensorFlow reads no path with white space"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.stat()
        free = shutil.disk_usage(root).free
    except OSError as error:
        return error.strerror or str(error)
    if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS_MAY_WRITE:
        return "other users may write to it"
    if not os.access(root, os.W_OK | os.X_OK):
        return "it cannot be written to"
    return "" if free >= _LEAST_FREE_BYTES else "the disk is nearly full"


def _kind_of_process() -> str:
    """Returns a name for all processes that can run each other's programs."""
    lines = _CPU_FACTS.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    facts = [line for line in lines if line.startswith(_INSTRUCTIONS)]
    facts += [f"{name}={os.environ.get(name, '')}" for name in _SETTINGS]
    facts += [str(processors.cores()), importlib.metadata.version("tensorflow")]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _remove_damaged(folder: pathlib.Path) -> None:
    """Removes what is no whole message, such as files that a crash of the system cut off."""
    for path in folder.glob("*.pb"):
        # Another process may have removed it.
        with contextlib.suppress(FileNotFoundError):
            if not _is_whole(path):
                path.unlink()


def _is_whole(path: pathlib.Path) -> bool:
    """Returns whether a file has TensorFlow's three fields, of which the last one ends it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for tag in _TAGS:
            if file.read(1) != tag:
                return False
            file.seek(_read_length(file), os.SEEK_CUR)
        return file.tell() == size


def _read_length(file: BinaryIO) -> int:
    """Reads a number of seven bits a byte, the lowest first; 0 where the file ends."""
    length, shift, more = 0, 0, True
    while more:
        (byte,) = file.read(1) or b"\0"
        length |= (byte & 0x7F) << shift
        shift += 7
        more = byte >= 0x80 and shift < _MOST_BITS
    return length


def _remove_oldest(root: pathlib.Path) -> None:
    facts = []
    for path in root.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):
            facts.append((path.stat(), path))
    kept = 0
    for stats, path in sorted(facts, key=lambda fact: -fact[0].st_mtime):
        kept += stats.st_size
        if kept > MOST_BYTES:
            path.unlink(missing_ok=True)
