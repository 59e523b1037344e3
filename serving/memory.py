"""The memory of this process."""

import contextlib
import ctypes
import pathlib
import re
from collections.abc import Iterator

# The libraries of TensorFlow and TensorFlow Text, which are never unloaded. What a process unloads
# must be left alone: its place may hold something else a moment later. A whole environment in some
# folder called tensorflow does not count.
_LIBRARY = re.compile(
    r".*/(libtensorflow_\w+|(site|dist)-packages/tensorflow(_text)?/.*)\.so(\.\d+)*"
)
_PLACE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+\s*(.*)")
_MADV_DONTNEED = 4


def give_back() -> None:
    """Gives the system the memory that loading and compiling have freed, or read once.

    The C library keeps what was freed otherwise, which is hundreds of megabytes. One that has no
    function for it, such as musl, is left alone.

    A third of TensorFlow's libraries is read while they are loaded and hardly again, and so are the
    tables of characters in TensorFlow Text's. Linux counts all that was read once as memory of the
    process. What is needed again comes from the system's cache of files, which all processes share.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError, AttributeError):
        forget = ctypes.CDLL(None, use_errno=True).madvise
        forget.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for start, end in _unchanged_parts():
            forget(start, end - start, _MADV_DONTNEED)


def _unchanged_parts() -> Iterator[tuple[int, int]]:
    """Yields the addresses, first and behind the last, of libraries' parts as they are on disk."""
    place: tuple[int, int] | None = None
    for line in pathlib.Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if match := _PLACE.fullmatch(line):
            start, end, access, file = match.groups()
            is_library = _LIBRARY.fullmatch(file) and "w" not in access
            place = (int(start, 16), int(end, 16)) if is_library else None
        # Anonymous pages are changed ones, of this process alone.
        elif place and line.split() == ["Anonymous:", "0", "kB"]:
            yield place
