"""One version of a model in memory: it checks and answers `PredictRequest`s.

It does not deal with folders, changing versions, or the network.
"""

import functools
import json
import logging
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from serving import lean_tensorflow  # before whatever imports TensorFlow

# isort: split
import grpc
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow_serving.apis import predict_pb2

from serving.batching import Arrays, Batcher, Batching, GivenUp, can_batch, waits
from serving.errors import RequestRefused, invalid
from serving.human_sentence import human_sentence
from serving.limits import Limits
from serving.tensor_protos import decode, encode
from serving.version_folders import MODEL_FILE

# Exported models use them.
lean_tensorflow.register_text_operations()

DEFAULT_SIGNATURE = "serving_default"
FACTS_FILE = os.path.join("assets.extra", "verbatim.json")
# TensorFlow's error codes for a bad request, to gRPC's.
_CODES = {
    tf.errors.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    tf.errors.OUT_OF_RANGE: grpc.StatusCode.INVALID_ARGUMENT,
    tf.errors.FAILED_PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
    tf.errors.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    tf.errors.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    tf.errors.DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
}


def _open_session(path: str | os.PathLike[str], tags: Iterable[str]) -> tf.compat.v1.Session:
    """Returns a session with a SavedModel's graph, restored and initialized."""
    log = logging.getLogger("tensorflow")
    level = log.level
    # TensorFlow's passes over a graph take a quarter of a start, and XLA has passes of its own.
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as graph:
        session = tf.compat.v1.Session(graph=graph, config=config)
        try:
            # Users need no warning that sessions are of TensorFlow 1.
            log.setLevel(logging.ERROR)
            tf.compat.v1.saved_model.load(session, list(tags), str(path))
        except BaseException:
            session.close()
            raise
        finally:
            log.setLevel(level)
    return session


