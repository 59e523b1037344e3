"""Clients for a served Verbatim model: this project's embedded server, or TensorFlow Serving.

They import neither TensorFlow, TFX nor Keras, so they start in a fraction of a second; see
`serving/protos.py`.

    with Client("127.0.0.1:8500") as client:
        for answer in client.predict(["Hello %(name)s"]):
            print(format_answer(answer))

    async with AsyncClient("127.0.0.1:8500") as client:
        first, second = await asyncio.gather(client.predict("Hello"), client.predict("Goodbye"))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping

import grpc
import grpc.aio

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
from serving.errors import RequestError
from serving.messages import Messages

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

MAX_ATTEMPTS = 5  # gRPC makes no more, whatever it is told

Texts = str | Iterable[str]
Features = Mapping[str, Texts]


def _channel_options(attempts):
    options = [
        ("grpc.max_receive_message_length", -1),  # the attention of `explain` can be large
        # By default a lost connection is tried again after a second, later after two minutes: after
        # all retries.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 5000),
    ]
    if attempts > 1:
        # Every request only reads, so one that may have been answered already can be sent again.
        # These two are the failures that pass; all others would meet the same end.
        policy = {
            "maxAttempts": attempts,
            "initialBackoff": "0.2s",
            "backoffMultiplier": 3,
            "maxBackoff": "5s",
            "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
        }
        config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
        # gRPC keeps a request for another attempt only as far as it fits this buffer; by default
        # 256 KiB.
        options += [
            ("grpc.service_config", json.dumps(config)),
            ("grpc.per_rpc_retry_buffer_size", 1 << 30),
        ]
    return options


class _Connection:
    """What both clients have in common: their settings, and what a failed request is called."""

    def __init__(
        self, address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
    ):
        if not 1 <= attempts <= MAX_ATTEMPTS:
            raise RequestError(
                f"attempts must be 1 to {MAX_ATTEMPTS}, which is the most that gRPC makes; got "
                f"{attempts}."
            )
        _check_positive("batch_size", batch_size)
        self.address = address
        self.timeout = timeout
        self._credentials = credentials
        self._options = _channel_options(attempts)
        self._wait_for_ready = wait_for_ready
        self._messages = Messages(address, model or "", version, batch_size)
        self._closed = False

    def _open(self, module):
        """Returns a channel of `grpc` or `grpc.aio`, and its methods by name."""
        if self._credentials is None:
            channel = module.insecure_channel(self.address, self._options)
        else:
            channel = module.secure_channel(self.address, self._credentials, self._options)
        protos = self._messages.protos
        prediction = protos.prediction_service_pb2_grpc.PredictionServiceStub(channel)
        models = protos.model_service_pb2_grpc.ModelServiceStub(channel)
        return channel, {
            "Predict": prediction.Predict,
            "GetModelMetadata": prediction.GetModelMetadata,
            "GetModelStatus": models.GetModelStatus,
        }

    def _check_open(self):
        if self._closed:
            raise self._was_closed()

    def _was_closed(self):
        return RequestError(f"The client of {self.address} is closed.", grpc.StatusCode.CANCELLED)

    def _failure(self, question, error, timeout):
        """Returns the `RequestError` for a `grpc.RpcError`."""
        code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE and self._credentials is not None:
            sentence = (
                f"No server answers at {self.address} over TLS; check the address, the "
                "certificate that signs the "
                "server's, and whether the server asks for a client's certificate."
            )
        elif code == grpc.StatusCode.UNAVAILABLE:
            sentence = (
                f"No server answers at {self.address}; start one with 'verbatim serve' or "
                "check the address."
            )
        elif code == grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
            sentence = f"The server at {self.address} did not answer within {timeout:g} seconds."
        elif code == grpc.StatusCode.UNIMPLEMENTED:
            sentence = f"The server at {self.address} does not offer this request."
        elif code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND) and details:
            sentence = details
        else:
            sentence = (
                f"The server at {self.address} answered {code.name}: {details or 'no reason given'}"
            )
        return RequestError(question.where + sentence, code)


def _check_positive(name, number):
    if number is not None and number < 1:
        raise RequestError(f"{name} must be 1 or more; got {number}.")


class Client(_Connection):
    """A connection to one served model. Close it, or use it in a `with` statement.

    Threads may share it.

    A request that no server takes (UNAVAILABLE), or that a server has no room for
    (RESOURCE_EXHAUSTED), is sent again after about 0.2, then 0.6, 1.8 and 5 seconds, until
    `attempts` are made or its time is over. After no other failure is it sent again.

    Args:
        address: `HOST:PORT`.
        model: the model's name. None is the only model of an embedded server; TensorFlow Serving
            needs the name.
        timeout: seconds for a request, all its attempts together; the server is told. None waits
            for ever.
        credentials: `serving.tls.client_credentials(...)` or gRPC's own, for a server with TLS;
            None is no TLS.
        version: a version number to insist on; None is the latest.
        attempts: how often a request is sent at most, 1 to 5; 1 is never again.
        batch_size: the most texts in a request; more are sent in several, each with the whole
            `timeout`. None sends all in one, which a server may refuse.
        wait_for_ready: whether to wait for a server that is not there yet, as long as `timeout`
            says.

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
    ):
        super().__init__(
            address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
        )
        self._channel, self._methods = self._open(grpc)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self) -> None:
        """Ends the connection; requests that other threads wait for end with `RequestError`."""
        self._closed = True
        self._channel.close()

    def predict(
        self,
        texts: Texts,
        signature: str = "serving_default",
        features: Features | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Answer]:
        """Returns the best output of each text.

        Args:
            texts: a text or any number of them.
            signature: `serving_default`, `serving_default_no_xla` or `explain`.
            features: dict from each column of tags that the model takes (`data.source_features`) to
                as many texts; or None.
            timeout: seconds instead of the client's; None is the client's.

        Returns:
            A list of `Answer`, one a text.

        Raises:
            RequestError: there is no answer; one sentence says why, and which texts if they took
                several requests.
        """
        return self._ask(self._messages.predict(texts, signature, features), timeout)

    def n_best(
        self,
        texts: Texts,
        signature: str = "n_best",
        features: Features | None = None,
        *,
        timeout: float | None = None,
    ) -> list[list[Answer]]:
        """Returns the best outputs of each text, the best first.

        Args:
            texts: a text or any number of them.
            signature: `n_best` or `n_best_no_xla`.
            features, timeout: as in `predict`.

        Returns:
            A list, one a text, of lists of `Answer`.

        Raises:
            RequestError: as in `predict`.
        """
        return self._ask(self._messages.n_best(texts, signature, features), timeout)

    def score(
        self,
        sources: Texts,
        targets: Texts,
        features: Features | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Score]:
        """Returns how likely the model finds each target for its source.

        Args:
            sources: a text or any number of them.
            targets: as many.
            features, timeout: as in `predict`.

        Returns:
            A list of `Score`.

        Raises:
            RequestError: as in `predict`.
        """
        return self._ask(self._messages.score(sources, targets, features), timeout)

    def continue_text(
        self, texts: Texts, signature: str = "continue", *, timeout: float | None = None
    ) -> list[Answer]:
        """Returns how a language model goes on after each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            signature: `continue` or `continue_no_xla`.
            timeout: as in `predict`.

        Returns:
            A list of `Answer`, one a text. Its text is the continuation alone, and its score the
            sum of the words' log-probabilities. `copied_from` counts the words of text and
            continuation, line feeds included.

        Raises:
            RequestError: as in `predict`.
        """
        return self._ask(self._messages.continue_text(texts, signature), timeout)

    def score_text(self, texts: Texts, *, timeout: float | None = None) -> list[WordScore]:
        """Returns how likely a language model finds each word of each text.

        Args:
            texts: a text or any number of them; a line feed ends a sentence.
            timeout: as in `predict`.

        Returns:
            A list of `WordScore`.

        Raises:
            RequestError: as in `predict`.
        """
        return self._ask(self._messages.score_text(texts), timeout)

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

    def _ask(self, questions, timeout):
        return [answer for question in questions for answer in self._answer(question, timeout)]

    def _answer(self, question, timeout):
        timeout = self.timeout if timeout is None else timeout
        self._check_open()
        try:
            response = self._methods[question.method](
                question.message, timeout=timeout, wait_for_ready=self._wait_for_ready
            )
        except grpc.RpcError as error:
            self._check_open()
            raise self._failure(question, error, timeout) from None
        return question.read(response)


class AsyncClient(_Connection):
    """`Client` for asyncio: the same methods, to be awaited.

    Close it, or use it in an `async with` statement.

    Any number of requests can be under way over its one connection. A cancelled request is
    cancelled on the server too. It belongs to the event loop in which it is used first.

    Args:
        address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready: as for
            `Client`.
        concurrency: how many of the requests that `batch_size` makes of one list are under way
            together. Should one fail, the others are cancelled.

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
    ):
        super().__init__(
            address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
        )
        _check_positive("concurrency", concurrency)
        self._concurrency = concurrency
        self._channel = self._methods = (
            None  # made by the first request: they need a running event loop
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception):
        await self.close()

    async def close(self) -> None:
        """Ends the connection; requests under way end with `RequestError`."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

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

    async def _ask(self, questions, timeout):
        batches = {}
        numbered = enumerate(questions)

        async def work():
            for number, question in numbered:  # shared by all workers: each takes the next question
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

    async def _answer(self, question, timeout):
        timeout = self.timeout if timeout is None else timeout
        self._check_open()
        if self._channel is None:
            self._channel, self._methods = self._open(grpc.aio)
        call = self._methods[question.method](
            question.message, timeout=timeout, wait_for_ready=self._wait_for_ready
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
