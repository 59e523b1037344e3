"""A folder of XLA's compiled programs, which later processes load.

XLA compiles a search for each size of batch and length of text, which takes seconds, in every
process anew. TensorFlow can write each program into a file, and loads it in later processes that
run the same graph. The files are machine code: whoever may write to the folder decides what this
process runs. So the folder is its user's alone, and each kind of processor and version of
TensorFlow has its own in it.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import pathlib
import re
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
# TensorFlow reads it when it lists its devices, before the first operation, and never again.
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
# How TensorFlow names a program's file.
_PREFIX = "xla_compile_cache__"
# What `_kind_of_process` returns.
_KIND = re.compile(r"[0-9a-f]{16}")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class CompiledProgramsError(VerbatimError):
    """The folder that a user named cannot be used."""


def keep(folder: str | os.PathLike[str] | None = None) -> pathlib.Path | None:
    """Lets this process load and write programs; returns where, or None where it does not.

    Call it before TensorFlow's first operation in this process; later it has no effect. Damaged
    programs are removed, and the oldest beyond `MOST_BYTES`.

    Args:
        folder: of the programs of all processors and versions. By default the one that `VARIABLE`
            names, and otherwise one among the user's caches. Nothing is kept where that last one
            cannot be used.

    Raises:
        CompiledProgramsError: a folder that was named cannot be used.
    """
    named = folder or os.environ.get(VARIABLE)
    flags = os.environ.get(_FLAGS, "").strip()
    # TensorFlow takes what begins otherwise for the name of a file of flags.
    names_a_file = flags != "" and not flags.startswith("-")
    if named == OFF or names_a_file or _FOLDER_FLAG in flags:
        return None
    root = pathlib.Path(named) if named else _of_user()
    if root is None:
        return None
    try:
        own = _prepared(root)
    except (OSError, CompiledProgramsError) as error:
        if not named:
            return None
        problem = getattr(error, "strerror", None) or error
        raise CompiledProgramsError(
            f"Compiled programs cannot be kept in {root}: {problem}; correct that, or name another "
            "folder."
        ) from None
    os.environ[_FLAGS] = f"{flags} {_FOLDER_FLAG}='{own}' {_DEVICES_FLAG}".strip()
    return own


def _of_user() -> pathlib.Path | None:
    """Returns the folder among the user's caches, or None without a home folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Containers run as users whom the system does not know.
    own = pathlib.Path(caches)
    return own / "verbatim" / "compiled_programs" if own.is_absolute() else None


def _prepared(root: pathlib.Path) -> pathlib.Path:
    """Makes the folder of this kind of process below the root, and tidies up.

    Raises:
        OSError: it cannot be made or read.
        CompiledProgramsError: it is not to be used; the message says why.
    """
    if not _CPU_FACTS.is_file():
        raise CompiledProgramsError("this system does not say what its processor can do")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    root = root.resolve()
    own = root / _kind_of_process()
    if "'" in str(own):
        raise CompiledProgramsError("TensorFlow reads no path with a single quote")
    if _others_may_write(root):
        raise CompiledProgramsError("other users may write to it, or replace it")
    own.mkdir(mode=0o700, exist_ok=True)
    if _others_may_write(own):
        raise CompiledProgramsError(f"other users may write to {own.name} in it")
    if not os.access(own, os.W_OK | os.X_OK):
        raise CompiledProgramsError("it cannot be written to")
    if shutil.disk_usage(own).free < _LEAST_FREE_BYTES:
        raise CompiledProgramsError("the disk is nearly full")
    _remove_damaged(own)
    _remove_oldest(root)
    return own


def _others_may_write(folder: pathlib.Path) -> bool:
    """Returns whether another user owns the folder, may write to it, or may replace it."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        return True
    above = [parent.stat() for parent in folder.parents]
    return bool(facts.st_mode & _OTHERS_MAY_WRITE) or any(
        one.st_uid not in (0, os.geteuid())
        # Where the sticky bit is set, as in /tmp, only the owner may replace what is there.
        or (one.st_mode & _OTHERS_MAY_WRITE and not one.st_mode & stat.S_ISVTX)
        for one in above
    )


def _kind_of_process() -> str:
    """Returns a name for all processes that can run each other's programs."""
    lines = _CPU_FACTS.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    facts = [line for line in lines if line.startswith(_INSTRUCTIONS)]
    facts += [f"{name}={os.environ.get(name, '')}" for name in _SETTINGS]
    facts += [str(processors.cores()), importlib.metadata.version("tensorflow")]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _remove_damaged(folder: pathlib.Path) -> None:
    """Removes what is no whole message, such as files that a crash of the system cut off."""
    for path in folder.glob(f"{_PREFIX}*.pb"):
        # Another process may have removed it; what cannot be read is left to TensorFlow.
        with contextlib.suppress(OSError):
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
    """Removes the oldest programs beyond `MOST_BYTES`, and no other file."""
    programs = []
    for path in (*root.glob(f"*/{_PREFIX}*.pb"), *root.glob(f"*/{_PREFIX}*.tmp")):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if _KIND.fullmatch(path.parent.name) and stat.S_ISREG(facts.st_mode):
                programs.append((facts.st_mtime, facts.st_size, path))
    total = 0
    for _, size, path in sorted(programs, reverse=True):
        total += size
        if total > MOST_BYTES:
            with contextlib.suppress(OSError):
                path.unlink()
