"""TensorFlow Serving's messages that a client sends and reads.

The classes are made here, from the table of their fields, in a descriptor pool of their own. So a
client needs only grpcio and protobuf. If TensorFlow is loaded too, its messages of the same names
are in protobuf's default pool, and neither disturbs the other.

The fields have the numbers and types of TensorFlow Serving's files under `tensorflow_serving/apis`;
only what is written as an enum there is an int32 here, which is the same on the wire. A reader
skips fields that the table lacks. `tests/serving/test_protos.py` compares the table with the files.
"""

import functools
from collections.abc import Iterator
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    wrappers_pb2,
)

_ANY = "google.protobuf.Any"
_INT64_VALUE = "google.protobuf.Int64Value"
_API = "tensorflow.serving"
# Full name of a message to its fields: name, number, and type, after "repeated" or "map" (from
# strings). What holds a message stands before it.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "tensorflow.TensorShapeProto": (
        ("dim", 2, "repeated tensorflow.TensorShapeProto.Dim"),
        ("unknown_rank", 3, "bool"),
    ),
    "tensorflow.TensorShapeProto.Dim": (("size", 1, "int64"), ("name", 2, "string")),
    "tensorflow.TensorProto": (
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "tensorflow.TensorShapeProto"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, "repeated float"),
        ("double_val", 6, "repeated double"),
        ("int_val", 7, "repeated int32"),
        ("string_val", 8, "repeated bytes"),
        ("int64_val", 10, "repeated int64"),
    ),
    "tensorflow.TensorInfo": (
        ("name", 1, "string"),
        ("dtype", 2, "int32"),
        ("tensor_shape", 3, "tensorflow.TensorShapeProto"),
    ),
    "tensorflow.SignatureDef": (
        ("inputs", 1, "map tensorflow.TensorInfo"),
        ("outputs", 2, "map tensorflow.TensorInfo"),
        ("method_name", 3, "string"),
    ),
    f"{_API}.ModelSpec": (
        ("name", 1, "string"),
        ("version", 2, _INT64_VALUE),
        ("signature_name", 3, "string"),
        ("version_label", 4, "string"),
    ),
    f"{_API}.PredictRequest": (
        ("model_spec", 1, f"{_API}.ModelSpec"),
        ("inputs", 2, "map tensorflow.TensorProto"),
        ("output_filter", 3, "repeated string"),
    ),
    f"{_API}.PredictResponse": (
        ("outputs", 1, "map tensorflow.TensorProto"),
        ("model_spec", 2, f"{_API}.ModelSpec"),
    ),
    f"{_API}.SignatureDefMap": (("signature_def", 1, "map tensorflow.SignatureDef"),),
    f"{_API}.GetModelMetadataRequest": (
        ("model_spec", 1, f"{_API}.ModelSpec"),
        ("metadata_field", 2, "repeated string"),
    ),
    f"{_API}.GetModelMetadataResponse": (
        ("model_spec", 1, f"{_API}.ModelSpec"),
        ("metadata", 2, f"map {_ANY}"),
    ),
    f"{_API}.StatusProto": (("error_code", 1, "int32"), ("error_message", 2, "string")),
    f"{_API}.GetModelStatusRequest": (("model_spec", 1, f"{_API}.ModelSpec"),),
    f"{_API}.ModelVersionStatus": (
        ("version", 1, "int64"),
        ("state", 2, "int32"),
        ("status", 3, f"{_API}.StatusProto"),
    ),
    f"{_API}.GetModelStatusResponse": (
        ("model_version_status", 1, f"repeated {_API}.ModelVersionStatus"),
    ),
}
#: The methods that a client calls: name to path, request and response.
METHODS = {
    "Predict": ("PredictionService", "PredictRequest", "PredictResponse"),
    "GetModelMetadata": (
        "PredictionService",
        "GetModelMetadataRequest",
        "GetModelMetadataResponse",
    ),
    "GetModelStatus": ("ModelService", "GetModelStatusRequest", "GetModelStatusResponse"),
}
#: `ModelVersionStatus.State`: number to name.
STATES = {0: "UNKNOWN", 10: "START", 20: "LOADING", 30: "AVAILABLE", 40: "UNLOADING", 50: "END"}
#: TensorFlow's `DataType`: number to name, as NumPy has it where there is such a type.
DATA_TYPES = dict(
    enumerate(
        "invalid float32 float64 int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8 "
        "qint32 bfloat16 qint16 quint16 uint16 complex128 half resource variant uint32 uint64 "
        "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 "
        "int2 uint2 float4_e2m1fn".split()
    )
)
STRING = 7


@functools.cache
def message(name: str) -> Any:
    """Returns the class of a message, by its full name or its name in `tensorflow.serving`."""
    full_name = name if "." in name else f"{_API}.{name}"
    descriptor = _pool().FindMessageTypeByName(full_name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return _old_factory().GetPrototype(descriptor)


def method_path(name: str) -> str:
    """Returns the path of a method in gRPC."""
    return f"/{_API}.{METHODS[name][0]}/{name}"


@functools.cache
def _old_factory() -> Any:
    """Returns what makes classes in a protobuf before 4.22."""
    return message_factory.MessageFactory(_pool())


@functools.cache
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    known = [any_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR]
    for file in known:
        pool.AddSerializedFile(file.serialized_pb)
    for package in ("tensorflow", _API):
        file = descriptor_pb2.FileDescriptorProto(
            name=f"verbatim/{package}.proto", package=package, syntax="proto3"
        )
        file.dependency.extend(one.name for one in known)
        made: dict[str, Any] = {}
        for name, fields in _MESSAGES.items():
            holder, _, simple_name = name.rpartition(".")
            if holder in made:
                made[name] = made[holder].nested_type.add(name=simple_name)
            elif holder == package:
                made[name] = file.message_type.add(name=simple_name)
            else:
                continue
            _add_fields(made[name], name, fields)
        pool.AddSerializedFile(file.SerializeToString())
        known.append(file)
    return pool


def _add_fields(made: Any, full_name: str, fields: tuple[tuple[str, int, str], ...]) -> None:
    """Adds fields to a `DescriptorProto`; a map is a repeated message of keys and values."""
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in fields:
        label, _, kind = kind.rpartition(" ")
        if label == "map":
            entry = made.nested_type.add(name=f"{_camel_case(name)}Entry")
            entry.options.map_entry = True
            _add_fields(entry, full_name, (("key", 1, "string"), ("value", 2, kind)))
            kind = f"{full_name}.{entry.name}"
        field = made.field.add(name=name, number=number)
        field.label = kinds.LABEL_REPEATED if label else kinds.LABEL_OPTIONAL
        if "." in kind:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".{kind}"
        else:
            field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")


def _camel_case(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def fields() -> Iterator[tuple[str, str, int, bool]]:
    """Yields each field of the table: its message, its name and number, whether it repeats."""
    for name, described in _MESSAGES.items():
        for field, number, kind in described:
            yield name, field, number, " " in kind
