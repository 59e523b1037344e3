"""One version of a model in memory: checked at its door, it answers `PredictRequest`s.

Nothing here knows of folders, versions that come and go, or the network.
"""

import concurrent.futures
import dataclasses
import functools
import logging
import math
import pathlib
import re

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that exported models use)
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from serving.batching import Batcher, can_batch, waits
from serving.errors import RequestRefused, invalid

DEFAULT_SIGNATURE = "serving_default"
MODEL_FILE = "saved_model.pb"

# The field of a TensorProto that holds the values of each type, as TensorFlow Serving fills them.
_VALUE_FIELDS = {
    types_pb2.DT_STRING: "string_val",
    types_pb2.DT_FLOAT: "float_val",
    types_pb2.DT_DOUBLE: "double_val",
    types_pb2.DT_INT8: "int_val",
    types_pb2.DT_INT16: "int_val",
    types_pb2.DT_INT32: "int_val",
    types_pb2.DT_UINT8: "int_val",
    types_pb2.DT_UINT16: "int_val",
    types_pb2.DT_INT64: "int64_val",
    types_pb2.DT_BOOL: "bool_val",
}


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much one request may ask for: texts a request, and UTF-8 bytes a text."""

    max_batch_size: int = 128
    max_text_bytes: int = 16384

    def request_bytes(self, spelling=1):
        """Returns the size of the largest request:
        a full batch on both inputs of `score`, each byte of a text spelt in `spelling`.
        """
        return 2 * self.max_batch_size * (spelling * self.max_text_bytes + 64)


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def human_sentence(message):
    """Returns what a TensorFlow error says to people: no node names, stacks or op names.

    For a failed `tf.debugging` assertion that is the first thing the assertion prints, its message.

    Args:
        message: the `message` of a `tf.errors.OpError`.
    """
    asserted = re.search(
        r"assertion failed: \[(.*?)\](?= \[|\s*$|\s*\n)", message, re.DOTALL | re.MULTILINE
    )
    if asserted:
        # TensorFlow escapes strings that it prints in C's manner.
        text = re.sub(
            r"\\([0-7]{3}|.)",
            lambda m: chr(int(m[1], 8)) if len(m[1]) == 3 else _ESCAPES.get(m[1], m[1]),
            asserted[1],
        )
        return " ".join(text.split())
    message = re.sub(
        r"\[\[\{\{node .*?\}\}\]\]|\{\{(function_)?node .*?\}\}|\[Op:[^\]]*\]( name: ?\S*)?",
        "",
        message,
    )
    machine = re.compile(
        r"Graph execution error:|Detected at node|<stack traces unavailable>|\s*File \"|Node: "
        r"|\d+ root error"
        r"|\d+ successful operations|\d+ derived errors"
    )
    for line in message.splitlines():
        # The lines of a Python stack are indented by four; the sentence itself never is.
        if line.strip() and not machine.match(line) and not line.startswith("    "):
            return re.sub(r"^\s*\(\d+\) [A-Z_ ]+: ", "", line).strip()
    return "The model refused the input."


def _type_name(number):
    try:
        return tf.as_dtype(number).name
    except TypeError:
        return f"type {number}"


def _shape_name(sizes):
    return "[" + ", ".join("any" if size < 0 else str(size) for size in sizes) + "]"


def _decode(name, tensor, info, limits):
    """Returns the array of one input.

    Args:
        name: the input's name in the signature.
        tensor: the request's `TensorProto`.
        info: the signature's `TensorInfo`.
        limits: `Limits`, or None for requests that the model brings itself (warm-up).

    Raises:
        RequestRefused: the tensor is of another type or shape, cannot be read, or is over a limit.
    """
    if tensor.dtype != info.dtype:
        raise invalid(
            f'Input "{name}" must be of type {_type_name(info.dtype)}; got '
            f"{_type_name(tensor.dtype)}."
        )
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise invalid(f'Input "{name}" cannot be read: its shape is not fully known.')
    if not info.tensor_shape.unknown_rank:
        wanted = [dim.size for dim in info.tensor_shape.dim]
        if len(wanted) != len(sizes):
            raise invalid(f'Input "{name}" must be of rank {len(wanted)}; got rank {len(sizes)}.')
        if any(want not in (-1, size) for want, size in zip(wanted, sizes)):
            raise invalid(
                f'Input "{name}" must be of shape {_shape_name(wanted)}; got {_shape_name(sizes)}.'
            )
    if limits is not None and sizes:
        if sizes[0] > limits.max_batch_size:
            raise invalid(
                f'Input "{name}" holds {sizes[0]} texts; one request may hold '
                f"{limits.max_batch_size} at most."
            )
        if sizes[0] == 0:
            raise invalid(f'Input "{name}" holds no text; send at least one.')
    count = math.prod(sizes)
    # TensorFlow repeats the last value where some lack. Here that would turn a few bytes into any
    # amount of memory, and a client's slip into made-up texts: the number of values must be right.
    if tensor.dtype == types_pb2.DT_STRING:
        values = list(tensor.string_val)
        if len(values) != count:
            raise invalid(
                f'Input "{name}" cannot be read: its shape needs {count} values, it holds '
                f"{len(values)}."
            )
        if limits is not None:
            _check_texts(name, values, limits)
        return np.array(values, dtype=object).reshape(sizes)
    if tensor.tensor_content:
        holds = len(tensor.tensor_content) / tf.as_dtype(tensor.dtype).size
    else:
        holds = len(getattr(tensor, _VALUE_FIELDS.get(tensor.dtype, "half_val")))
    if holds != count:
        raise invalid(
            f'Input "{name}" cannot be read: its shape needs {count} values, it holds {holds:g}.'
        )
    try:
        return tf.make_ndarray(tensor)
    except (TypeError, ValueError, OverflowError, tf.errors.OpError):
        raise invalid(f'Input "{name}" cannot be read: its values do not fit its type.') from None


def _check_texts(name, values, limits):
    for position, value in enumerate(values):
        if len(value) > limits.max_text_bytes:
            raise invalid(
                f"{name}[{position}] is {len(value)} bytes long; a text may be "
                f"{limits.max_text_bytes} at most."
            )
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            raise invalid(f"{name}[{position}] is not valid UTF-8.") from None
        if not text.strip():
            raise invalid(f"{name}[{position}] is empty; send a text that is not only white space.")


def _encode(array):
    """Returns the `TensorProto` of a NumPy array, values in their typed field as TensorFlow Serving
    sends them.
    """
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    if dtype not in _VALUE_FIELDS:
        return tf.make_tensor_proto(array)
    proto = tensor_pb2.TensorProto(dtype=dtype)
    # An array of no axis has a shape, too.
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    getattr(proto, _VALUE_FIELDS[dtype]).extend(array.ravel().tolist())
    return proto


def _open_session(path, tags):
    """Returns a session with a SavedModel's graph, restored and initialized."""
    log = logging.getLogger("tensorflow")
    level = log.level
    with tf.Graph().as_default() as graph:
        session = tf.compat.v1.Session(graph=graph)
        try:
            log.setLevel(
                logging.ERROR
            )  # that sessions are of TensorFlow 1 is no news for whoever serves a model
            tf.compat.v1.saved_model.load(session, list(tags), str(path))
        except BaseException:
            session.close()
            raise
        finally:
            log.setLevel(level)
    return session