def _languages(path: pathlib.Path) -> tuple[str, str] | None:
    """Returns the languages of the recipe of an exported model, which stands beside the graph."""
    try:
        facts = json.loads((path / FACTS_FILE).read_text(encoding="utf-8"))
        data = facts["recipe"]["data"]
        found = (data["source_language"], data["target_language"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if all(isinstance(code, str) and code for code in found) else None


class Servable:
    """One version of a model in memory, in a session of its own as in TensorFlow Serving.

    Closing the session frees what it holds, compiled programs included. Loaded as objects
    (`tf.saved_model.load`), versions would share the one runtime of the process, which keeps every
    compiled program to the end. And a model that TensorFlow Serving cannot run cannot run here
    either.

    Args:
        path: the SavedModel's folder.
        version: its number.
        batching: the `Batching` of requests that arrive together; None answers each by itself.

    Attributes:
        version: its number.
        signature_defs: name to `SignatureDef`, all that the SavedModel declares.
        languages: the codes of source and target language; None for a model that does not say so.
        instead: function of a signature's name and a number of texts; names the signature with the
            same inputs and outputs that answers them. Warm-up requests are answered as they ask.

    Raises:
        Exception: whatever TensorFlow raises for a SavedModel that it cannot load.
    """

    def __init__(
        self, path: str | os.PathLike[str], version: int, batching: Batching | None = None
    ) -> None:
        self.version = version
        self.instead: Callable[[str, int], str] = lambda name, number: name
        proto = saved_model_pb2.SavedModel()
        proto.ParseFromString((pathlib.Path(path) / MODEL_FILE).read_bytes())
        if not proto.meta_graphs:
            raise ValueError("it holds no graph")
        # A SavedModel for training may hold several graphs; the one tagged "serve" is served.
        graphs = [
            graph for graph in proto.meta_graphs if "serve" in graph.meta_info_def.tags
        ] or proto.meta_graphs
        # As copies: a part of a message keeps all of it in memory.
        self.signature_defs = {
            name: meta_graph_pb2.SignatureDef.FromString(signature.SerializeToString())
            for name, signature in graphs[0].signature_def.items()
        }
        tags = list(graphs[0].meta_info_def.tags)
        del proto, graphs
        self.languages = _languages(pathlib.Path(path))
        self._session = _open_session(path, tags)
        self._signatures = {
            name: sig
            for name, sig in self.signature_defs.items()
            if sig.outputs and name[:2] != "__"
        }
        if not self._signatures:
            raise ValueError("it has no signature")
        self._input_shapes = {
            (name, key): self._session.graph.get_tensor_by_name(info.name).shape
            for name, signature in self._signatures.items()
            for key, info in signature.inputs.items()
            if info.name
        }
        self._batchers: dict[str, Batcher] = {}
        if batching:
            for name, signature in self._signatures.items():
                if can_batch(signature):
                    run = functools.partial(
                        self._run_instead, name, names=sorted(signature.outputs)
                    )
                    self._batchers[name] = Batcher(run, batching)

    def close(self) -> None:
        """Frees the version's memory; it must not be used afterwards."""
        self._session.close()

    def predict(
        self,
        request: predict_pb2.PredictRequest,
        limits: Limits | None,
        given_up: GivenUp = waits,
    ) -> predict_pb2.PredictResponse:
        """Answers a `PredictRequest`.

        Args:
            request: the request; its model name and version are ignored.
            limits: `Limits`, or None for none.
            given_up: whether the client has stopped waiting; see `Batcher`.

        Returns:
            A `PredictResponse` with outputs, version and signature name; the caller adds the
            model's name.

        Raises:
            RequestRefused: the request does not fit the signature or the limits, the graph refuses
                it, or the client gave up.
        """
        # The client may have stopped while the request waited for a thread.
        if refusal := given_up():
            raise refusal
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        if name not in self._signatures:
            known = ", ".join(f'"{known}"' for known in sorted(self._signatures))
            raise invalid(f'Serving signature key "{name}" not found; this model has {known}.')
        signature = self.signature_defs[name]
        names = self._output_names(name, signature, request.output_filter)
        inputs = self._inputs(name, signature, request.inputs, limits)
        if not limits:
            # A warm-up request.
            arrays = self._run(name, inputs, names)
        elif batcher := self._batchers.get(name):
            arrays = batcher(inputs, given_up)
        else:
            arrays = self._run_instead(name, inputs, names)
        response = predict_pb2.PredictResponse()
        response.model_spec.version.value = self.version
        response.model_spec.signature_name = name
        for key in names:
            response.outputs[key].CopyFrom(encode(np.asarray(arrays[key])))
        return response

    def _run_instead(
        self, name: str, inputs: Arrays, names: Iterable[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Does what `_run` does, with the signature that answers in place of this one."""
        number = max((len(array) for array in inputs.values() if array.ndim), default=0)
        return self._run(self.instead(name, number), inputs, names)

    def _run(self, name: str, inputs: Arrays, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Calls a signature with its inputs; returns the outputs of these names.

        Raises:
            RequestRefused: the graph refuses the inputs.
        """
        try:
            signature = self._signatures[name]
            fed = {signature.inputs[key].name: array for key, array in inputs.items()}
            fetched = {key: signature.outputs[key].name for key in names}
            arrays: dict[str, npt.NDArray[Any]] = self._session.run(fetched, fed)
            return arrays
        except tf.errors.ResourceExhaustedError:
            raise RequestRefused(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "The request needs more memory than the server has; send fewer or shorter texts.",
            ) from None
        except tf.errors.OpError as error:
            code = _CODES.get(error.error_code)
            # Anything else is a failure of the server, whose log says more.
            if code is None:
                raise
            raise RequestRefused(code, human_sentence(error.message)) from None

    def _inputs(
        self,
        name: str,
        signature: meta_graph_pb2.SignatureDef,
        inputs: Mapping[str, Any],
        limits: Limits | None,
    ) -> dict[str, npt.NDArray[Any]]:
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
            key: decode(key, inputs[key], info, limits, self._input_shapes.get((name, key)))
            for key, info in signature.inputs.items()
        }
        # Inputs that are no texts may have rows of their own; where not, the graph says so.
        sizes = {
            key: len(array)
            for key, array in arrays.items()
            if array.ndim and (array.dtype == object or name in self._batchers)
        }
        if len(set(sizes.values())) > 1:
            held = ", ".join(f"{key} {size}" for key, size in sorted(sizes.items()))
            raise invalid(f"The inputs must hold the same number of texts; got {held}.")
        return arrays

    @staticmethod
    def _output_names(
        name: str, signature: meta_graph_pb2.SignatureDef, output_filter: Iterable[str]
    ) -> list[str]:
        asked = list(output_filter)
        if len(set(asked)) < len(asked):
            raise invalid("output_filter names an output twice; name each one once.")
        unknown = sorted(set(asked) - set(signature.outputs))
        if unknown:
            raise invalid(
                f'Output "{unknown[0]}" of output_filter is not found in signature "{name}"; '
                f"it gives {', '.join(sorted(signature.outputs))}."
            )
        return sorted(asked or signature.outputs)
