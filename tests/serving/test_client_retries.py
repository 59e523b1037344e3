"""Retries, deadlines and restarts: the same for both clients."""

import asyncio
import concurrent.futures
import socket

import grpc
import pytest

from serving.client import AsyncClient, Client, RequestError
from serving.server import ModelServer, ServerSettings
from tests.serving.scripted_server import PATIENCE, ScriptedServer


@pytest.mark.parametrize("failure, times", [("UNAVAILABLE", 2), ("RESOURCE_EXHAUSTED", 1)])
def test_a_failure_that_passes_is_tried_again(ask, scripted_server, failure, times):
    scripted_server.script.extend([failure] * times)
    assert ask(scripted_server.address, "a", "b") == ["a", "b"]
    assert len(scripted_server.seen) == 2 + times


@pytest.mark.parametrize(
    "failure",
    [
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "DEADLINE_EXCEEDED",
        "INTERNAL",
        "UNIMPLEMENTED",
        "CANCELLED",
    ],
)
def test_no_other_failure_is(ask, scripted_server, failure):
    scripted_server.script.extend([failure] * 2)
    with pytest.raises(RequestError) as caught:
        ask(scripted_server.address, "a")
    assert caught.value.code.name == failure
    assert len(scripted_server.seen) == 1


@pytest.mark.parametrize("attempts", [1, 2])
def test_attempts_come_to_an_end(ask, scripted_server, attempts):
    scripted_server.script.extend(["UNAVAILABLE"] * 9)
    with pytest.raises(RequestError, match="No server answers") as caught:
        ask(scripted_server.address, "a", attempts=attempts)
    assert caught.value.code == grpc.StatusCode.UNAVAILABLE
    assert len(scripted_server.seen) == attempts


def test_a_large_request_is_tried_again_too(ask, scripted_server):
    scripted_server.script.append("UNAVAILABLE")
    text = "x" * 1_000_000  # by itself, gRPC keeps no more than 256 KiB for another attempt
    assert ask(scripted_server.address, text) == [text]


def test_the_deadline_bounds_all_attempts(ask, scripted_server):
    scripted_server.script.extend(["UNAVAILABLE", "hang", "a"])
    with pytest.raises(RequestError, match="did not answer within 1.5 seconds") as caught:
        ask(scripted_server.address, "a", timeout=1.5)
    assert caught.value.code == grpc.StatusCode.DEADLINE_EXCEEDED
    first, second = (seen.seconds_left for seen in scripted_server.seen)
    assert second < first < 2  # what the first attempt and the pause took is gone
    assert scripted_server.given_up.acquire(timeout=PATIENCE)


def test_a_call_can_have_a_deadline_of_its_own(ask, scripted_server):
    ask(scripted_server.address, "a", timeout=200)
    ask(scripted_server.address, "a", timeout=200, timeouts=50)
    ask(scripted_server.address, "a", timeout=None)
    own, given, none = (seen.seconds_left for seen in scripted_server.seen)
    assert 100 < own < 220 and given < 60
    assert none > 1e9  # gRPC's for ever


def test_a_server_that_restarts_between_two_requests(shared_folder):
    with ModelServer(shared_folder, ServerSettings(port=0)) as server:
        port = server.port
        with Client(server.address) as client:
            assert client.predict("a")[0].text == "A"
            server.stop(0)
            with ModelServer(shared_folder, ServerSettings(port=port)):
                assert client.predict("b")[0].text == "B"


def test_a_server_that_restarts_between_two_requests_of_asyncio(shared_folder):
    async def ask(server):
        async with AsyncClient(server.address) as client:
            assert (await client.predict("a"))[0].text == "A"
            await asyncio.to_thread(server.stop, 0)
            settings = ServerSettings(port=server.port)
            again = await asyncio.to_thread(ModelServer, shared_folder, settings)
            await asyncio.to_thread(again.start)
            assert (await client.predict("b"))[0].text == "B"
            await asyncio.to_thread(again.stop, 0)

    with ModelServer(shared_folder, ServerSettings(port=0)) as server:
        asyncio.run(ask(server))


def test_a_request_that_a_stopping_server_broke_off_goes_to_the_next(ask):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with ScriptedServer() as stopping:
            stopping.script.append("hang")
            waiting = pool.submit(ask, stopping.address, "a", timeout=PATIENCE, wait_for_ready=True)
            assert stopping.hanging.acquire(timeout=PATIENCE)
        with ScriptedServer(stopping.port):
            assert waiting.result() == ["a"]


def test_a_server_that_comes_later(ask):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    with pytest.raises(RequestError, match=f"No server answers at {address}; start one"):
        ask(address, "a", attempts=1)
    with pytest.raises(RequestError, match="did not answer within 0.1 seconds"):
        ask(address, "a", timeout=0.1, wait_for_ready=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, address, "a", timeout=PATIENCE, wait_for_ready=True)
        concurrent.futures.wait([waiting], timeout=0.3)
        assert not waiting.done()
        with ScriptedServer(port):
            assert waiting.result() == ["a"]
