"""JSON to tensors and back, as TensorFlow Serving's REST interface has them.

A request holds `instances` or `inputs`. `instances` is a list with a value, or a dict of values,
for each text; `inputs` is a value or dict with all texts in each. The answer then holds
`predictions` or `outputs` of the same form. Bytes that are not text are `{"b64": "..."}`.
"""

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import predict_pb2

from serving.errors import invalid
from serving.json_numbers import as_json, check_number
from serving.tensor_protos import encode

# Anything that JSON can hold.
Json = Any
_Infos = Mapping[str, meta_graph_pb2.TensorInfo]
_BLANKS = dict.fromkeys(map(ord, " \t\n\v\f\r"))
# Padding may be left out; a dot is padding, too. So it is in absl, which TensorFlow Serving uses.
_BASE64 = re.compile(r"([A-Za-z0-9+/]*)([=.]*)")


class Response(TypedDict, total=False):
    """The JSON of an answer: one of the two."""

    predictions: list[Json]
    outputs: Json


def parse(body: bytes) -> Json:
    """Returns the value of a JSON body.

    Raises:
        RequestRefused: INVALID_ARGUMENT, it is not JSON in UTF-8, or holds a number beyond a
            double.
    """

    def read_float(text: str) -> float:
        number = float(text)
        if math.isinf(number):
            raise ValueError
        return number

    try:
        return json.loads(body.decode("utf-8-sig"), parse_float=read_float)
    except (ValueError, RecursionError):
        raise invalid("The body is not valid JSON.") from None


def read_request(
    body: Json, signature_defs: Mapping[str, meta_graph_pb2.SignatureDef], default_signature: str
) -> tuple[predict_pb2.PredictRequest, bool]:
    """Returns the `PredictRequest` of a JSON body, and whether it holds `instances`.

    Other keys than those named above are ignored.

    Args:
        body: the decoded JSON.
        signature_defs: name to `SignatureDef` of the model version that is asked.
        default_signature: the name of the signature if the body names none.

    Raises:
        RequestRefused: INVALID_ARGUMENT, the body does not have that form.
    """
    if not isinstance(body, dict):
        raise invalid("The body must be one JSON object.")
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid("The 'signature_name' key must be a string value.")
    name = name or default_signature
    if name not in signature_defs:
        known = ", ".join(f'"{known}"' for known in sorted(signature_defs))
        raise invalid(f'Serving signature key "{name}" not found; this model has {known}.')
    infos = signature_defs[name].inputs
    if not infos:
        raise invalid(f'The signature "{name}" has no inputs, so it cannot be used over REST.')
    if ("instances" in body) == ("inputs" in body):
        raise invalid("The body must hold either 'instances' or 'inputs'.")
    by_rows = "instances" in body
    values = (_columns if by_rows else _by_name)(body["instances" if by_rows else "inputs"], infos)
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = name
    for key, value in values.items():
        request.inputs[key].CopyFrom(_tensor(key, value, tf.as_dtype(infos[key].dtype)))
    return request, by_rows


def _by_name(inputs: Json, infos: _Infos) -> Mapping[str, Json]:
    """Returns the value of each input; ignores other keys."""
    if not isinstance(inputs, dict) or _is_bytes(inputs):
        return {_only(infos): inputs}
    missing = sorted(set(infos) - set(inputs))
    if missing:
        unknown = sorted(set(inputs) - set(infos))
        hint = f" The input '{unknown[0]}' is not known." if unknown else ""
        raise invalid(f"Missing named input: {missing[0]} in 'inputs' object.{hint}")
    return {key: inputs[key] for key in infos}


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
    if set(instances[0]) != set(infos):
        unknown = sorted(set(instances[0]) - set(infos))
        hint = f" The input '{unknown[0]}' is not known." if unknown else ""
        raise invalid(f"Each of 'instances' must name {', '.join(sorted(infos))}.{hint}")
    return {key: [instance[key] for instance in instances] for key in instances[0]}


