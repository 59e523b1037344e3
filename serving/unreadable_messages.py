"""What becomes of bytes that are no message:
an answer that says so, where gRPC itself would keep each such request for ever.

When a message cannot be read, gRPC's server in Python ends the request twice, and the second end
never comes to pass (grpcio 1.85, some 15 KB each). So here reading never fails: what cannot be read
reaches the method as a mark, and the request is refused as any other.
"""

import grpc

from serving.errors import invalid
from serving.observing import REQUEST_ID

_UNREADABLE = object()
_SENTENCE = (
    "The request is no message of this method: it is cut off, or its bytes are of another "
    "type or of none."
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

    def __init__(self, observer):
        self._observer = observer

    def intercept_service(self, continuation, handler_call_details):
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        attribute, make = _KINDS[handler.request_streaming, handler.response_streaming]
        method = handler_call_details.method.rpartition("/")[2]
        work, read = getattr(handler, attribute), handler.request_deserializer

        def refuse(context):
            refused = invalid(_SENTENCE)
            given = dict(context.invocation_metadata() or ()).get(REQUEST_ID)
            with self._observer.request("grpc", method, given) as seen:
                seen.code = refused.code.name
                context.set_trailing_metadata(((REQUEST_ID, seen.id),))
            context.abort(refused.code, refused.sentence)

        def readable(requests, context):
            for request in requests:
                if request is _UNREADABLE:
                    refuse(context)
                yield request

        def answer_one(request, context):
            if request is _UNREADABLE:
                refuse(context)
            return work(request, context)

        def answer_stream(requests, context):
            return work(readable(requests, context), context)

        return make(
            answer_stream if handler.request_streaming else answer_one,
            request_deserializer=read and _marking(read),
            response_serializer=handler.response_serializer,
        )


def _marking(read):
    """Makes the function of bytes that gives the mark where `read` fails."""

    def marked(message):
        try:
            return read(message)
        except Exception:  # whatever a parser makes of bytes that it was not made for
            return _UNREADABLE

    return marked
