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

from typing import TypeVar

import grpc

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
from serving.connection import BATCH_SIZE, Connection, ConnectionSettings
from serving.errors import RequestError
from serving.messages import Question
from serving.text_model import TextModel

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


class Client(TextModel, Connection):
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
        settings = ConnectionSettings(
            address, model, timeout, credentials, version, attempts, batch_size, wait_for_ready
        )
        Connection.__init__(self, settings)
        self._stubs = self._open(grpc)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; requests that other threads wait for end with `RequestError`."""
        self._closed = True
        self._stubs.channel.close()

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
