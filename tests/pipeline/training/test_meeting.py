"""Workers meet before TensorFlow connects them; who does not come is named."""

import socket
import threading

import pytest

from pipeline.training import meeting
from pipeline.training.tf_config import DataParallelError
from tests.pipeline.training.training_operator import cluster_of


def meet_all(addresses, numbers, seconds=60):
    """Lets workers meet, each in a thread; returns what went wrong, by worker."""
    errors = {}

    def meet(number):
        try:
            meeting.meet(addresses, number, seconds)
        except DataParallelError as error:
            errors[number] = str(error)

    threads = [threading.Thread(target=meet, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("count", [2, 3, 5])
def test_workers_meet_in_any_order_and_free_their_ports(count):
    addresses = cluster_of(count)["worker"]
    assert meet_all(addresses, reversed(range(count))) == {}
    # Each port is TensorFlow's now; and they can meet once more.
    assert meet_all(addresses, range(count)) == {}


def test_who_does_not_come_is_named():
    addresses = cluster_of(3)["worker"]
    errors = meet_all(addresses, [1, 2], 2)
    assert sorted(errors) == [1, 2]
    for number, error in errors.items():
        assert error == (
            f"Worker {number} waited 2 seconds for worker 0 at {addresses[0]}: start all workers, "
            "and check that they reach each other at the addresses of TF_CONFIG."
        )


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/2\r\n",
        b"\x00" * 200,
        b"other words 1\n",
        b"verbatim worker one\n",
        b"verbatim worker 0\n",
    ],
)
def test_what_does_not_greet_is_no_worker(answer):
    """The TensorFlow of an earlier attempt, another program, another worker's number."""
    addresses = cluster_of(2)["worker"]
    host, _, port = addresses[1].rpartition(":")
    with socket.create_server((host, int(port))) as other:
        other.settimeout(0.2)
        over = threading.Event()

        def serve():
            while not over.is_set():
                try:
                    connection, _ = other.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        errors = meet_all(addresses, [0], 1)
        over.set()
        thread.join()
    assert f"waited 1 seconds for worker 1 at {addresses[1]}" in errors[0]


@pytest.mark.parametrize(
    "words,number",
    [
        (b"verbatim worker 12\n", 12),
        (b"verbatim worker -1\n", None),
        (b"verbatim worker \n", None),
        (b"other words 1\n", None),
        (b"1\n", None),
        (b"\xff\n", None),
    ],
)
def test_a_greeting_is_read_to_the_letter(words, number):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(words)
        assert meeting._read(ours) == number


def test_a_visitor_that_is_no_worker_keeps_nobody_from_meeting():
    addresses = cluster_of(2)["worker"]
    errors = {}
    first = threading.Thread(target=lambda: errors.update(meet_all(addresses, [0])))
    first.start()
    host, _, port = addresses[0].rpartition(":")
    for words in (b"", b"GET / HTTP/1.1\r\n\r\n", b"verbatim worker 1"):
        while True:
            try:
                with socket.create_connection((host, int(port)), 5) as visitor:
                    visitor.sendall(words)
                break
            except OSError:
                continue
    errors.update(meet_all(addresses, [1]))
    first.join()
    assert errors == {}


def test_a_port_in_use_is_told(monkeypatch):
    monkeypatch.setattr(meeting, "_PORT_SECONDS", 0.5)
    addresses = cluster_of(2)["worker"]
    port = addresses[0].rpartition(":")[2]
    with socket.create_server(("", int(port))):
        errors = meet_all(addresses, [0], 1)
    assert errors[0] == (
        f"Port {port}, which TF_CONFIG gives worker 0, cannot be used (Address already in use): "
        "stop the program that holds it, or name another port."
    )


def test_a_port_that_is_freed_is_waited_for():
    addresses = cluster_of(2)["worker"]
    port = int(addresses[0].rpartition(":")[2])
    holder = socket.create_server(("", port))
    threading.Timer(1, holder.close).start()
    assert meet_all(addresses, [0, 1]) == {}
