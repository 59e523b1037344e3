"""A gRPC server that fails when it is told to, for tests of clients."""

import collections
import concurrent.futures
import dataclasses
import threading

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

# How long a test waits for what must come; generous, for machines that are busy.
PATIENCE = 60


@dataclasses.dataclass(frozen=True)
class Seen:
    """A request: its texts by input, the seconds until its deadline, its connection."""

    inputs: dict
    seconds_left: float | None
    connection: str


class ScriptedServer(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Fails, hangs or answers, as the next `script` entry or else a request's first text says.

    An entry, or a text, that is the name of a `grpc.StatusCode` is a failure; `hang` waits until
    the client gives up.

    Args:
        port: where to listen; 0 chooses a free one.

    Attributes:
        port, address: where it listens.
        script: what to do with the next requests; beyond its end the texts decide.
        seen: a `Seen` for each request, in the order in which they came.
        hanging: released once for each request that hangs.
        given_up: released once for each of these that its client gave up.
        together: a `threading.Barrier` that every request waits at, or None.
    """

    def __init__(self, port=0):
        self.script, self.seen = collections.deque(), []
        self.hanging, self.given_up = threading.Semaphore(0), threading.Semaphore(0)
        self.together = None
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *exception):
        self._server.stop(0).wait()

    def Predict(self, request, context):
        inputs = {
            name: [text.decode() for text in tensor.string_val]
            for name, tensor in request.inputs.items()
        }
        texts = inputs["source"]
        self.seen.append(Seen(inputs, context.time_remaining(), context.peer()))
        if self.together is not None:
            self.together.wait(PATIENCE)
        deed = self.script.popleft() if self.script else texts[0]
        if deed in grpc.StatusCode.__members__:
            context.abort(grpc.StatusCode[deed], "as the script says")
        if deed == "hang":
            gone = threading.Event()
            waits = context.add_callback(gone.set)  # not where the client has given up already
            self.hanging.release()
            assert not waits or gone.wait(PATIENCE)
            self.given_up.release()
            return None
        count = len(texts)
        values = {"text": texts, "score": [1.5] * count, "tokens": [["x", "y", ""]] * count}
        values |= {"source_tokens": [["x", "s", "t"]] * count, "copied_from": [[2, 9, -1]] * count}
        values["copy_probability"] = [[0.5, 0.25, 0.0]] * count
        response = predict_pb2.PredictResponse()
        for name, value in values.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return response
