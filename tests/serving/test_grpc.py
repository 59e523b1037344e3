"""The gRPC services: what they answer, and what they refuse."""

import gc

import grpc
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from serving.observing import REQUEST_ID
from serving.servable import Servable
from tests.serving.support import DEADLINE, request, wait_until


@pytest.fixture(scope="module")
def channel(shared_server):
    with grpc.insecure_channel(shared_server.address) as channel:
        yield channel


@pytest.fixture
def predict(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    return lambda message: stub.Predict(message, timeout=DEADLINE)


@pytest.fixture
def refused(predict):
    """Sends a request and returns the sentence that it is refused with."""

    def send(message, code=grpc.StatusCode.INVALID_ARGUMENT):
        with pytest.raises(grpc.RpcError) as caught:
            predict(message)
        assert caught.value.code() == code
        sentence = caught.value.details()
        assert "\n" not in sentence and "Traceback" not in sentence and len(sentence) <= 500
        # Whatever was sent, the server lives.
        assert predict(request()).outputs["text"].string_val == [b"A %s"]
        return sentence

    return send


# Answers


def test_predict(predict):
    response = predict(request(["hello %(name)s you", "é"]))
    assert response.model_spec.name == "shouter"
    assert response.model_spec.version.value == 7
    assert response.model_spec.signature_name == "serving_default"
    arrays = {name: tf.make_ndarray(tensor).tolist() for name, tensor in response.outputs.items()}
    assert set(arrays) == {
        "text",
        "score",
        "tokens",
        "copied_from",
        "copy_probability",
        "source_tokens",
    }
    assert arrays["text"] == [b"HELLO %(name)s YOU", "é".encode()]
    assert arrays["tokens"][1] == ["é".encode(), b"", b""]
    assert arrays["copied_from"][0] == [-1, 1, -1]
    # As TensorFlow Serving does, values lie in the typed fields, not in bytes that need decoding.
    assert list(response.outputs["score"].float_val) == [-3.0, -1.0]
    assert not response.outputs["copied_from"].tensor_content


def test_predict_by_version_and_by_the_empty_name(predict):
    assert predict(request(version=7)).model_spec.version.value == 7
    assert predict(request(model="")).model_spec.name == "shouter"


def test_n_best_and_score(predict):
    response = predict(request(["a %s B"], "n_best"))
    assert tf.make_ndarray(response.outputs["text"]).tolist() == [[b"A %s B", b"a %s b"]]
    message = request(["a", "b"], "score")
    message.inputs["target"].CopyFrom(tf.make_tensor_proto(["x", "y z"]))
    response = predict(message)
    assert list(response.outputs["log_probability"].float_val) == [-1.0, -1.5]
    assert list(response.outputs["token_count"].int_val) == [2, 3]


def test_output_filter(predict, refused):
    assert set(predict(request(output_filter=["text", "score"])).outputs) == {"text", "score"}
    assert 'Output "speed" of output_filter is not found' in refused(
        request(output_filter=["speed"])
    )


def test_metadata(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    message.model_spec.name = "shouter"
    response = stub.GetModelMetadata(message)
    assert (response.model_spec.name, response.model_spec.version.value) == ("shouter", 7)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert {"serving_default", "n_best", "score"} <= set(signatures.signature_def)
    assert signatures.signature_def["score"].inputs["target"].dtype == tf.string.as_datatype_enum
    for fields, expected in (
        ([], "at least one metadata_field"),
        (["size"], "size is not supported"),
    ):
        with pytest.raises(grpc.RpcError, match=expected) as caught:
            stub.GetModelMetadata(
                get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=fields)
            )
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    message.model_spec.version.value = 8
    with pytest.raises(grpc.RpcError) as caught:
        stub.GetModelMetadata(message)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_status(channel):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    message = get_model_status_pb2.GetModelStatusRequest()
    message.model_spec.name = "shouter"
    (status,) = stub.GetModelStatus(message).model_version_status
    assert (status.version, status.state) == (7, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
    assert status.status.error_code == 0
    message.model_spec.version.value = 8
    with pytest.raises(grpc.RpcError, match="Could not find version 8 of model shouter") as caught:
        stub.GetModelStatus(message)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", "shouter"):
        response = stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert response.status == health_pb2.HealthCheckResponse.SERVING


# Refusals


@pytest.mark.parametrize(
    "message, sentence",
    [
        (
            request(model="other"),
            "Servable not found for request: Latest(other); this server has shouter.",
        ),
        (request(version=8), "Servable not found for request: Specific(shouter, 8)."),
    ],
)
def test_not_found(refused, message, sentence):
    assert refused(message, grpc.StatusCode.NOT_FOUND) == sentence


def tensor_request(tensor, key="source"):
    message = request()
    message.inputs[key].CopyFrom(tensor)
    return message


def changed(**fields):
    tensor = tf.make_tensor_proto(["a"])
    for name, value in fields.items():
        setattr(tensor, name, value)
    return tensor_request(tensor)


def shaped(*sizes, unknown_rank=False):
    message = request(["a"])
    shape = message.inputs["source"].tensor_shape
    shape.Clear()
    shape.unknown_rank = unknown_rank
    for size in sizes:
        shape.dim.add(size=size)
    return message


def no_inputs():
    message = request()
    message.inputs.clear()
    return message


def two_sizes():
    message = request(["a", "b"], "score")
    message.inputs["target"].CopyFrom(tf.make_tensor_proto(["x"]))
    return message


@pytest.mark.parametrize(
    "message, sentence",
    [
        (
            request(signature="sing"),
            'Serving signature key "sing" not found; this model has "count", "explain",',
        ),
        (request(signature="s" * 9000), 'Serving signature key "sssss'),
        (
            no_inputs(),
            'do not match signature "serving_default" (missing source); it takes source.',
        ),
        (request(key="text"), "(missing source; not known text)"),
        (tensor_request(tf.make_tensor_proto(["a"]), "extra"), "(not known extra)"),
        (
            tensor_request(tf.make_tensor_proto([1.5])),
            'Input "source" must be of type string; got float32.',
        ),
        (changed(dtype=0), "must be of type string; got"),
        (changed(dtype=4444), "must be of type string; got type 4444."),
        (
            tensor_request(tf.make_tensor_proto("a")),
            'Input "source" must be of rank 1; got rank 0.',
        ),
        (
            tensor_request(tf.make_tensor_proto([["a"]])),
            'Input "source" must be of rank 1; got rank 2.',
        ),
        (shaped(unknown_rank=True), "its shape is not fully known"),
        (shaped(-1), "its shape is not fully known"),
        (shaped(3), "its shape needs 3 values, it holds 1"),
        (shaped(2**62), "one request may hold 16 at most"),
        (changed(tensor_content=b"\x09"), None),
        (request([]), 'Input "source" holds no text'),
        (request(["a"] * 17), 'Input "source" holds 17 texts; one request may hold 16 at most.'),
        (request(["a", "b" * 101]), "source[1] is 101 bytes long; a text may have at most 100."),
        (request(["a", b"\xff\xfe"]), "source[1] is not valid UTF-8."),
        (request([""]), "source[0] is empty"),
        (request(["a", " \t\u3000"]), "source[1] is empty"),
        (two_sizes(), "The inputs must hold the same number of texts; got source 2, target 1."),
        (
            request(["a " * 9]),
            'A text has more than 8 tokens; the model\'s limit is "8" – shorten it [now].',
        ),
    ],
)
def test_invalid_argument(refused, predict, message, sentence):
    if sentence is None:  # bytes that nobody reads do no harm
        assert predict(message).outputs["text"].string_val == [b"A"]
    else:
        assert sentence in refused(message)


def test_version_label(refused):
    message = request()
    message.model_spec.version_label = "stable"
    assert refused(message) == "Unrecognized servable version label: stable."


UNREADABLE = [b"\xff\xff\xff\xff", request().SerializeToString()[:-3]]


@pytest.mark.parametrize("message", UNREADABLE, ids=["of no type", "cut off"])
@pytest.mark.parametrize(
    "method",
    [
        "tensorflow.serving.PredictionService/Predict",
        "tensorflow.serving.ModelService/GetModelStatus",
        "grpc.health.v1.Health/Check",
    ],
)
def test_bytes_that_are_no_message(channel, predict, method, message):
    with pytest.raises(grpc.RpcError) as error:
        channel.unary_unary(f"/{method}")(
            message, timeout=DEADLINE, metadata=((REQUEST_ID, "mine"),)
        )
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "not a message of this method" in error.value.details()
    assert (REQUEST_ID, "mine") in {tuple(pair) for pair in error.value.trailing_metadata()}
    assert predict(request()).outputs


def test_bytes_that_are_no_message_in_a_stream(channel):
    call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError) as error:
        list(call(iter([b"", UNREADABLE[0]]), timeout=DEADLINE))
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_requests_that_cannot_be_read_are_not_kept(channel, predict):
    """gRPC's own server keeps its state of each for ever: objects of the one class with a name."""

    def kept():
        gc.collect()
        return sum(type(thing).__name__ == "_RPCState" for thing in gc.get_objects())

    predict(request())
    before = kept()
    for message in UNREADABLE * 10:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(
                message, timeout=DEADLINE
            )
    wait_until(lambda: kept() <= before + 2)


def test_a_failure_of_the_server_is_logged_and_not_shown(refused, monkeypatch, caplog):
    original = Servable.predict

    def fail(self, message, limits, given_up):
        if message.model_spec.signature_name == "fail":
            raise RuntimeError("secret")
        return original(self, message, limits, given_up)

    monkeypatch.setattr(Servable, "predict", fail)
    sentence = refused(request(signature="fail"), grpc.StatusCode.INTERNAL)
    assert "secret" not in sentence and "log" in sentence
    assert "secret" in caplog.text


def test_other_methods_are_not_offered(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    with pytest.raises(grpc.RpcError, match="use Predict") as caught:
        stub.Classify(classification_pb2.ClassificationRequest())
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
