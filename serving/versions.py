"""The versions of one model: loaded, warmed up, used, and retired without dropping a request.

`Servable` is one SavedModel in memory, checked at its door. `ModelVersions` follows a folder with TensorFlow
Serving's latest-version policy: the highest version that can be loaded is the one that answers.
"""

import contextlib
import dataclasses
import logging
import math
import os
import pathlib
import re
import threading

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that exported models use)
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

logger = logging.getLogger(__name__)

DEFAULT_SIGNATURE = "serving_default"
MODEL_FILE = "saved_model.pb"
WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")

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
_MAX_VERSION = 2**63 - 1


class ServeError(RuntimeError):
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


def _invalid(sentence):
    return RequestRefused(grpc.StatusCode.INVALID_ARGUMENT, sentence)


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much one request may ask for: texts a request, and UTF-8 bytes a text."""

    max_batch_size: int = 128
    max_text_bytes: int = 16384


@dataclasses.dataclass(frozen=True)
class VersionState:
    """What is known of one version.

    `state` is a name of `ModelVersionStatus.State`; `error` is empty unless the version could not be loaded.
    """

    version: int
    state: str
    error: str = ""


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def human_sentence(message):
    """Returns what a TensorFlow error says to people: no node names, stacks or op names.

    For a failed `tf.debugging` assertion that is the first thing the assertion prints, its message.

    Args:
        message: the `message` of a `tf.errors.OpError`.
    """
    asserted = re.search(r"assertion failed: \[(.*?)\](?= \[|\s*$|\s*\n)", message, re.DOTALL | re.MULTILINE)
    if asserted:
        # TensorFlow escapes strings that it prints in C's manner.
        text = re.sub(
            r"\\([0-7]{3}|.)",
            lambda m: chr(int(m[1], 8)) if len(m[1]) == 3 else _ESCAPES.get(m[1], m[1]),
            asserted[1],
        )
        return " ".join(text.split())
    message = re.sub(r"\[\[\{\{node .*?\}\}\]\]|\{\{(function_)?node .*?\}\}|\[Op:[^\]]*\]( name: ?\S*)?", "", message)
    machine = re.compile(
        r"Graph execution error:|Detected at node|<stack traces unavailable>|\s*File \"|Node: |\d+ root error"
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
    """Returns the `tf.Tensor` of one input.

    Args:
        name: the input's name in the signature.
        tensor: the request's `TensorProto`.
        info: the signature's `TensorInfo`.
        limits: `Limits`, or None for requests that the model brings itself (warm-up).

    Raises:
        RequestRefused: the tensor is of another type or shape, cannot be read, or is over a limit.
    """
    if tensor.dtype != info.dtype:
        raise _invalid(f'Input "{name}" must be of type {_type_name(info.dtype)}; got {_type_name(tensor.dtype)}.')
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise _invalid(f'Input "{name}" cannot be read: its shape is not fully known.')
    if not info.tensor_shape.unknown_rank:
        wanted = [dim.size for dim in info.tensor_shape.dim]
        if len(wanted) != len(sizes):
            raise _invalid(f'Input "{name}" must be of rank {len(wanted)}; got rank {len(sizes)}.')
        if any(want not in (-1, size) for want, size in zip(wanted, sizes)):
            raise _invalid(f'Input "{name}" must be of shape {_shape_name(wanted)}; got {_shape_name(sizes)}.')
    if limits is not None and sizes:
        if sizes[0] > limits.max_batch_size:
            raise _invalid(
                f'Input "{name}" holds {sizes[0]} texts; one request may hold {limits.max_batch_size} at most.'
            )
        if sizes[0] == 0:
            raise _invalid(f'Input "{name}" holds no text; send at least one.')
    count = math.prod(sizes)
    # TensorFlow repeats the last value where some lack. Here that would turn a few bytes into any amount of
    # memory, and a client's slip into made-up texts: the number of values must be right.
    if tensor.dtype == types_pb2.DT_STRING:
        values = list(tensor.string_val)
        if len(values) != count:
            raise _invalid(f'Input "{name}" cannot be read: its shape needs {count} values, it holds {len(values)}.')
        if limits is not None:
            _check_texts(name, values, limits)
        return tf.constant(values, tf.string, shape=sizes)
    if tensor.tensor_content:
        holds = len(tensor.tensor_content) / tf.as_dtype(tensor.dtype).size
    else:
        holds = len(getattr(tensor, _VALUE_FIELDS.get(tensor.dtype, "half_val")))
    if holds != count:
        raise _invalid(f'Input "{name}" cannot be read: its shape needs {count} values, it holds {holds:g}.')
    try:
        return tf.constant(tf.make_ndarray(tensor))
    except (TypeError, ValueError, OverflowError, tf.errors.OpError):
        raise _invalid(f'Input "{name}" cannot be read: its values do not fit its type.') from None


def _check_texts(name, values, limits):
    for position, value in enumerate(values):
        if len(value) > limits.max_text_bytes:
            raise _invalid(
                f"{name}[{position}] is {len(value)} bytes long; a text may be {limits.max_text_bytes} at most."
            )
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            raise _invalid(f"{name}[{position}] is not valid UTF-8.") from None
        if not text.strip():
            raise _invalid(f"{name}[{position}] is empty; send a text that is not only white space.")


def _encode(array):
    """Returns the `TensorProto` of a NumPy array, values in their typed field as TensorFlow Serving sends them."""
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    if dtype not in _VALUE_FIELDS:
        return tf.make_tensor_proto(array)
    proto = tf.make_tensor_proto([], dtype=dtype, shape=[0])
    del proto.tensor_shape.dim[:]
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    getattr(proto, _VALUE_FIELDS[dtype]).extend(array.ravel().tolist())
    return proto


class Servable:
    """One version of a model in memory.

    Attributes:
        version: its number.
        signature_defs: name to `SignatureDef`, all that the SavedModel declares.

    Raises:
        Exception: whatever TensorFlow raises for a SavedModel that it cannot load.
    """

    def __init__(self, path, version):
        self.version = version
        proto = saved_model_pb2.SavedModel()
        proto.ParseFromString((pathlib.Path(path) / MODEL_FILE).read_bytes())
        if not proto.meta_graphs:
            raise ValueError("it holds no graph")
        # A SavedModel for training may hold several graphs; the one tagged "serve" is what is served.
        graphs = [graph for graph in proto.meta_graphs if "serve" in graph.meta_info_def.tags] or proto.meta_graphs
        self.signature_defs = dict(graphs[0].signature_def)
        self._loaded = tf.saved_model.load(str(path))  # kept: the signatures hold its variables weakly
        self._signatures = dict(self._loaded.signatures)
        if not self._signatures:
            raise ValueError("it has no signature")

    def warm_up(self, path):
        """Runs the requests that came with the model, so that no client waits for tracing or compilation.

        Args:
            path: a TFRecord file of `PredictionLog`; entries other than Predict are skipped.

        Returns:
            How many requests were run.

        Raises:
            Exception: a record cannot be read, or the model refuses it.
        """
        count = 0
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            if log.WhichOneof("log_type") == "predict_log":
                self.predict(log.predict_log.request, limits=None)
                count += 1
        return count

    def predict(self, request, limits):
        """Answers a `PredictRequest`.

        Args:
            request: the request; its model name and version are not looked at.
            limits: `Limits`, or None for none.

        Returns:
            A `PredictResponse` with outputs, version and signature name; the model's name is the caller's.

        Raises:
            RequestRefused: the request does not fit the signature or the limits, or the graph refuses it.
        """
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        if name not in self._signatures:
            known = ", ".join(f'"{known}"' for known in sorted(self._signatures))
            raise _invalid(f'Serving signature key "{name}" not found; this model has {known}.')
        signature = self.signature_defs[name]
        wanted = self._outputs_wanted(name, signature, request.output_filter)
        inputs = self._inputs(name, signature, request.inputs, limits)
        try:
            outputs = self._signatures[name](**inputs)
            arrays = {key: outputs[key].numpy() for key in wanted}
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
            raise _invalid(human_sentence(error.message)) from None
        except tf.errors.ResourceExhaustedError:
            raise RequestRefused(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "The request needs more memory than the server has; send fewer or shorter texts.",
            ) from None
        response = predict_pb2.PredictResponse()
        response.model_spec.version.value = self.version
        response.model_spec.signature_name = name
        for key, array in arrays.items():
            response.outputs[key].CopyFrom(_encode(np.asarray(array)))
        return response

    @staticmethod
    def _inputs(name, signature, inputs, limits):
        missing = sorted(set(signature.inputs) - set(inputs))
        extra = sorted(set(inputs) - set(signature.inputs))
        if missing or extra:
            parts = [f"missing {', '.join(missing)}"] if missing else []
            parts += [f"not known {', '.join(extra)}"] if extra else []
            raise _invalid(
                f'The inputs do not match signature "{name}" ({"; ".join(parts)}); '
                f"it takes {', '.join(sorted(signature.inputs))}."
            )
        tensors = {key: _decode(key, inputs[key], info, limits) for key, info in signature.inputs.items()}
        sizes = {key: tensor.shape[0] for key, tensor in tensors.items() if tensor.shape.rank}
        if len(set(sizes.values())) > 1:
            held = ", ".join(f"{key} {size}" for key, size in sorted(sizes.items()))
            raise _invalid(f"The inputs must hold the same number of texts; got {held}.")
        return tensors

    @staticmethod
    def _outputs_wanted(name, signature, output_filter):
        unknown = sorted(set(output_filter) - set(signature.outputs))
        if unknown:
            raise _invalid(
                f'Output "{unknown[0]}" of output_filter is not found in signature "{name}"; '
                f"it gives {', '.join(sorted(signature.outputs))}."
            )
        return sorted(set(output_filter) or signature.outputs)


@dataclasses.dataclass
class _Loaded:
    servable: Servable
    running: int = 0
    retired: bool = False


class ModelVersions:
    """The versions of one model folder, of which the latest good one answers.

    One thread calls `load_first` and then `poll` again and again; any number of threads call `use` and `states`.

    A version is taken up when it holds `saved_model.pb` and, once serving, when its files were the same at two
    polls and did not change while they were read: a folder that is still being copied waits. A version that
    cannot be loaded is logged, and tried again only when its files change. When the latest version is deleted,
    the one before it is taken up again; when all are deleted, the loaded one keeps answering.

    Args:
        name: the model's name, for messages.
        base: the folder that holds the version folders.
        only_version: serve this version alone, whatever others there are.

    Raises:
        ServeError: the folder does not exist or holds no version with a SavedModel.
    """

    def __init__(self, name, base, only_version=None):
        self.name = name
        self.base = pathlib.Path(base)
        self._only_version = only_version
        self._lock = threading.Lock()
        self._current: _Loaded | None = None
        self._states = {}
        self._failed = {}  # version -> fingerprint of the files that could not be loaded
        self._seen = {}  # version -> fingerprint at the last poll
        if not self.base.is_dir():
            raise ServeError(f"The model folder {self.base} does not exist.")
        versions = self._versions_on_disk()
        if not versions:
            raise ServeError(
                f"The model folder {self.base} has no version: it must hold folders named by numbers, such as 1."
            )
        if not any((path / MODEL_FILE).is_file() for path in versions.values()):
            raise ServeError(
                f"The model folder {self.base} has no SavedModel: there is no {MODEL_FILE} in "
                f"{', '.join(path.name for path in versions.values())}."
            )

    @property
    def version(self):
        """The number of the version that answers; None before the first is loaded."""
        with self._lock:
            return self._current.servable.version if self._current else None

    def states(self):
        """Returns the `VersionState` of every version met so far, the latest first."""
        with self._lock:
            return [self._states[version] for version in sorted(self._states, reverse=True)]

    @contextlib.contextmanager
    def use(self, version=None):
        """Lends the `Servable` that answers, which is not retired before it is given back.

        Args:
            version: the version asked for; None is the latest.

        Raises:
            RequestRefused: NOT_FOUND, the version is not the one that answers.
        """
        with self._lock:
            loaded = self._current
            if loaded is None or version not in (None, loaded.servable.version):
                asked = f"Latest({self.name})" if version is None else f"Specific({self.name}, {version})"
                raise RequestRefused(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {asked}.")
            loaded.running += 1
        try:
            yield loaded.servable
        finally:
            with self._lock:
                loaded.running -= 1
                self._end_if_idle(loaded)

    def load_first(self):
        """Loads the latest version that can be loaded.

        Raises:
            ServeError: there is none.
        """
        for version, path in self._candidates():
            if self._load(version, path, _fingerprint(path)):
                return
        errors = "; ".join(f"version {state.version}: {state.error}" for state in self.states())
        raise ServeError(f"No version in {self.base} can be loaded ({errors}).")

    def poll(self):
        """Looks at the folder once: takes up a new latest version, retires the one before it."""
        seen, self._seen = self._seen, {}
        current = self.version
        for version, path in self._candidates():
            if version == current:
                return
            fingerprint = self._seen[version] = _fingerprint(path)
            if self._failed.get(version) == fingerprint:
                continue
            # Not the same as at the last poll: somebody is still writing. An older version is not
            # taken up in the meantime, it would be replaced at the next poll.
            if seen.get(version) != fingerprint or self._load(version, path, fingerprint):
                return

    def _versions_on_disk(self):
        """Returns version number to folder, the latest first."""
        try:
            entries = [path for path in self.base.iterdir() if re.fullmatch(r"[0-9]{1,19}", path.name)]
        except OSError:
            return {}
        numbered = {int(path.name): path for path in entries if path.is_dir() and int(path.name) <= _MAX_VERSION}
        if self._only_version is not None:
            numbered = {version: path for version, path in numbered.items() if version == self._only_version}
        return dict(sorted(numbered.items(), reverse=True))

    def _candidates(self):
        return [(version, path) for version, path in self._versions_on_disk().items() if (path / MODEL_FILE).is_file()]

    def _load(self, version, path, fingerprint):
        """Loads and warms up one version and lets it answer; returns whether that went well."""
        self._set_state(version, "LOADING")
        logger.info("Loading %s version %d from %s.", self.name, version, path)
        try:
            servable = Servable(path, version)
            if (path / WARMUP_FILE).is_file():
                count = servable.warm_up(path / WARMUP_FILE)
                logger.info("%s version %d: %d warm-up requests were run.", self.name, version, count)
            if _fingerprint(path) != fingerprint:
                raise ValueError("its files changed while it was loaded")
        except Exception as error:  # whatever is wrong with a new version, the old one must keep answering
            reason = human_sentence(str(error)) if str(error) else type(error).__name__
            self._failed[version] = fingerprint
            self._set_state(version, "END", reason)
            logger.warning("%s version %d cannot be loaded and is skipped: %s", self.name, version, reason)
            logger.debug("The failure in full:", exc_info=True)
            return False
        self._failed.pop(version, None)
        with self._lock:
            old, self._current = self._current, _Loaded(servable)
            self._states[version] = VersionState(version, "AVAILABLE")
            if old is not None:
                old.retired = True
                self._states[old.servable.version] = VersionState(old.servable.version, "UNLOADING")
                self._end_if_idle(old)
        logger.info("%s version %d is available.", self.name, version)
        return True

    def _end_if_idle(self, loaded):
        """Notes the end of a retired version once nobody uses it; its memory goes with the last reference."""
        version = loaded.servable.version
        # The same version may have been taken up anew since.
        if loaded.retired and not loaded.running and self._current.servable.version != version:
            self._states[version] = VersionState(version, "END")

    def _set_state(self, version, state, error=""):
        with self._lock:
            self._states[version] = VersionState(version, state, error)


def _fingerprint(path):
    """Returns the names, sizes and times of all files below a folder: what changes while it is written."""
    facts = []
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                stat = os.stat(os.path.join(folder, name))
                facts.append((os.path.join(folder, name), stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(facts))