def _is_bytes(value: Json) -> bool:
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _tensor(name: str, value: Json, dtype: tf.DType) -> tensor_pb2.TensorProto:
    """Returns the `TensorProto` of nested lists."""
    flat: list[Any] = []
    shape = _shape(value)

    def read(item: Json, sizes: list[int]) -> None:
        if isinstance(item, list) != bool(sizes) or (sizes and len(item) != sizes[0]):
            raise invalid(f'Input "{name}" cannot be read: its lists are uneven.')
        if sizes:
            for one in item:
                read(one, sizes[1:])
        else:
            flat.append(_value(name, item, dtype))

    read(value, shape)
    if dtype == tf.string:
        array = np.empty(len(flat), object)
        array[:] = flat
        return encode(array.reshape(shape))
    return encode(np.array(flat, dtype.as_numpy_dtype).reshape(shape))


def _shape(value: Json) -> list[int]:
    """Returns the shape of nested lists, as the first of each has it."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return shape


def _value(name: str, item: Json, dtype: tf.DType) -> Any:
    """Returns one value of a tensor."""
    if dtype == tf.string:
        if isinstance(item, str):
            return item.encode("utf-8", "surrogatepass")
        if _is_bytes(item):
            return _decode(name, item["b64"])
    elif dtype == tf.bool:
        if isinstance(item, bool):
            return item
    elif isinstance(item, (int, float)) and not isinstance(item, bool):
        if dtype.is_floating or (dtype.is_integer and isinstance(item, int)):
            return check_number(name, item, dtype)
    raise invalid(f'Input "{name}" must be of type {dtype.name}; got {_shown(item)}.')


def _decode(name: str, text: str) -> bytes:
    """Returns the bytes of base64 text; white space in it, and missing padding, do no harm."""
    match = _BASE64.fullmatch(text.translate(_BLANKS))
    left = len(match[1]) % 4 if match else 1
    if match is None or left == 1 or len(match[2]) not in (0, -left % 4):
        raise invalid(f"Input \"{name}\" holds 'b64' that is not base64.")
    return base64.b64decode(match[1] + "=" * (-left % 4))


def _shown(item: Json) -> str:
    if item is None:
        return "null"
    text = repr(item) if isinstance(item, (str, bool, int, float)) else "an object"
    return text if len(text) <= 40 else text[:39] + "…"


def write_response(response: predict_pb2.PredictResponse, by_rows: bool) -> Response:
    """Returns the JSON value of a `PredictResponse`.

    A single output has no name, as in TensorFlow Serving.

    Raises:
        RequestRefused: INVALID_ARGUMENT, an output is of a type that JSON cannot hold; or the
            outputs are not rows.
    """
    arrays = {key: _array(key, tensor) for key, tensor in sorted(response.outputs.items())}
    if by_rows:
        _check_rows(arrays)
    columns = {key: _values(key, array) for key, array in arrays.items()}
    if not by_rows:
        return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    return {"predictions": [dict(zip(columns, row)) for row in zip(*columns.values(), strict=True)]}


def _check_rows(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuses outputs that cannot be cut into rows."""
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if array.ndim == 0:
            raise invalid(
                f"Tensor name: {name} has no shape information, so there are no rows; ask with "
                "'inputs' instead of 'instances'."
            )
        sizes[name] = len(array)
    expected = next(iter(sizes.values()), 0)
    for name, size in sizes.items():
        if size != expected:
            raise invalid(
                f"Tensor name: {name} has inconsistent batch size: {size} expecting: {expected}; "
                "ask with 'inputs' instead of 'instances'."
            )


def _array(name: str, tensor: tensor_pb2.TensorProto) -> npt.NDArray[Any]:
    dtype = tf.as_dtype(tensor.dtype)
    if dtype not in (tf.string, tf.bool, tf.half, tf.bfloat16, tf.float32, tf.float64):
        if not dtype.is_integer or dtype.is_quantized or dtype.size < 1:
            raise invalid(
                f"Failed to write JSON value for tensor type: {dtype.name} (output {name}); ask "
                "by gRPC."
            )
    array: npt.NDArray[Any] = tf.make_ndarray(tensor)
    return array


def _values(name: str, array: npt.NDArray[Any]) -> Json:
    """Returns an output as nested lists of numbers or strings.

    Texts are base64 if the output's name says that they are bytes.
    """
    if array.dtype != object:
        return as_json(array)

    def write(item: Any) -> Json:
        if isinstance(item, list):
            return [write(one) for one in item]
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(item).decode("ascii")}
        return item.decode("utf-8", "replace")

    return write(array.tolist())
