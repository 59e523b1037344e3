"""The meeting of a training's workers, before TensorFlow connects them.

TensorFlow waits without a word for a worker that does not come, and takes one that was started
again for the one it lost. So each worker first listens at its own address of `TF_CONFIG` and greets
all others at theirs. A worker leaves when it has greeted all and all have greeted it. TensorFlow
then listens at the same address. What answers without a greeting, such as the TensorFlow of an
earlier attempt that has not noticed its loss yet, is asked again until the time is over.
"""

import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence

from pipeline.training.tf_config import DataParallelError

#: Seconds that workers wait for each other.
PATIENCE = 900.0
# Seconds for a process that was killed to free its port.
_PORT_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 0.2
_GREETING = "verbatim worker {}\n"
_LENGTH = 64


def meet(addresses: Sequence[str], number: int, seconds: float = PATIENCE) -> None:
    """Waits until all workers of a training have greeted each other.

    Args:
        addresses: HOST:PORT of each worker.
        number: which one this process is, from 0.
        seconds: how long to wait.

    Raises:
        DataParallelError: this worker's port cannot be used, or the time is over; one sentence.
    """
    deadline = time.monotonic() + seconds
    others = set(range(len(addresses))) - {number}
    greeted: set[int] = set()
    with contextlib.closing(_listen(addresses[number], number)) as listener:
        visitors = _Visitors(listener, number)
        with visitors.received():
            while others - greeted or others - visitors.numbers:
                for other in sorted(others - greeted):
                    if _greet(addresses[other], number) == other:
                        greeted.add(other)
                missing = sorted(others - (greeted & visitors.numbers))
                if missing and time.monotonic() > deadline:
                    names = ", ".join(f"{other} at {addresses[other]}" for other in missing)
                    raise DataParallelError(
                        f"Worker {number} waited {seconds:g} seconds for worker {names}: start "
                        "all workers, and check that they reach each other at the addresses of "
                        "TF_CONFIG."
                    )
                time.sleep(_PAUSE_SECONDS)


class _Visitors:
    """Those that greet a worker."""

    def __init__(self, listener: socket.socket, number: int) -> None:
        self.numbers: set[int] = set()
        self._listener, self._own = listener, _GREETING.format(number).encode()
        self._over = threading.Event()

    @contextlib.contextmanager
    def received(self) -> Iterator[None]:
        """Greets whoever comes while the block runs."""
        thread = threading.Thread(target=self._receive, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _receive(self) -> None:
        self._listener.settimeout(_PAUSE_SECONDS)
        while not self._over.is_set():
            # A visitor that says nothing, or has gone: the next one.
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                with connection:
                    connection.settimeout(_ANSWER_SECONDS)
                    visitor = _read(connection)
                    if visitor is not None:
                        connection.sendall(self._own)
                        self.numbers.add(visitor)


def _listen(address: str, number: int) -> socket.socket:
    """Returns what listens at a worker's port, on all of the machine's addresses as TensorFlow."""
    port = int(address.rpartition(":")[2])
    deadline = time.monotonic() + _PORT_SECONDS
    while True:
        try:
            return socket.create_server(("", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
                continue
            raise DataParallelError(
                f"Port {port}, which TF_CONFIG gives worker {number}, cannot be used "
                f"({os.strerror(error.errno or 0)}): stop the program that holds it, or name "
                "another port."
            ) from error


def _greet(address: str, number: int) -> int | None:
    """Greets another worker; returns the number that it answers with, None if it does not."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS) as connection:
            connection.sendall(_GREETING.format(number).encode())
            return _read(connection)
    # Not there yet; nor may its name be.
    except OSError:
        return None


def _read(connection: socket.socket) -> int | None:
    """Returns the number in a greeting; None if it is none."""
    received = b""
    while not received.endswith(b"\n") and len(received) < _LENGTH:
        part = connection.recv(_LENGTH - len(received))
        if not part:
            break
        received += part
    words, _, number = received.decode("ascii", "replace").strip().rpartition(" ")
    if f"{words} " != _GREETING.format("").rstrip("\n") or not number.isdigit():
        return None
    return int(number)
