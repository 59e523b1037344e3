"""The asyncio client: many requests under way at once, batches, cancellation, closing."""

import asyncio
import threading

import grpc
import pytest

from serving.client import AsyncClient, Client, RequestError, Score, VersionStatus
from tests.serving.scripted_server import PATIENCE


async def released(semaphore):
    """Waits until a server's thread has released a semaphore."""
    assert await asyncio.to_thread(semaphore.acquire, timeout=PATIENCE)


def test_it_answers_as_the_other_client_does(shared_server):
    async def ask():
        async with AsyncClient(shared_server.address, model="shouter", version=7) as client:
            assert await client.status() == [VersionStatus(7, "AVAILABLE")]
            return (
                await client.predict(["hello %(name)s you", "x"]),
                await client.n_best("Ab %s c"),
                await client.score(["a", "b"], ["x", "y z"]),
                await client.metadata(),
                await client.predict([]),
            )

    with Client(shared_server.address) as client:
        assert asyncio.run(ask()) == (
            client.predict(["hello %(name)s you", "x"]),
            client.n_best("Ab %s c"),
            [Score(-1.0, 2), Score(-1.5, 3)],
            client.metadata(),
            [],
        )


def test_requests_under_way_together_get_their_own_answers(shared_server):
    async def ask():
        async with AsyncClient(shared_server.address) as client:
            return await asyncio.gather(*(client.predict(f"text {number}") for number in range(64)))

    answers = asyncio.run(ask())
    assert [answer.text for (answer,) in answers] == [f"TEXT {number}" for number in range(64)]


def test_they_share_one_connection(scripted_server):
    scripted_server.together = threading.Barrier(8)  # none goes on before eight are there

    async def ask():
        async with AsyncClient(scripted_server.address) as client:
            return await asyncio.gather(*(client.predict(f"text {number}") for number in range(64)))

    answers = asyncio.run(ask())
    assert [answer.text for (answer,) in answers] == [f"text {number}" for number in range(64)]
    assert len({seen.connection for seen in scripted_server.seen}) == 1


def test_batches_are_sent_together_and_answered_in_order(scripted_server):
    texts = [f"text {number}" for number in range(18)]
    scripted_server.together = threading.Barrier(3)

    async def ask(concurrency):
        async with AsyncClient(
            scripted_server.address, batch_size=2, concurrency=concurrency
        ) as client:
            return await client.predict(texts)

    assert [answer.text for answer in asyncio.run(ask(3))] == texts
    assert len(scripted_server.seen) == 9


def test_no_more_batches_than_concurrency_says(scripted_server):
    scripted_server.script.extend(["hang"] * 2)

    async def ask():
        async with AsyncClient(scripted_server.address, batch_size=1, concurrency=2) as client:
            asked = asyncio.ensure_future(client.predict(["a", "b", "c", "d"]))
            for _ in range(2):
                await released(scripted_server.hanging)
            # A third request would be answered, since the script is at its end, and this one be
            # seen after it.
            assert [answer.text for answer in await client.predict("e")] == ["e"]
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            for _ in range(2):
                await released(scripted_server.given_up)

    asyncio.run(ask())
    assert sorted(seen.inputs["source"] for seen in scripted_server.seen) == [["a"], ["b"], ["e"]]


def test_a_batch_that_fails_ends_the_others(scripted_server):
    scripted_server.together = threading.Barrier(2)

    async def ask():
        async with AsyncClient(scripted_server.address, batch_size=2, concurrency=2) as client:
            with pytest.raises(RequestError) as caught:
                await client.predict(["hang", "b", "INTERNAL", "d", "e"])
            await released(scripted_server.given_up)
            return caught.value

    error = asyncio.run(ask())
    assert str(error).startswith("Texts 2 to 3, counted from 0: The server at ")
    assert str(error).endswith(" answered INTERNAL: as the script says")
    assert error.code == grpc.StatusCode.INTERNAL
    assert len(scripted_server.seen) == 2


def test_a_cancelled_request_ends_on_the_server(scripted_server):
    async def ask():
        async with AsyncClient(scripted_server.address) as client:
            waiting = asyncio.ensure_future(client.predict("hang"))
            await released(scripted_server.hanging)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await released(scripted_server.given_up)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.predict("hang"), 0.2)
            return await client.predict("a")

    (answer,) = asyncio.run(ask())
    assert answer.text == "a"


def test_a_closed_client_says_so(scripted_server):
    async def ask():
        client = AsyncClient(scripted_server.address)
        waiting, cancelled = (asyncio.ensure_future(client.predict("hang")) for _ in range(2))
        for _ in range(2):
            await released(scripted_server.hanging)
        cancelled.cancel()
        await client.close()
        await client.close()
        with pytest.raises(asyncio.CancelledError):
            await cancelled  # closing is not what ended it
        for failing in (waiting, client.predict("a"), client.status()):
            with pytest.raises(
                RequestError, match=f"The client of {scripted_server.address} is closed."
            ) as caught:
                await failing
            assert caught.value.code == grpc.StatusCode.CANCELLED

    asyncio.run(ask())


def test_it_can_be_made_before_the_event_loop(shared_server):
    client = AsyncClient(shared_server.address)

    async def ask():
        async with client:
            return await client.predict("a")

    assert [answer.text for answer in asyncio.run(ask())] == ["A"]
    asyncio.run(AsyncClient(shared_server.address).close())  # never used
