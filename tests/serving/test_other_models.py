"""Models that are not Verbatim's: open shapes, scalars, numbers of every kind.

The first is made like TensorFlow Serving's own example `half_plus_three`.
"""

import http.client
import json

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving.client import Client, TensorFacts
from serving.server import ModelServer, ServerSettings

tf1 = tf.compat.v1


def save(path, outputs_of, shape=None, dtype=tf.float32, open_shapes=True):
    """Writes a SavedModel of one input, `x`, of whose signature the shapes are left out."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(dtype, shape, name="x")
        outputs = {name: tf.convert_to_tensor(y) for name, y in outputs_of(x).items()}
        signature = tf1.saved_model.build_signature_def(
            {"x": tf1.saved_model.build_tensor_info(x)},
            {name: tf1.saved_model.build_tensor_info(y) for name, y in outputs.items()},
            "tensorflow/serving/predict",
        )
        if open_shapes:
            for info in (*signature.inputs.values(), *signature.outputs.values()):
                info.ClearField("tensor_shape")
        builder = tf1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save(folder / "half" / "123", lambda x: {"y": x * 0.5 + 3.0})
    save(folder / "vector" / "1", lambda x: {"y": x * 2.0}, [None])
    save(folder / "scalars" / "1", lambda x: {"total": tf.reduce_sum(x), "y": tf.size(x)})
    save(folder / "uneven" / "1", lambda x: {"a": x, "b": tf.concat([x, x], 0)})
    save(folder / "complex" / "1", lambda x: {"y": tf.complex(x, x)})
    for kind in (tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int64, tf.bool, tf.half):
        save(folder / kind.name / "1", lambda x: {"y": tf.identity(x)}, dtype=kind)
    models = {path.name: path for path in folder.iterdir()}
    with ModelServer(models, ServerSettings(port=0, rest_port=0)) as running:
        yield running


@pytest.fixture(scope="module")
def post(server):
    def ask(model, body):
        connection = http.client.HTTPConnection(server.rest_address, timeout=30)
        try:
            connection.request("POST", f"/v1/models/{model}:predict", json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    return ask


@pytest.fixture(scope="module")
def predict(server):
    with grpc.insecure_channel(server.address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def ask(model, x):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = model
            request.inputs["x"].CopyFrom(x)
            return stub.Predict(request, timeout=30)

        yield ask


def test_a_signature_without_shapes(post, predict, server):
    assert post("half", {"instances": [1.0, 2.0, 5.0]}) == (200, {"predictions": [3.5, 4.0, 5.5]})
    assert post("half", {"inputs": 1.0}) == (200, {"outputs": 3.5})
    assert post("half", {"instances": [[1], [0.4]]}) == (200, {"predictions": [[3.5], [3.2]]})
    assert post("half", {"inputs": []}) == (200, {"outputs": []})
    response = predict("half", tf.make_tensor_proto([1.0, 2.0]))
    assert tf.make_ndarray(response.outputs["y"]).tolist() == [3.5, 4.0]
    with Client(server.address, model="half") as client:
        signature = client.metadata().signatures["serving_default"]
    assert signature.inputs["x"] == TensorFacts("float32", None)


def test_what_the_graph_takes_counts_where_the_signature_is_open(post):
    assert post("vector", {"instances": [1, 2]}) == (200, {"predictions": [2.0, 4.0]})
    for body in ({"inputs": 1.0}, {"inputs": [[1.0]]}):
        status, content = post("vector", body)
        assert status == 400 and "must be of rank 1" in content["error"]


def test_outputs_that_are_no_rows(post):
    assert post("scalars", {"inputs": [1, 2]}) == (200, {"outputs": {"total": 3.0, "y": 2}})
    status, content = post("scalars", {"instances": [1, 2]})
    assert status == 400 and "no shape information" in content["error"]
    assert post("uneven", {"inputs": [1]}) == (200, {"outputs": {"a": [1.0], "b": [1.0, 1.0]}})
    status, content = post("uneven", {"instances": [1]})
    assert status == 400 and "inconsistent batch size: 2 expecting: 1" in content["error"]


def test_complex_numbers_go_by_grpc_alone(post, predict):
    response = predict("complex", tf.make_tensor_proto([1.0, 2.0]))
    assert response.outputs["y"].scomplex_val == [1.0, 1.0, 2.0, 2.0]
    assert tf.make_ndarray(response.outputs["y"]).tolist() == [1 + 1j, 2 + 2j]
    status, content = post("complex", {"inputs": [1.0]})
    assert status == 400 and "tensor type: complex64" in content["error"]


@pytest.mark.parametrize(
    "model, values",
    [
        ("uint8", [0, 255]),
        ("uint16", [0, 65535]),
        ("uint32", [0, 2**32 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("int64", [-(2**63), 2**63 - 1]),
        ("bool", [True, False]),
        ("float16", [0.1, -2.0]),
    ],
)
def test_values_of_every_kind(post, predict, model, values):
    assert post(model, {"instances": values}) == (200, {"predictions": values})
    array = np.array(values, tf.as_dtype(model).as_numpy_dtype)
    answer = predict(model, tf.make_tensor_proto(array)).outputs["y"]
    assert tf.make_ndarray(answer).tolist() == array.tolist()
    # What came back, in typed fields, can be sent as it is.
    assert predict(model, answer).outputs["y"] == answer
