"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeVar

import grpc
import grpc.aio

from serving.answers import Answer, Metadata, Score, VersionStatus, WordScore
from serving.connection import Connection, ConnectionSettings, Stubs, check_positive
from serving.messages import Features, Question, Texts

T = TypeVar("T")


class AsyncClient(Connection):
    """`Client` for asyncio: the same methods, to be awaited.

    Close it, or use it in an `async with` statement.

    Any number of requests can be under way over its one connection. A cancelled request is
    cancelled on the server too. The client belongs to the event loop that uses it first.

    Args:
        address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready: as for
            `Client`.
        concurrency: how many of the requests that `batch_size` makes of one list are under way at
            the same time. If one fails, the others are cancelled.

    Raises:
        ImportError: `tensorflow-serving-api` is not installed.
        RequestError: a number is out of its range.
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
        batch_size: int | None = None,
        wait_for_ready: bool = False,
        concurrency: int = 4,
    ) -> None:
        super().__init__(
            ConnectionSettings(
                address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
            )
        )
        check_positive("concurrency", concurrency)
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
    ) -> list[Answer]:
        """As `Client.predict`."""
        return await self._ask(self._messages.predict(texts, signature, features), timeout)

    async def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        timeout: float | None = None,
    ) -> list[list[Answer]]:
        """As `Client.n_best`."""
        return await self._ask(self._messages.n_best(texts, signature, features), timeout)

    async def score(
        self,
        sources: Texts,
        targets: Texts,
        features: Features | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Score]:
        """As `Client.score`."""
        return await self._ask(self._messages.score(sources, targets, features), timeout)

    async def continue_text(
        self, texts: Texts, signature: str = "continue", *, timeout: float | None = None
    ) -> list[Answer]:
        """As `Client.continue_text`."""
        return await self._ask(self._messages.continue_text(texts, signature), timeout)

    async def score_text(self, texts: Texts, *, timeout: float | None = None) -> list[WordScore]:
        """As `Client.score_text`."""
        return await self._ask(self._messages.score_text(texts), timeout)

    async def metadata(self, *, timeout: float | None = None) -> Metadata:
        """As `Client.metadata`."""
        return await self._answer(self._messages.metadata(), timeout)

    async def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """As `Client.status`."""
        return await self._answer(self._messages.status(), timeout)

    async def _ask(self, questions: Iterator[Question[list[T]]], timeout: float | None) -> list[T]:
        batches: dict[int, list[T]] = {}
        # All workers share it: each takes the next question.
        numbered = enumerate(questions)

        async def work() -> None:
            for number, question in numbered:
                batches[number] = await self._answer(question, timeout)

        workers = [asyncio.ensure_future(work()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise
        return [answer for number in sorted(batches) for answer in batches[number]]

    async def _answer(self, question: Question[T], timeout: float | None) -> T:
        timeout = self.timeout if timeout is None else timeout
        self._check_open()
        if self._stubs is None:
            self._stubs = self._open(grpc.aio)
        call = self._stubs.methods[question.method](
            question.message,
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
