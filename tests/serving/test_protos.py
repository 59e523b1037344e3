"""The client's own messages, against the files of TensorFlow and TensorFlow Serving."""

import importlib

import pytest
from google.protobuf import descriptor_pool, json_format
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2  # noqa: F401  (known to the default pool)
from tensorflow_serving.apis import (
    get_model_metadata_pb2,  # noqa: F401
    get_model_status_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving import protos


@pytest.mark.parametrize("message, field, number, repeats", list(protos.fields()))
def test_each_field_is_that_of_the_files(message, field, number, repeats):
    ours = protos.message(message).DESCRIPTOR.fields_by_name[field]
    theirs = descriptor_pool.Default().FindMessageTypeByName(message).fields_by_name[field]
    assert (ours.number, ours.label) == (theirs.number, theirs.label)
    assert (number, repeats) == (theirs.number, theirs.label == theirs.LABEL_REPEATED)
    # The same on the wire.
    assert ours.type == (ours.TYPE_INT32 if theirs.type == theirs.TYPE_ENUM else theirs.type)
    if theirs.message_type is not None:
        assert ours.message_type.full_name == theirs.message_type.full_name


def test_names_of_numbers():
    assert protos.STATES == {
        number: name for name, number in get_model_status_pb2.ModelVersionStatus.State.items()
    }
    others = {"FLOAT": "float32", "DOUBLE": "float64"}
    for name, number in types_pb2.DataType.items():
        name = name.removeprefix("DT_")
        if not name.endswith("_REF"):
            assert protos.DATA_TYPES[number] == others.get(name, name.lower())


def test_methods_are_those_of_the_services():
    class Channel:
        """Notes what a stub makes."""

        def __init__(self):
            self.paths = set()

        def unary_unary(self, path, **options):
            self.paths.add(path)

    channel = Channel()
    prediction_service_pb2_grpc.PredictionServiceStub(channel)
    models = importlib.import_module("tensorflow_serving.apis.model_service_pb2_grpc")
    models.ModelServiceStub(channel)
    assert {protos.method_path(name) for name in protos.METHODS} <= channel.paths


def test_messages_of_both_kinds_read_each_other():
    ours = protos.message("PredictRequest")()
    ours.model_spec.version.value = 2**63 - 1
    ours.inputs["é"].string_val.append(b"\xff")
    ours.inputs["é"].tensor_shape.dim.add(size=-1, name="x")
    theirs = predict_pb2.PredictRequest.FromString(ours.SerializeToString())
    assert json_format.MessageToDict(theirs) == json_format.MessageToDict(ours)
    # What ours lack does not disturb them.
    theirs.inputs["é"].half_val.append(7)
    again = protos.message("PredictRequest").FromString(theirs.SerializeToString())
    assert again.inputs["é"].string_val == [b"\xff"]
