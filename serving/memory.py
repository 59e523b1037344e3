"""The memory of this process."""

import contextlib
import ctypes


def give_back() -> None:
    """Gives the system the memory that loading and compiling have freed.

    The C library keeps it otherwise, which is hundreds of megabytes. One that has no function for
    it, such as musl, is left alone.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
