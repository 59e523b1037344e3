"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar

import grpc
import grpc.aio

from serving import asking
from serving.answers import Answer, Metadata, Score, VersionStatus, WordScore
from serving.caller_texts import Features, Texts, check_whole_number
from serving.connection import BATCH_SIZE, Connection, ConnectionSettings, Stubs
from serving.errors import RequestError
from serving.messages import Question

T = TypeVar("T")


class AsyncClient(Connection):
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
        super().__init__(
            ConnectionSettings(
                address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
            )
        )
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

    async def predict(
        self,
        texts: Texts,
        signature: str = "serving_default",
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """As `Client.predict`."""
        questions = self._messages.predict(texts, signature, features)
        return await self._ask(questions, timeout, return_exceptions)

    async def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[list[Answer]]:
        """As `Client.n_best`."""
        questions = self._messages.n_best(texts, signature, features)
        return await self._ask(questions, timeout, return_exceptions)

    async def score(
        self,
        sources: Texts,
        targets: Texts,
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Score]:
        """As `Client.score`."""
        questions = self._messages.score(sources, targets, features)
        return await self._ask(questions, timeout, return_exceptions)

    async def continue_text(
        self,
        texts: Texts,
        signature: str = "continue",
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """As `Client.continue_text`."""
        questions = self._messages.continue_text(texts, signature)
        return await self._ask(questions, timeout, return_exceptions)

    async def score_text(
        self,
        texts: Texts,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[WordScore]:
        """As `Client.score_text`."""
        questions = self._messages.score_text(texts)
        return await self._ask(questions, timeout, return_exceptions)

    async def metadata(self, *, timeout: float | None = None) -> Metadata:
        """As `Client.metadata`."""
        return await self._answer(self._messages.metadata(), timeout)

    async def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """As `Client.status`."""
        return await self._answer(self._messages.status(), timeout)

    async def _ask(
        self, questions: Iterator[Question[list[T]]], timeout: float | None, return_exceptions: bool
    ) -> list[T]:
        collected = asking.Collected()

        async def work() -> None:
            # All workers share the questions: each takes the next one.
            for first in questions:
                asked = collected.ask(first)
                reply: list[Any] | RequestError | None = None
                while True:
                    try:
                        question = next(asked) if reply is None else asked.send(reply)
                    except StopIteration:
                        break
                    try:
                        reply = await self._answer(question, timeout)
                    except RequestError as error:
                        reply = error

        workers = [asyncio.ensure_future(work()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*workers)
        except BaseException as error:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if isinstance(error, RequestError):
                raise collected.broken_off(error) from None
            raise
        return collected.result(return_exceptions)

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
