"""Requests to a served model as TensorFlow Serving's messages, and its responses read.

Nothing is sent from here.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import grpc
import numpy as np
import numpy.typing as npt

from serving import protos, responses
from serving.answers import (
    Answer,
    Metadata,
    Score,
    Signature,
    TensorFacts,
    VersionStatus,
    WordScore,
)
from serving.errors import RequestError

if TYPE_CHECKING:
    from tensorflow.core.framework import tensor_pb2
    from tensorflow.core.protobuf import meta_graph_pb2
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_pb2,
        predict_pb2,
    )

T = TypeVar("T")
Method = Literal["Predict", "GetModelMetadata", "GetModelStatus"]
#: A text, or any number of them.
Texts = str | Iterable[str]
#: Column of tags to as many texts.
Features = Mapping[str, Texts]

_DTYPES = {
    "DT_FLOAT": (np.float32, "float_val"),
    "DT_INT32": (np.int32, "int_val"),
    "DT_INT64": (np.int64, "int64_val"),
}


@dataclasses.dataclass(frozen=True)
class Question(Generic[T]):
    """One request.

    Attributes:
        method: the method of the service that is called.
        message: what is sent.
        read: function of the response that returns what it says; for `Predict` that is a list with
            an answer for each text. It raises `RequestError` if this is not the response of a
            Verbatim model.
        where: which of many texts the request holds, to begin an error's sentence with; empty if it
            holds all.
    """

    method: Method
    message: object
    read: Callable[[Any], T]
    where: str = ""


class Messages:
    """Makes the requests for one model, and reads their responses.

    Args:
        address: the server's, for sentences.
        model: the model's name; empty is the server's only one.
        version: a version number, or None for the latest.
        batch_size: the most texts in a request; None is no limit.

    Raises:
        ImportError: `tensorflow-serving-api` is not installed.
    """

    def __init__(
        self, address: str, model: str, version: int | None, batch_size: int | None
    ) -> None:
        self.protos = protos.load()
        self._address = address
        self._model = model
        self._version = version
        self._batch_size = batch_size

    # The questions to a model. Those on texts are iterators of `Question`: one for each batch, in
    # the texts' order. All raise `RequestError` where the arguments do not fit each other or cannot
    # be sent.

    def predict(
        self, texts: Texts, signature: str, features: Features | None
    ) -> Iterator[Question[list[Answer]]]:
        """Asks for the best output of each text."""
        return self._on_texts(signature, _inputs(texts, features), responses.ANSWERS)

    def n_best(
        self, texts: Texts, signature: str, features: Features | None
    ) -> Iterator[Question[list[list[Answer]]]]:
        """Asks for the best outputs of each text."""
        return self._on_texts(signature, _inputs(texts, features), responses.LISTS_OF_ANSWERS)

    def score(
        self, sources: Texts, targets: Texts, features: Features | None
    ) -> Iterator[Question[list[Score]]]:
        """Asks how likely each target is for its source."""
        sources, targets = _as_list(sources), _as_list(targets)
        if len(sources) != len(targets):
            raise RequestError(
                f"There must be as many targets as sources; got {len(sources)} sources and "
                f"{len(targets)} targets."
            )
        inputs = {"target": targets, **_inputs(sources, features)}
        return self._on_texts("score", inputs, responses.SCORES)

    def continue_text(self, texts: Texts, signature: str) -> Iterator[Question[list[Answer]]]:
        """Asks how a language model continues each text."""
        return self._on_texts(signature, {"text": _as_list(texts)}, responses.CONTINUATIONS)

    def score_text(self, texts: Texts) -> Iterator[Question[list[WordScore]]]:
        """Asks how likely a language model finds each word."""
        return self._on_texts("score", {"text": _as_list(texts)}, responses.WORD_SCORES)

    def metadata(self) -> Question[Metadata]:
        """Asks for the model's name, version and signatures."""
        message = self.protos.get_model_metadata_pb2.GetModelMetadataRequest(
            metadata_field=["signature_def"]
        )
        self._name_model(message.model_spec)
        return Question("GetModelMetadata", message, self._read_metadata)

    def status(self) -> Question[list[VersionStatus]]:
        """Asks for the state of each version."""
        message = self.protos.get_model_status_pb2.GetModelStatusRequest()
        self._name_model(message.model_spec)
        return Question("GetModelStatus", message, self._read_status)

    def _name_model(self, spec: model_pb2.ModelSpec) -> None:
        spec.name = self._model
        if self._version is not None:
            spec.version.value = self._version

    def _on_texts(
        self, signature: str, inputs: Mapping[str, list[str]], reading: responses.Reading[T]
    ) -> Iterator[Question[list[T]]]:
        """Yields the questions to a signature.

        Args:
            signature: its name.
            inputs: input name to list of texts, all of the same length.
            reading: which outputs to ask for, and how to read them.
        """
        total = len(next(iter(inputs.values())))
        size = self._batch_size or max(total, 1)
        for start in range(0, total, size):
            batch = {name: texts[start : start + size] for name, texts in inputs.items()}
            rows = min(size, total - start)
            last = start + rows - 1
            which = f"Text {start}" if start == last else f"Texts {start} to {last}"
            where = "" if rows == total else f"{which}, counted from 0: "
            message = self._predict_request(signature, batch, reading.axes, where)
            read = functools.partial(self._read_outputs, signature, reading, rows, where)
            yield Question("Predict", message, read, where)

    def _predict_request(
        self, signature: str, inputs: Mapping[str, list[str]], outputs: Iterable[str], where: str
    ) -> predict_pb2.PredictRequest:
        message = self.protos.predict_pb2.PredictRequest()
        self._name_model(message.model_spec)
        message.model_spec.signature_name = signature
        message.output_filter.extend(outputs)
        for name, texts in inputs.items():
            tensor = message.inputs[name]
            tensor.dtype = self.protos.types_pb2.DT_STRING
            tensor.tensor_shape.dim.add(size=len(texts))
            try:
                tensor.string_val.extend(text.encode("utf-8") for text in texts)
            except UnicodeEncodeError:
                raise RequestError(
                    f'{where}A text of "{name}" holds half a surrogate pair and cannot be sent as '
                    "UTF-8."
                ) from None
        return message

    def _read_outputs(
        self,
        signature: str,
        reading: responses.Reading[T],
        rows: int,
        where: str,
        response: predict_pb2.PredictResponse,
    ) -> list[T]:
        outputs = {}
        for name, axes in reading.axes.items():
            array = self._to_array(response.outputs[name]) if name in response.outputs else None
            if array is None or array.ndim != axes or array.shape[0] != rows:
                raise RequestError(
                    f'{where}The signature "{signature}" of the model at {self._address} does not '
                    f'answer as a Verbatim model does: see its output "{name}".',
                    grpc.StatusCode.FAILED_PRECONDITION,
                )
            outputs[name] = array
        return reading.read(outputs)

    def _to_array(self, tensor: tensor_pb2.TensorProto) -> npt.NDArray[Any] | None:
        """Returns a `TensorProto` as a NumPy array; None for a type that no Verbatim model has."""
        shape = [dim.size for dim in tensor.tensor_shape.dim]
        dtype = self.protos.types_pb2.DataType.Name(tensor.dtype)
        try:
            if dtype == "DT_STRING":
                array = np.empty(len(tensor.string_val), object)
                array[:] = [value.decode("utf-8", "replace") for value in tensor.string_val]
                return array.reshape(shape)
            number, field = _DTYPES[dtype]
            if tensor.tensor_content:
                return np.frombuffer(tensor.tensor_content, number).reshape(shape)
            return np.array(getattr(tensor, field), number).reshape(shape)
        except (KeyError, ValueError):
            return None

    def _read_metadata(self, response: get_model_metadata_pb2.GetModelMetadataResponse) -> Metadata:
        signatures = self.protos.get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return Metadata(
            name=response.model_spec.name,
            version=response.model_spec.version.value,
            signatures={
                name: Signature(
                    inputs={key: self._facts(info) for key, info in signature.inputs.items()},
                    outputs={key: self._facts(info) for key, info in signature.outputs.items()},
                )
                for name, signature in signatures.signature_def.items()
            },
        )

    def _facts(self, info: meta_graph_pb2.TensorInfo) -> TensorFacts:
        dtype = self.protos.types_pb2.DataType.Name(info.dtype)[len("DT_") :].lower()
        dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
        if info.tensor_shape.unknown_rank:
            return TensorFacts(dtype, None)
        return TensorFacts(dtype, tuple(dim.size for dim in info.tensor_shape.dim))

    def _read_status(
        self, response: get_model_status_pb2.GetModelStatusResponse
    ) -> list[VersionStatus]:
        state_name = self.protos.get_model_status_pb2.ModelVersionStatus.State.Name
        return [
            VersionStatus(entry.version, state_name(entry.state), entry.status.error_message)
            for entry in response.model_version_status
        ]


def _as_list(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _inputs(texts: Texts, features: Features | None) -> dict[str, list[str]]:
    """Returns the inputs of a request: the sources, and their tags by column.

    Raises:
        RequestError: there are not as many tags of a column as texts.
    """
    inputs = {"source": _as_list(texts)}
    count = len(inputs["source"])
    for name, tags in (features or {}).items():
        inputs[name] = _as_list(tags)
        if len(inputs[name]) != count:
            raise RequestError(
                f'There must be as many texts of "{name}" as sources; got {len(inputs[name])} and '
                f"{count}."
            )
    return inputs
