"""Clears the mark by which a shared library asks for an executable stack.

From glibc 2.41 on, such a library cannot be imported: "cannot enable executable stack as shared
object requires". CTranslate2 3.24.0, which OpenNMT-tf imports, has the mark and runs without.

The mark is the flag `PF_X` of the program header `PT_GNU_STACK` (`man elf`).
"""

import pathlib
import shutil
import struct
from collections.abc import Iterator

_PT_GNU_STACK, _PF_X = 0x6474E551, 1
# Of 64-bit files, little-endian: the place of the program headers, their size and their number.
_MAGIC, _HEADER = b"\x7fELF\x02\x01", struct.Struct("<32xQ14xHH")


def clear(folder: pathlib.Path) -> list[pathlib.Path]:
    """Clears the mark of every shared library below a folder; returns those that had it."""
    changed = []
    for path in sorted(_libraries(folder)):
        place = _marked(path)
        if place is None:
            continue
        # A copy: an installer's cache may hold the same file under another name.
        copy = path.with_name(f"{path.name}.copy")
        shutil.copy2(path, copy)
        with copy.open("r+b") as file:
            file.seek(place)
            flags = struct.unpack("<I", file.read(4))[0]
            file.seek(place)
            file.write(struct.pack("<I", flags & ~_PF_X))
        copy.replace(path)
        changed.append(path)
    return changed


def _libraries(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in folder.rglob("*.so*"):
        if path.is_file() and not path.is_symlink():
            yield path


def _marked(path: pathlib.Path) -> int | None:
    """Returns where in a file the flags are that ask for an executable stack, or None."""
    with path.open("rb") as file:
        start = file.read(_HEADER.size)
        if len(start) < _HEADER.size or not start.startswith(_MAGIC):
            return None
        offset, size, number = _HEADER.unpack(start)
        for place in range(offset, offset + size * number, size):
            file.seek(place)
            kind, flags = struct.unpack("<II", file.read(8))
            if kind == _PT_GNU_STACK and flags & _PF_X:
                return place + 4
    return None
