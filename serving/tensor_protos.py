"""TensorFlow's `TensorProto`s: decoded after they are checked, and encoded as TF Serving does."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from serving.errors import invalid
from serving.limits import Limits

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
    types_pb2.DT_UINT32: "uint32_val",
    types_pb2.DT_UINT64: "uint64_val",
    types_pb2.DT_BOOL: "bool_val",
    types_pb2.DT_HALF: "half_val",
    types_pb2.DT_BFLOAT16: "half_val",
    types_pb2.DT_COMPLEX64: "scomplex_val",
    types_pb2.DT_COMPLEX128: "dcomplex_val",
}
# How a value of these types is stored in its field: as its bits, or as two parts.
_STORED_AS = {
    types_pb2.DT_HALF: np.uint16,
    types_pb2.DT_BFLOAT16: np.uint16,
    types_pb2.DT_COMPLEX64: np.float32,
    types_pb2.DT_COMPLEX128: np.float64,
}


def decode(
    name: str,
    tensor: tensor_pb2.TensorProto,
    info: meta_graph_pb2.TensorInfo,
    limits: Limits | None,
    graph_shape: tf.TensorShape | None = None,
) -> npt.NDArray[Any]:
    """Returns the array of one input.

    Args:
        name: the input's name in the signature.
        tensor: the request's `TensorProto`.
        info: the signature's `TensorInfo`.
        limits: `Limits`, or None for requests that the model brings itself (warm-up).
        graph_shape: the shape that the graph itself takes, where a signature may leave it open.

    Raises:
        RequestRefused: the tensor is of another type or shape, cannot be read, or is over a limit.
    """
    if tensor.dtype != info.dtype:
        raise invalid(
            f'Input "{name}" must be of type {_type_name(info.dtype)}; got '
            f"{_type_name(tensor.dtype)}."
        )
    sizes = _sizes(name, tensor, info, graph_shape)
    is_text = tensor.dtype == types_pb2.DT_STRING
    if limits is not None and sizes:
        if sizes[0] > limits.max_batch_size:
            raise invalid(
                f'Input "{name}" holds {sizes[0]} {"texts" if is_text else "rows"}; one request '
                f"may hold {limits.max_batch_size} at most."
            )
        if sizes[0] == 0 and is_text:
            raise invalid(f'Input "{name}" holds no text; send at least one.')
    _check_count(name, tensor, math.prod(sizes))
    if is_text:
        values = list(tensor.string_val)
        if limits is not None:
            _check_texts(name, values, limits)
        return np.array(values, dtype=object).reshape(sizes)
    try:
        array: npt.NDArray[Any] = tf.make_ndarray(tensor)
    except (TypeError, ValueError, OverflowError, tf.errors.OpError):
        raise invalid(f'Input "{name}" cannot be read: its values do not fit its type.') from None
    return array


def _sizes(
    name: str,
    tensor: tensor_pb2.TensorProto,
    info: meta_graph_pb2.TensorInfo,
    graph_shape: tf.TensorShape | None,
) -> list[int]:
    """Returns the shape of a tensor, which must fit the signature and the graph."""
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise invalid(f'Input "{name}" cannot be read: its shape is not fully known.')
    shapes = []
    # A signature without a shape leaves it open, as one of unknown rank does.
    if info.HasField("tensor_shape") and not info.tensor_shape.unknown_rank:
        shapes.append([dim.size for dim in info.tensor_shape.dim])
    if graph_shape is not None and graph_shape.rank is not None:
        shapes.append([-1 if size is None else size for size in graph_shape.as_list()])
    for expected in shapes:
        if len(expected) != len(sizes):
            raise invalid(f'Input "{name}" must be of rank {len(expected)}; got rank {len(sizes)}.')
        if any(size not in (-1, actual) for size, actual in zip(expected, sizes)):
            raise invalid(
                f'Input "{name}" must be of shape {_shape_name(expected)}; got '
                f"{_shape_name(sizes)}."
            )
    return sizes


def _check_count(name: str, tensor: tensor_pb2.TensorProto, count: int) -> None:
    """Refuses a tensor that does not hold exactly `count` values.

    TensorFlow repeats the last value where some are missing. Here a few bytes could then need any
    amount of memory, and a client's mistake would become invented texts.
    """
    held: float
    if tensor.dtype == types_pb2.DT_STRING:
        held = len(tensor.string_val)
    elif tensor.tensor_content:
        held = len(tensor.tensor_content) / tf.as_dtype(tensor.dtype).size
    else:
        held = len(getattr(tensor, _VALUE_FIELDS.get(tensor.dtype, "tensor_content")))
        if tensor.dtype in (types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128):
            held /= 2
    if held != count:
        shown = f"{held:g}" if held % 1 else str(int(held))
        raise invalid(
            f'Input "{name}" cannot be read: its shape needs {count} values, it holds {shown}.'
        )


def _check_texts(name: str, values: Iterable[bytes], limits: Limits) -> None:
    for position, value in enumerate(values):
        if len(value) > limits.max_text_bytes:
            raise invalid(
                f"{name}[{position}] is {len(value)} bytes long; a text may have at most "
                f"{limits.max_text_bytes}."
            )
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            raise invalid(f"{name}[{position}] is not valid UTF-8.") from None
        if not text.strip():
            raise invalid(f"{name}[{position}] is empty; send a text that is not only white space.")


def encode(array: npt.NDArray[Any]) -> tensor_pb2.TensorProto:
    """Returns a `TensorProto` with values in their typed field, as TensorFlow Serving does."""
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    if dtype not in _VALUE_FIELDS:
        return tf.make_tensor_proto(array)
    proto = tensor_pb2.TensorProto(dtype=dtype)
    # An array of no axis has a shape, too.
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = np.ascontiguousarray(array).ravel()
    if dtype in _STORED_AS:
        flat = flat.view(_STORED_AS[dtype])
    getattr(proto, _VALUE_FIELDS[dtype]).extend(flat.tolist())
    return proto


def _type_name(number: int) -> str:
    try:
        return str(tf.as_dtype(number).name)
    except TypeError:
        return f"type {number}"


def _shape_name(sizes: Sequence[int]) -> str:
    return "[" + ", ".join("any" if size < 0 else str(size) for size in sizes) + "]"
