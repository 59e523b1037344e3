"""Standard error of C++ libraries, without notes that do not help a user.

TensorFlow's log level does not stop all of them: some are written before it is read, those of XLA
and sentencepiece with loggers of their own, at any time of a process.
"""

import contextlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator

_NOTE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    # Notes of TensorFlow and XLA, in the newer and in the older format.
    rb"|I\d{4} \d\d:\d\d:"
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: I "
    rb"|To enable the following instructions: "
    rb"|.*Unable to register cu\w+ factory: "
    rb"|.*computation placer already registered"
    rb"|.*TF-TRT Warning: Could not find TensorRT"
    # Notes of `serving.compiled_programs`. TensorFlow first tries to parse a program as text.
    # "+prefer-" is a setting of LLVM, not an instruction that the processor lacks.
    rb"|.*Error parsing text-format tensorflow\.XlaSerializedCacheEntry"
    rb"|.*Loading XLA:CPU AOT result\. Target machine feature \+prefer-"
    # Notes of sentencepiece.
    rb"|\w+\.cc\(\d+\) (?:\[.*\] )?LOG\(INFO\)"
)
_STANDARD_ERROR = 2
# After this time text without a line end is passed on as it is.
_SECONDS_FOR_A_LINE = 0.2
# How long to wait for processes that this one started and that may still write.
_SECONDS_TO_END = 1.0


@contextlib.contextmanager
def left_out() -> Iterator[None]:
    """Filters notes out of standard error while the block runs.

    Libraries write to the file descriptor, which becomes a pipe to a process that passes on the
    other lines. It is a process of its own, so that the last output of a crash is passed on too.
    `sys.stderr` does not go through it. If Python's standard error was replaced, as in tests,
    nothing happens.
    """
    if not _is_our_standard_error():
        yield
        return
    own = sys.stderr
    own.flush()
    sys.stdout.flush()
    real = os.dup(_STANDARD_ERROR)
    reading, writing = os.pipe()
    filtering = os.fork()
    if not filtering:
        os.close(writing)
        _filter(reading, real)
    os.close(reading)
    os.dup2(writing, _STANDARD_ERROR)
    os.close(writing)
    sys.stderr = open(
        real, "w", buffering=1, encoding=own.encoding, errors=own.errors, closefd=False
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = own
        # This process stops writing to the pipe, which ends the other one.
        os.dup2(real, _STANDARD_ERROR)
        os.close(real)
        _wait_for(filtering)


def _is_our_standard_error() -> bool:
    try:
        return sys.stderr.fileno() == _STANDARD_ERROR
    except (AttributeError, OSError, ValueError):
        return False


def _filter(reading: int, real: int) -> None:
    """Passes on all lines except notes until the pipe is closed; then ends the process."""
    try:
        # Ctrl-C reaches every process of a terminal; this one ends when the others have ended.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # A reader of the command's output must not wait for this process.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, _STANDARD_ERROR):
            os.dup2(null, descriptor)
        _pass_on(reading, real)
    finally:
        os._exit(0)


def _pass_on(reading: int, real: int) -> None:
    rest = b""
    while True:
        ready, _, _ = select.select([reading], [], [], _SECONDS_FOR_A_LINE if rest else None)
        part = os.read(reading, 65536) if ready else b""
        *lines, rest = (rest + part).split(b"\n")
        text = b"".join(line + b"\n" for line in lines if not _NOTE.match(line))
        if not part:
            text += b"" if _NOTE.match(rest) else rest
            rest = b""
        _write(real, text)
        if ready and not part:
            return


def _write(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]


def _wait_for(process: int) -> None:
    until = time.monotonic() + _SECONDS_TO_END
    with contextlib.suppress(ChildProcessError):
        while not os.waitpid(process, os.WNOHANG)[0] and time.monotonic() < until:
            time.sleep(0.002)
