"""What a server and a client say instead of an answer."""

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
    """Returns the refusal of a request that does not fit."""
    return RequestRefused(grpc.StatusCode.INVALID_ARGUMENT, sentence)


class RequestError(VerbatimError, RuntimeError):
    """A client's request without an answer; its message is one sentence for the user.

    Attributes:
        code: the `grpc.StatusCode`.
    """

    def __init__(
        self, sentence: str, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT
    ) -> None:
        super().__init__(sentence)
        self.code = code
