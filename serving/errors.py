"""What is said instead of an answer, by a server and by a client."""

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

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def cancelled():
    """Returns the refusal of a request whose client waits no more; only logs will show it."""
    return RequestRefused(grpc.StatusCode.CANCELLED, "The client did not wait for the answer.")


def invalid(sentence):
    """Returns the refusal of a request that does not fit."""
    return RequestRefused(grpc.StatusCode.INVALID_ARGUMENT, sentence)


class RequestError(VerbatimError, RuntimeError):
    """A client's request without an answer; its message is one sentence for the user.

    Attributes:
        code: the `grpc.StatusCode`.
    """

    def __init__(self, sentence, code=grpc.StatusCode.INVALID_ARGUMENT):
        super().__init__(sentence)
        self.code = code