class Servable:
    """One version of a model in memory, in a session of its own as in TensorFlow Serving.

    What the session holds, compiled programs among it, goes when it is closed; loaded as objects
    (`tf.saved_model.load`), versions would share the process' one runtime, which keeps every
    compiled program to the end. And a SavedModel that TensorFlow Serving cannot run, cannot be run
    here either.

    Args:
        path: the SavedModel's folder.
        version: its number.
        batching: the `Batching` of requests that arrive together; None answers each by itself.

    Attributes:
        version: its number.
        signature_defs: name to `SignatureDef`, all that the SavedModel declares.

    Raises:
        Exception: whatever TensorFlow raises for a SavedModel that it cannot load.
    """

    def __init__(self, path, version, batching=None):
        self.version = version
        proto = saved_model_pb2.SavedModel()
        proto.ParseFromString((pathlib.Path(path) / MODEL_FILE).read_bytes())
        if not proto.meta_graphs:
            raise ValueError("it holds no graph")
        # A SavedModel for training may hold several graphs; the one tagged "serve" is what is
        # served.
        graphs = [
            graph for graph in proto.meta_graphs if "serve" in graph.meta_info_def.tags
        ] or proto.meta_graphs
        self.signature_defs = dict(graphs[0].signature_def)
        self._session = _open_session(path, graphs[0].meta_info_def.tags)
        self._signatures = {
            name: sig
            for name, sig in self.signature_defs.items()
            if sig.outputs and name[:2] != "__"
        }
        if not self._signatures:
            raise ValueError("it has no signature")
        self._batchers = {}
        if batching:
            for name, signature in self._signatures.items():
                if can_batch(signature):
                    run = functools.partial(self._run, name, wanted=sorted(signature.outputs))
                    self._batchers[name] = Batcher(run, batching)

    def close(self):
        """Frees what the version holds; nobody may use it any more."""
        self._session.close()

    def warm_up(self, path, threads=1):
        """Runs the requests that came with the model, so that no client waits for tracing or
        compilation.

        Args:
            path: a TFRecord file of `PredictionLog`; entries other than Predict are skipped.
            threads: how many requests are run at the same time; each compiles on a core of its own.

        Returns:
            How many requests were run.

        Raises:
            Exception: a record cannot be read, or the model refuses it.
        """
        records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
        logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
        requests = [
            log.predict_log.request for log in logs if log.WhichOneof("log_type") == "predict_log"
        ]
        run = functools.partial(self.predict, limits=None)
        # The first alone: with it the session prepares the graph, which several at once would do
        # several times.
        for request in requests[:1]:
            run(request)
        # What takes longest is written last, and begins first: no thread is left alone with it at
        # the end.
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(run, requests[:0:-1]):
                pass  # for the exception of a request that fails
        return len(requests)

    def predict(self, request, limits, given_up=waits):
        """Answers a `PredictRequest`.

        Args:
            request: the request; its model name and version are not looked at.
            limits: `Limits`, or None for none.
            given_up: whether the client waits still; see `Batcher`.

        Returns:
            A `PredictResponse` with outputs, version and signature name; the model's name is the
            caller's.

        Raises:
            RequestRefused: the request does not fit the signature or the limits, the graph refuses
                it, or the client gave up.
        """
        if refusal := given_up():  # while the request waited for a thread
            raise refusal
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        if name not in self._signatures:
            known = ", ".join(f'"{known}"' for known in sorted(self._signatures))
            raise invalid(f'Serving signature key "{name}" not found; this model has {known}.')
        signature = self.signature_defs[name]
        wanted = self._outputs_wanted(name, signature, request.output_filter)
        inputs = self._inputs(name, signature, request.inputs, limits)
        # Warm-up requests, which have no limits, come one by one.
        batcher = self._batchers.get(name) if limits else None
        arrays = batcher(inputs, given_up) if batcher else self._run(name, inputs, wanted)
        response = predict_pb2.PredictResponse()
        response.model_spec.version.value = self.version
        response.model_spec.signature_name = name
        for key in wanted:
            response.outputs[key].CopyFrom(_encode(np.asarray(arrays[key])))
        return response

    def _run(self, name, inputs, wanted):
        """Calls a signature with a dict of arrays; returns the wanted outputs as arrays.

        Raises:
            RequestRefused: the graph refuses the inputs.
        """
        try:
            signature = self._signatures[name]
            fed = {signature.inputs[key].name: array for key, array in inputs.items()}
            return self._session.run({key: signature.outputs[key].name for key in wanted}, fed)
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
            raise invalid(human_sentence(error.message)) from None
        except tf.errors.ResourceExhaustedError:
            raise RequestRefused(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "The request needs more memory than the server has; send fewer or shorter texts.",
            ) from None

    @staticmethod
    def _inputs(name, signature, inputs, limits):
        missing = sorted(set(signature.inputs) - set(inputs))
        extra = sorted(set(inputs) - set(signature.inputs))
        if missing or extra:
            parts = [f"missing {', '.join(missing)}"] if missing else []
            parts += [f"not known {', '.join(extra)}"] if extra else []
            raise invalid(
                f'The inputs do not match signature "{name}" ({"; ".join(parts)}); '
                f"it takes {', '.join(sorted(signature.inputs))}."
            )
        arrays = {
            key: _decode(key, inputs[key], info, limits) for key, info in signature.inputs.items()
        }
        sizes = {key: len(array) for key, array in arrays.items() if array.ndim}
        if len(set(sizes.values())) > 1:
            held = ", ".join(f"{key} {size}" for key, size in sorted(sizes.items()))
            raise invalid(f"The inputs must hold the same number of texts; got {held}.")
        return arrays

    @staticmethod
    def _outputs_wanted(name, signature, output_filter):
        unknown = sorted(set(output_filter) - set(signature.outputs))
        if unknown:
            raise invalid(
                f'Output "{unknown[0]}" of output_filter is not found in signature "{name}"; '
                f"it gives {', '.join(sorted(signature.outputs))}."
            )
        return sorted(set(output_filter) or signature.outputs)
