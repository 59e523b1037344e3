"""Code that the synchronous and the asynchronous client share."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from serving import protos
from serving.caller_texts import check_name, check_seconds, check_whole_number
from serving.errors import RequestError
from serving.messages import Messages, Question

# gRPC makes no more attempts than this.
MAX_ATTEMPTS = 5
MAX_VERSION = 2**63 - 1
#: The most texts in a request, by default. Servers take more: `verbatim serve` 128.
BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class ConnectionSettings:
    """The settings of a client; `serving.client.Client` says what each is.

    Raises:
        RequestError: a number is out of its range.
    """

    address: str
    model: str | None
    timeout: float | None
    credentials: grpc.ChannelCredentials | None
    version: int | None
    attempts: int
    batch_size: int | None
    wait_for_ready: bool

    def __post_init__(self) -> None:
        check_name("address", self.address)
        check_name("model", self.model or "")
        check_seconds("timeout", self.timeout)
        if self.version is not None:
            check_whole_number("version", self.version, 0, MAX_VERSION)
        check_whole_number("attempts", self.attempts, 0)
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise RequestError(
                f"attempts must be 1 to {MAX_ATTEMPTS}, which is the most that gRPC makes; got "
                f"{self.attempts}."
            )
        if self.batch_size is not None:
            check_whole_number("batch_size", self.batch_size, 1)

    def channel_options(self) -> list[tuple[str, Any]]:
        """Returns the options of the gRPC channel."""
        options: list[tuple[str, Any]] = [
            # The attention of `explain` can be large.
            ("grpc.max_receive_message_length", -1),
            # By default gRPC reconnects after a second, later after two minutes, which is after all
            # retries.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 5000),
        ]
        if self.attempts > 1:
            # Every request only reads, so one that may have been answered already can be sent
            # again. These two failures may be temporary; all others would occur again.
            policy = {
                "maxAttempts": self.attempts,
                "initialBackoff": "0.2s",
                "backoffMultiplier": 3,
                "maxBackoff": "5s",
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            }
            config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
            # gRPC keeps a request for another attempt only if it fits into this buffer; by default
            # 256 KiB.
            options += [
                ("grpc.service_config", json.dumps(config)),
                ("grpc.per_rpc_retry_buffer_size", 1 << 30),
            ]
        return options


@dataclasses.dataclass(frozen=True)
class Stubs:
    """An open channel of `grpc` or `grpc.aio`, and its methods."""

    channel: Any
    methods: Mapping[str, Callable[..., Any]]


class Connection:
    """The settings of a client, and the names of failures."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.address = settings.address
        self.timeout = settings.timeout
        self._settings = settings
        self._messages = Messages(
            settings.address, settings.model or "", settings.version, settings.batch_size
        )
        self._closed = False

    def _open(self, module: types.ModuleType) -> Stubs:
        """Opens a channel of `grpc` or `grpc.aio`."""
        credentials, options = self._settings.credentials, self._settings.channel_options()
        if credentials is None:
            channel = module.insecure_channel(self.address, options)
        else:
            channel = module.secure_channel(self.address, credentials, options)
        methods = {
            name: channel.unary_unary(
                protos.method_path(name),
                request_serializer=protos.message(request).SerializeToString,
                response_deserializer=protos.message(response).FromString,
            )
            for name, (_, request, response) in protos.METHODS.items()
        }
        return Stubs(channel, methods)

    def _seconds(self, timeout: float | None) -> float | None:
        """Returns the seconds of a call."""
        if timeout is None:
            return self.timeout
        check_seconds("timeout", timeout)
        return timeout

    def _check_open(self) -> None:
        if self._closed:
            raise self._was_closed()

    def _was_closed(self) -> RequestError:
        return RequestError(f"The client of {self.address} is closed.", grpc.StatusCode.CANCELLED)

    def _failure(
        self, question: Question[Any], error: grpc.RpcError, timeout: float | None
    ) -> RequestError:
        """Returns the `RequestError` for a `grpc.RpcError`."""
        code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE and self._settings.credentials is not None:
            sentence = (
                f"No server answers at {self.address} over TLS; check the address, the certificate "
                "that signs the server's, and whether the server asks for a client's certificate."
            )
        elif code == grpc.StatusCode.UNAVAILABLE:
            sentence = (
                f"No server answers at {self.address}; start one with 'verbatim serve' or check "
                "the address."
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
        return question.failure(sentence, code)
