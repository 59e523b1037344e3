"""TensorFlow Serving's `--batching_parameters_file`, read as this server's `Batching`."""

import logging
import os
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

from serving import text_protos
from serving.batching import Batching
from serving.errors import ServeError

logger = logging.getLogger(__name__)

# The fields of `BatchingParameters` in TensorFlow Serving's session_bundle_config.proto, which its
# Python package does not contain. Numbers of fields do not appear in text, so any will do. None
# stands for a nested message.
_FIELDS = {
    "max_batch_size": "Int64Value",
    "batch_timeout_micros": "Int64Value",
    "max_enqueued_batches": "Int64Value",
    "num_batch_threads": "Int64Value",
    "thread_pool_name": "StringValue",
    "allowed_batch_sizes": None,
    "pad_variable_length_inputs": None,
    "enable_large_batch_splitting": "BoolValue",
    "max_execution_batch_size": "Int64Value",
}
_LEAST = {
    "max_batch_size": 1,
    "batch_timeout_micros": 0,
    "max_enqueued_batches": 1,
    "num_batch_threads": 1,
}


def read_batching_file(path: str | os.PathLike[str], parallel: int = Batching.parallel) -> Batching:
    """Reads TensorFlow Serving's `--batching_parameters_file`.

    At most `max_enqueued_batches` full batches wait. Fields that the file does not set have the
    defaults of `Batching`. A warning names the fields that this server does not use: a model pads
    to its own buckets.

    Args:
        path: a text file with a `BatchingParameters`.
        parallel: how many batches run at the same time, where the file does not set it
            (`num_batch_threads`).

    Returns:
        A `Batching`.

    Raises:
        ServeError: it cannot be read or understood, or a number is too small; one sentence.
    """
    message = text_protos.read(path, _message(), "batching config")
    numbers: dict[str, int] = {}
    for descriptor, value in message.ListFields():
        if descriptor.name in _LEAST:
            numbers[descriptor.name] = value.value
        elif descriptor.name == "enable_large_batch_splitting" and not value.value:
            # As it is here: a request is never split.
            pass
        elif descriptor.name != "thread_pool_name":
            logger.warning(
                "%s of the batching config file %s is not used by this server.",
                descriptor.name,
                path,
            )
    for name, number in numbers.items():
        if number < _LEAST[name]:
            raise ServeError(
                f"{name} of the batching config file {path} must be {_LEAST[name]} or more; got "
                f"{number}."
            )
    size = numbers.get("max_batch_size", Batching.max_batch_size)
    queued = numbers.get("max_enqueued_batches")
    return Batching(
        max_batch_size=size,
        delay_seconds=numbers.get("batch_timeout_micros", Batching.delay_seconds * 1e6) / 1e6,
        max_queued=Batching.max_queued if queued is None else queued * size,
        parallel=numbers.get("num_batch_threads", parallel),
    )


def _message() -> Any:
    """Returns an empty `BatchingParameters`, a message that exists only at run time."""
    file = descriptor_pb2.FileDescriptorProto(
        name="batching_parameters.proto", package="tensorflow.serving", syntax="proto3"
    )
    file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
    fields = file.message_type.add(name="BatchingParameters").field
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, wrapper) in enumerate(_FIELDS.items(), 1):
        field = fields.add(name=name, number=number, label=kinds.LABEL_OPTIONAL)
        if wrapper:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".google.protobuf.{wrapper}"
        elif name == "allowed_batch_sizes":
            field.type, field.label = kinds.TYPE_INT64, kinds.LABEL_REPEATED
        else:
            field.type = kinds.TYPE_BOOL
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindMessageTypeByName("tensorflow.serving.BatchingParameters")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)()
    # protobuf before 4.22, which the types of today's no longer know.
    factory: Any = message_factory.MessageFactory(pool)
    return factory.GetPrototype(descriptor)()
