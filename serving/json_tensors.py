"""JSON to tensors and back, as TensorFlow Serving's REST interface has them.

A request holds `instances` or `inputs`. `instances` is a list with a value, or a dict of values,
for each text; `inputs` is a value or dict with all texts in each. The answer then holds
`predictions` or `outputs` of the same form. Bytes that are no text are `{"b64": "..."}`.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import predict_pb2

from serving.errors import invalid

# Anything that JSON can hold.
Json = Any
_Infos = Mapping[str, meta_graph_pb2.TensorInfo]


class Response(TypedDict, total=False):
    """The JSON of an answer: one of the two."""

    predictions: list[Json]
    outputs: Json


def read_request(
    body: Json, signature_defs: Mapping[str, meta_graph_pb2.SignatureDef], default_signature: str
) -> tuple[predict_pb2.PredictRequest, bool]:
    """Returns the `PredictRequest` of a JSON body, and whether it holds `instances`.

    Args:
        body: the decoded JSON.
        signature_defs: name to `SignatureDef` of the model version that is asked.
        default_signature: the name of the signature where the body names none.

    Raises:
        RequestRefused: INVALID_ARGUMENT, the body does not have that form.
    """
    if not isinstance(body, dict):
        raise invalid("The body must be one JSON object.")
    unknown = sorted(set(body) - {"signature_name", "instances", "inputs"})
    if unknown or ("instances" in body) == ("inputs" in body):
        raise invalid(
            "The body must hold either 'instances' or 'inputs', and may hold 'signature_name'; "
            "nothing else."
        )
    name = body.get("signature_name", default_signature)
    if not isinstance(name, str) or name not in signature_defs:
        known = ", ".join(f'"{known}"' for known in sorted(signature_defs))
        raise invalid(f'Serving signature key "{name}" not found; this model has {known}.')
    infos = signature_defs[name].inputs
    by_rows = "instances" in body
    values = _columns(body["instances"], infos) if by_rows else _by_name(body["inputs"], infos)
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = name
    for key, value in values.items():
        if key not in infos:
            raise invalid(
                f"The input '{key}' is not known; the signature \"{name}\" takes "
                f"{', '.join(sorted(infos))}."
            )
        request.inputs[key].CopyFrom(_tensor(key, value, tf.as_dtype(infos[key].dtype)))
    return request, by_rows


def _by_name(inputs: Json, infos: _Infos) -> Mapping[str, Json]:
    if isinstance(inputs, dict) and not _is_bytes(inputs):
        return inputs
    return {_only(infos): inputs}


def _only(infos: _Infos) -> str:
    if len(infos) != 1:
        raise invalid(f"Name the inputs: the signature takes {', '.join(sorted(infos))}.")
    return next(iter(infos))


def _columns(instances: Json, infos: _Infos) -> dict[str, list[Json]]:
    """Turns a list of rows into columns by name."""
    if not isinstance(instances, list) or not instances:
        raise invalid("'instances' must be a list with at least one element.")
    named = [isinstance(instance, dict) and not _is_bytes(instance) for instance in instances]
    if not any(named):
        return {_only(infos): instances}
    if not all(named) or any(set(instance) != set(instances[0]) for instance in instances):
        raise invalid("Each of 'instances' must name the same inputs.")
    return {key: [instance[key] for instance in instances] for key in instances[0]}


def _is_bytes(value: Json) -> bool:
    return isinstance(value, dict) and set(value) == {"b64"}


def _tensor(name: str, value: Json, dtype: tf.DType) -> tensor_pb2.TensorProto:
    """Returns the `TensorProto` of nested lists."""

    def read(item: Json) -> Any:
        if isinstance(item, list):
            return [read(one) for one in item]
        if dtype == tf.string:
            if _is_bytes(item) and isinstance(item["b64"], str):
                try:
                    return base64.b64decode(item["b64"], validate=True)
                except binascii.Error:
                    raise invalid(f"Input \"{name}\" holds 'b64' that is not base64.") from None
            if isinstance(item, str):
                return item.encode("utf-8", "surrogatepass")
        elif dtype == tf.bool:
            if isinstance(item, bool):
                return item
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            if dtype.is_floating or isinstance(item, int):
                return item
        raise invalid(f'Input "{name}" must be of type {dtype.name}; got {_shown(item)}.')

    values = read(value)
    try:
        if dtype == tf.string:
            shape = _shape(values)
            return tf.make_tensor_proto(np.array(values, object).reshape(shape), tf.string, shape)
        array = np.array(values)
        converted = array.astype(dtype.as_numpy_dtype)
        if dtype.is_integer and not np.array_equal(converted, array):
            raise OverflowError
        return tf.make_tensor_proto(converted, dtype, array.shape)
    except (ValueError, TypeError, OverflowError):
        raise invalid(
            f'Input "{name}" cannot be read: its lists are uneven or its values do not fit its '
            "type."
        ) from None


def _shape(values: Any) -> list[int]:
    """Returns the shape of nested lists.

    Raises:
        ValueError: they are uneven.
    """
    if not isinstance(values, list):
        return []
    shapes = [_shape(value) for value in values]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError
    return [len(values), *(shapes[0] if shapes else [])]


def _shown(item: Json) -> str:
    if item is None:
        return "null"
    text = repr(item) if isinstance(item, (str, bool, int, float)) else "an object"
    return text if len(text) <= 40 else text[:39] + "…"


def write_response(response: predict_pb2.PredictResponse, by_rows: bool) -> Response:
    """Returns the JSON value of a `PredictResponse`.

    A single output has no name, as in TensorFlow Serving.
    """
    columns = {
        key: _values(key, tf.make_ndarray(tensor))
        for key, tensor in sorted(response.outputs.items())
    }
    if not by_rows:
        return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    return {"predictions": [dict(zip(columns, row)) for row in zip(*columns.values(), strict=True)]}


def _values(name: str, array: npt.NDArray[Any]) -> Json:
    """Returns an output as nested lists of numbers or strings.

    Texts are base64 where the output's name says that they are bytes.
    """
    if array.dtype != object:
        return array.tolist()

    def write(item: Any) -> Json:
        if isinstance(item, list):
            return [write(one) for one in item]
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(item).decode("ascii")}
        return item.decode("utf-8", "replace")

    return write(array.tolist())
