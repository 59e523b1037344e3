"""Refuses requests whose bytes are not a message; gRPC itself would keep each in memory.

When a message cannot be read, gRPC's server in Python ends the request twice, and the second end
never completes (grpcio 1.85, some 15 KB each). So here reading never fails: a mark reaches the
method in place of the message, and the request is refused like any other.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from serving.errors import invalid
from serving.observing import REQUEST_ID, Observer

_UNREADABLE = object()
_SENTENCE = (
    "The request is not a message of this method: it is cut off, or its bytes are of another type "
    "or of none."
)
#: By whether requests, then responses, are streams.
_KINDS = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class RefuseUnreadable(grpc.ServerInterceptor):
    """Answers messages that cannot be read with INVALID_ARGUMENT.

    Args:
        observer: the `Observer` that counts and logs them.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Any, Any] | None"],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        attribute, make = _KINDS[handler.request_streaming, handler.response_streaming]
        method = handler_call_details.method.rpartition("/")[2]
        work, read = getattr(handler, attribute), handler.request_deserializer

        def refuse(context: grpc.ServicerContext) -> None:
            refused = invalid(_SENTENCE)
            metadata: dict[str, Any] = dict(context.invocation_metadata() or ())
            id_from_client = metadata.get(REQUEST_ID)
            with self._observer.request("grpc", method, id_from_client) as seen:
                seen.code = refused.code.name
                context.set_trailing_metadata(((REQUEST_ID, seen.id),))
            context.abort(refused.code, refused.sentence)

        def readable(requests: Iterable[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            for request in requests:
                if request is _UNREADABLE:
                    refuse(context)
                yield request

        def answer_one(request: Any, context: grpc.ServicerContext) -> Any:
            if request is _UNREADABLE:
                refuse(context)
            return work(request, context)

        def answer_stream(requests: Iterable[Any], context: grpc.ServicerContext) -> Any:
            return work(readable(requests, context), context)

        return make(
            answer_stream if handler.request_streaming else answer_one,
            request_deserializer=read and _marking(read),
            response_serializer=handler.response_serializer,
        )


def _marking(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Makes the function of bytes that returns the mark where `read` fails."""

    def marked(message: bytes) -> Any:
        try:
            return read(message)
        # Parsers raise many kinds of errors for unexpected bytes.
        except Exception:
            return _UNREADABLE

    return marked
