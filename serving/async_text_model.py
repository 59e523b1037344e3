"""What a model can be asked with asyncio, wherever it is: on a server, or in this process."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar

from serving import asking
from serving.answers import Answer, Explanation, Metadata, Score, VersionStatus, WordScore
from serving.caller_texts import Features, Texts
from serving.errors import RequestError
from serving.glossary import GlossaryLike
from serving.messages import Messages, Question

T = TypeVar("T")


class AsyncTextModel(abc.ABC):
    """`TextModel` for asyncio: `serving.client.AsyncClient` and `serving.model.AsyncModel`."""

    _messages: Messages
    #: How many requests of one list run concurrently.
    _concurrency: int

    @abc.abstractmethod
    async def close(self) -> None:
        """Ends the connection, or frees the model."""

    async def predict(
        self,
        texts: Texts,
        signature: str = "serving_default",
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """As `TextModel.predict`."""
        questions = self._messages.predict(texts, signature, features, glossary)
        return await self._ask(questions, timeout, return_exceptions)

    async def explain(
        self,
        texts: Texts,
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Explanation]:
        """As `TextModel.explain`."""
        questions = self._messages.explain(texts, features, glossary)
        return await self._ask(questions, timeout, return_exceptions)

    async def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        glossary: GlossaryLike | None = None,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[list[Answer]]:
        """As `TextModel.n_best`."""
        questions = self._messages.n_best(texts, signature, features, glossary)
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
        """As `TextModel.score`."""
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
        """As `TextModel.continue_text`."""
        questions = self._messages.continue_text(texts, signature)
        return await self._ask(questions, timeout, return_exceptions)

    async def score_text(
        self,
        texts: Texts,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[WordScore]:
        """As `TextModel.score_text`."""
        questions = self._messages.score_text(texts)
        return await self._ask(questions, timeout, return_exceptions)

    async def metadata(self, *, timeout: float | None = None) -> Metadata:
        """As `TextModel.metadata`."""
        return await self._answer(self._messages.metadata(), timeout)

    async def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """As `TextModel.status`."""
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
                while question := collected.step(asked, reply):
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

    @abc.abstractmethod
    async def _answer(self, question: Question[T], timeout: float | None) -> T:
        """Returns the answer to one request."""
