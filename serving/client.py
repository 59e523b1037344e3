"""Clients for a served Verbatim model: this project's embedded server, or TensorFlow Serving.

They need only the packages grpcio and protobuf, and start in a fraction of a second: no TensorFlow,
TFX, Keras or NumPy. See `serving/protos.py`.

    with Client("127.0.0.1:8500") as client:
        for answer in client.predict(["Hello %(name)s"]):
            print(format_answer(answer))

    async with AsyncClient("127.0.0.1:8500") as client:
        first, second = await asyncio.gather(client.predict("Hello"), client.predict("Goodbye"))
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, TypeVar

import grpc

from serving import asking
from serving.answers import (
    Answer,
    Metadata,
    Score,
    Signature,
    TensorFacts,
    Token,
    VersionStatus,
    WordScore,
    format_answer,
)
from serving.async_client import AsyncClient
from serving.caller_texts import Features, Texts
from serving.connection import BATCH_SIZE, Connection, ConnectionSettings
from serving.errors import RequestError
from serving.messages import Question

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Metadata",
    "RequestError",
    "Score",
    "Signature",
    "TensorFacts",
    "Token",
    "VersionStatus",
    "WordScore",
    "format_answer",
]

T = TypeVar("T")


class Client(Connection):
    """A connection to one served model. Close it, or use it in a `with` statement.

    Threads may share it.

    A request is sent again if no server is available (UNAVAILABLE) or a server is full
    (RESOURCE_EXHAUSTED): after about 0.2, then 0.6, 1.8 and 5 seconds, until `attempts` are used up
    or its time is over. No other failure is retried.

    Args:
        address: `HOST:PORT`.
        model: the model's name. None is the only model of an embedded server; TensorFlow Serving
            needs the name.
        timeout: seconds for a request, all its attempts together; the server knows it too. None
            waits without limit.
        credentials: `serving.tls.client_credentials(...)` or gRPC's own, for a server with TLS;
            None is no TLS.
        version: a version number to insist on; None is the latest.
        attempts: the most times that a request is sent, 1 to 5; 1 never retries.
        batch_size: the most texts in a request; more are sent in several, each with the whole
            `timeout`. None sends all in one; if a server refuses so many, each half is sent alone.
        wait_for_ready: whether to wait, within `timeout`, for a server that has not started yet.

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
    ) -> None:
        super().__init__(
            ConnectionSettings(
                address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
            )
        )
        self._stubs = self._open(grpc)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; requests that other threads wait for end with `RequestError`."""
        self._closed = True
        self._stubs.channel.close()

    def predict(
        self,
        texts: Texts,
        signature: str = "serving_default",
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """Returns the best output of each text.

        Args:
            texts: a text or any number of them.
            signature: `serving_default`, `serving_default_no_xla` or `explain`.
            features: dict from each column of tags that the model takes (`data.source_features`) to
                as many texts; or None.
            timeout: seconds instead of the client's; None is the client's.
            return_exceptions: if true, a refused text raises no exception; its `RequestError` takes
                its place in the list.

        Returns:
            A list of `Answer`, one per text.

        Raises:
            RequestError: a text is refused, or there is no answer; one sentence says why. Its
                `answers` has the answers to the other texts, and its `index` the place of the first
                text that is refused, counted from 0.
        """
        questions = self._messages.predict(texts, signature, features)
        return self._ask(questions, timeout, return_exceptions)

    def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[list[Answer]]:
        """Returns the best outputs of each text, the best first.

        Args:
            texts: a text or any number of them.
            signature: `n_best` or `n_best_no_xla`.
            features, timeout, return_exceptions: as in `predict`.

        Returns:
            A list with one list of `Answer` per text.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.n_best(texts, signature, features)
        return self._ask(questions, timeout, return_exceptions)

    def score(
        self,
        sources: Texts,
        targets: Texts,
        features: Features | None = None,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Score]:
        """Returns the model's score of each target for its source.

        Args:
            sources: a text or any number of them.
            targets: as many.
            features, timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `Score`.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.score(sources, targets, features)
        return self._ask(questions, timeout, return_exceptions)

    def continue_text(
        self,
        texts: Texts,
        signature: str = "continue",
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[Answer]:
        """Returns how a language model continues each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            signature: `continue` or `continue_no_xla`.
            timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `Answer`, one per text. Its text is only the continuation, and its score the
            sum of the words' log-probabilities. `copied_from` counts the words of text and
            continuation, line feeds included.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.continue_text(texts, signature)
        return self._ask(questions, timeout, return_exceptions)

    def score_text(
        self,
        texts: Texts,
        *,
        timeout: float | None = None,
        return_exceptions: bool = False,
    ) -> list[WordScore]:
        """Returns a language model's score of each word of each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            timeout, return_exceptions: as in `predict`.

        Returns:
            A list of `WordScore`.

        Raises:
            RequestError: as in `predict`.
        """
        questions = self._messages.score_text(texts)
        return self._ask(questions, timeout, return_exceptions)

    def metadata(self, *, timeout: float | None = None) -> Metadata:
        """Returns the `Metadata` of the version that answers.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        return self._answer(self._messages.metadata(), timeout)

    def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """Returns a list of `VersionStatus`, one for each version that the server knows.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        return self._answer(self._messages.status(), timeout)

    def _ask(
        self, questions: Iterable[Question[list[T]]], timeout: float | None, return_exceptions: bool
    ) -> list[T]:
        collected = asking.Collected()
        try:
            for first in questions:
                asked = collected.ask(first)
                reply: list[Any] | RequestError | None = None
                # The generator ends once this question's texts have their answers.
                with contextlib.suppress(StopIteration):
                    while True:
                        question = next(asked) if reply is None else asked.send(reply)
                        try:
                            reply = self._answer(question, timeout)
                        except RequestError as error:
                            reply = error
        except RequestError as error:
            raise collected.broken_off(error) from None
        return collected.result(return_exceptions)

    def _answer(self, question: Question[T], timeout: float | None) -> T:
        timeout = self._seconds(timeout)
        self._check_open()
        message = question.make()
        try:
            response = self._stubs.methods[question.method](
                message,
                timeout=timeout,
                wait_for_ready=self._settings.wait_for_ready,
            )
        except grpc.RpcError as error:
            self._check_open()
            raise self._failure(question, error, timeout) from None
        return question.read(response)
