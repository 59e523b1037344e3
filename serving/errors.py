"""Errors of a server and a client."""

from typing import Any

import grpc

from serving.verbatim_error import VerbatimError


class ServeError(VerbatimError, RuntimeError):
    """A server that cannot start; its message is one sentence for the user."""


class RequestRefused(Exception):
    """A request that is answered with an error.

    Attributes:
        code: the `grpc.StatusCode`.
        sentence: what the client is told.
    """

    def __init__(self, code: grpc.StatusCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def cancelled() -> RequestRefused:
    """Returns the refusal of a request whose client has stopped waiting; only logs show it."""
    return RequestRefused(grpc.StatusCode.CANCELLED, "The client did not wait for the answer.")


def invalid(sentence: str) -> RequestRefused:
    """Returns the refusal of an invalid request."""
    return RequestRefused(grpc.StatusCode.INVALID_ARGUMENT, sentence)


class RequestError(VerbatimError, RuntimeError):
    """A client's request without an answer; its message is one sentence for the user.

    Attributes:
        code: the `grpc.StatusCode`.
        index: the place of the text that is refused, counted from 0 among the caller's; None where
            no single text is the reason.
        reason: why that text is refused, without its place.
        names_text: whether the server names the text that it refuses. If it does not, the reason
            may be the request as a whole.
        answers: of a call with several texts, an entry for each: its answer, the `RequestError`
            that refuses it, or None where nobody answered. None if the call as a whole is refused.
    """

    def __init__(
        self,
        sentence: str,
        code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT,
        *,
        index: int | None = None,
        reason: str = "",
        names_text: bool = False,
        answers: list[Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.index = index
        self.reason = reason or sentence
        self.names_text = names_text
        self.answers = answers
