"""The client for asyncio."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import grpc
import grpc.aio

from serving.async_text_model import AsyncTextModel
from serving.caller_texts import check_whole_number
from serving.connection import BATCH_SIZE, Connection, ConnectionSettings, Stubs
from serving.messages import Question

T = TypeVar("T")


class AsyncClient(AsyncTextModel, Connection):
    """`Client` for asyncio: the same methods, to be awaited.

    Close it, or use it in an `async with` statement.

    Any number of requests can be under way over its one connection. A cancelled request is
    cancelled on the server too. The client belongs to the event loop that uses it first.

    Args:
        address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready: as for
            `Client`.
        concurrency: how many requests of one list, divided by `batch_size`, run concurrently. If
            one fails, the others are cancelled.

    Raises:
        RequestError: an argument is of another type, or a number out of its range.
    """

    def __init__(
        self,
        address: str,
        model: str | None = None,
        timeout: float | None = 30.0,
        credentials: grpc.ChannelCredentials | None = None,
        version: int | None = None,
        *,
        attempts: int = 3,
        batch_size: int | None = BATCH_SIZE,
        wait_for_ready: bool = False,
        concurrency: int = 4,
    ) -> None:
        settings = ConnectionSettings(
            address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
        )
        Connection.__init__(self, settings)
        check_whole_number("concurrency", concurrency, 1)
        self._concurrency = concurrency
        # The first request opens them: they need a running event loop.
        self._stubs: Stubs | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; requests under way end with `RequestError`."""
        self._closed = True
        if self._stubs is not None:
            await self._stubs.channel.close()

    async def _answer(self, question: Question[T], timeout: float | None) -> T:
        timeout = self._seconds(timeout)
        self._check_open()
        message = question.make()
        if self._stubs is None:
            self._stubs = self._open(grpc.aio)
        call = self._stubs.methods[question.method](
            message,
            timeout=timeout,
            wait_for_ready=self._settings.wait_for_ready,
        )
        answered = asyncio.ensure_future(call)
        try:
            # Awaited itself, it would raise CancelledError both where this task and where the
            # client's end cancels it.
            await asyncio.wait([answered])
        except asyncio.CancelledError:
            answered.cancel()
            raise
        if answered.cancelled():
            raise self._was_closed()
        try:
            response = answered.result()
        except grpc.RpcError as error:
            raise self._failure(question, error, timeout) from None
        return question.read(response)
