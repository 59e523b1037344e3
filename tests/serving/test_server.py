"""The embedded server: what it answers, what it refuses, and how versions come and go."""

import concurrent.futures
import gc
import logging
import os
import shutil
import signal
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request

import grpc
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

from serving.client import Client
from serving.observing import REQUEST_ID
from serving.servable import Servable, human_sentence
from serving.server import ModelServer, ServeError, serve
from serving.versions import ModelVersions

DEADLINE = 8  # seconds after which a wait counts as failed; no test measures time


def wait_until(condition):
    """Waits, within the deadline, until the condition holds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def states(server):
    (model,) = server.models.values()
    return {state.version: state.state for state in model.states()}


def request(texts=("a %s",), signature="", model="shouter", version=None, key="source", **filters):
    result = predict_pb2.PredictRequest(**filters)
    result.model_spec.name = model
    result.model_spec.signature_name = signature
    if version is not None:
        result.model_spec.version.value = version
    result.inputs[key].CopyFrom(tf.make_tensor_proto(list(texts), tf.string, [len(texts)]))
    return result


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
            'Serving signature key "sing" not found; this model has "count", "n_best",',
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
        (request(["a", "b" * 101]), "source[1] is 101 bytes long; a text may be 100 at most."),
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
    assert "no message of this method" in error.value.details()
    assert (REQUEST_ID, "mine") in {tuple(pair) for pair in error.value.trailing_metadata()}
    assert predict(request()).outputs


def test_bytes_that_are_no_message_in_a_stream(channel):
    call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError) as error:
        list(call(iter([b"", UNREADABLE[0]]), timeout=DEADLINE))
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_requests_that_cannot_be_read_are_not_kept(channel, predict):
    """gRPC's own server keeps its state of each for ever;
    seen by the one class of it that has a name.
    """

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


@pytest.mark.parametrize(
    "message, sentence",
    [
        (
            "Graph execution error:\n\nDetected at node Assert defined at (most recent call "
            "last):\n"
            '<stack traces unavailable>\nassertion failed: [Too \\"long\\" a\\nline] [Condition x '
            "< y] [x = ] [14]\n"
            "\t [[{{node Assert}}]] [Op:__inference_f_1]",
            'Too "long" a line',
        ),
        (
            "Graph execution error:\n\nDetected at node 'S' defined at (most recent call last):\n"
            "    File \"a.py\", line 3, in <module>\n      x = secret()\nNode: 'S'\n"
            "2 root error(s) found.\n  (0) INVALID_ARGUMENT:  Bad number: ab\n\t [[{{node S}}]]\n"
            "  (1) INVALID_ARGUMENT:  Bad number: ab\n0 successful operations.\n0 derived errors "
            "ignored. [Op:__f_1]",
            "Bad number: ab",
        ),
        (
            "{{function_node __wrapped__A}} Bad shape [2] vs. [3] [Op:Add] name: ",
            "Bad shape [2] vs. [3]",
        ),
        ("", "The model refused the input."),
    ],
)
def test_human_sentence(message, sentence):
    assert human_sentence(message) == sentence


# Several models


def test_several_models(tmp_path, saved_models):
    for name, kind in ("one", "plain"), ("two", "starred"):
        shutil.copytree(saved_models / kind, tmp_path / name / "1")
    with ModelServer({"one": tmp_path / "one", "zwei": tmp_path / "two"}, port=0) as server:
        with grpc.insecure_channel(server.address) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            assert stub.Predict(request(model="one")).outputs["text"].string_val == [b"A %s"]
            assert stub.Predict(request(model="zwei")).outputs["text"].string_val == [b"A %s*"]
            with pytest.raises(
                grpc.RpcError, match="no name specified; this server has one, zwei"
            ) as caught:
                stub.Predict(request(model=""))
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# Versions


def test_hot_swap_drops_no_request(model_folder, saved_models):
    with (
        ModelServer(model_folder, port=0, poll_seconds=0.05) as server,
        Client(server.address) as client,
    ):
        done = threading.Semaphore(0)

        def ask(number):
            (answer,) = client.predict([f"text {number} %s"])
            done.release()
            return answer.text

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = []
            for number in range(200):
                answers.append(pool.submit(ask, number))
                if number == 40:
                    done.acquire(timeout=DEADLINE)
                    shutil.copytree(saved_models / "starred", model_folder / "2")
                if number == 120:
                    wait_until(lambda: states(server).get(2) == "AVAILABLE")
            texts = [answer.result() for answer in answers]
        assert all(text.rstrip("*") == f"TEXT {number} %s" for number, text in enumerate(texts))
        assert not texts[0].endswith("*") and texts[-1].endswith("*")
        wait_until(lambda: states(server) == {1: "END", 2: "AVAILABLE"})
        with pytest.raises(Exception, match=r"Specific\(shouter, 1\)"):
            Client(server.address, version=1).predict("a")


def test_a_retired_version_ends_after_its_last_request(model_folder, saved_models):
    with ModelServer(model_folder, port=0, poll_seconds=0.05) as server:
        model = server.models["shouter"]
        with model.use() as first, model.use(1) as same:
            assert first is same
            shutil.copytree(saved_models / "starred", model_folder / "2")
            wait_until(lambda: model.version == 2)
            assert states(server) == {1: "UNLOADING", 2: "AVAILABLE"}
            assert first.predict(request(), None).outputs["text"].string_val == [b"A %s"]
        assert states(server) == {1: "END", 2: "AVAILABLE"}


def test_versions_are_compared_as_numbers_and_other_folders_ignored(model_folder, saved_models):
    shutil.copytree(saved_models / "plain", model_folder / "10")
    for name in ("9", "tmp-11", "99999999999999999999"):
        (model_folder / name).mkdir()
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    assert model.version == 10


def test_a_version_is_taken_up_only_when_it_is_complete(model_folder, saved_models):
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    new = model_folder / "2"
    shutil.copytree(saved_models / "starred", new)
    os.rename(new / "saved_model.pb", new / "later")
    for _ in range(3):  # no saved_model.pb: not a version yet
        model.poll()
    assert [state.version for state in model.states()] == [1]
    os.rename(new / "later", new / "saved_model.pb")
    model.poll()  # seen for the first time: perhaps still being written
    (new / "variables" / "more").write_text("x")
    model.poll()  # it was
    assert model.version == 1
    model.poll()
    assert model.version == 2


def test_a_corrupt_version_is_skipped_until_it_changes(model_folder, saved_models, caplog):
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    new = model_folder / "2"
    new.mkdir()
    (new / "saved_model.pb").write_bytes(b"no protocol buffer at all")
    for _ in range(4):
        model.poll()
    assert model.version == 1
    assert {state.version: state.state for state in model.states()} == {1: "AVAILABLE", 2: "END"}
    assert model.states()[0].error
    assert caplog.text.count("version 2 cannot be loaded and is skipped") == 1
    # The variables arrive after saved_model.pb when a folder is copied in alphabetical order.
    shutil.copy(saved_models / "starred" / "saved_model.pb", new)
    for _ in range(4):
        model.poll()
    assert model.version == 1
    shutil.copytree(saved_models / "starred", new, dirs_exist_ok=True)
    for _ in range(2):
        model.poll()
    assert model.version == 2
    assert not model.states()[0].error


def test_a_deleted_version_gives_way_to_the_one_before(model_folder, saved_models):
    shutil.copytree(saved_models / "starred", model_folder / "2")
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    with model.use():  # in use while its number goes and comes back
        shutil.move(model_folder / "2", model_folder / "away")
        for _ in range(2):
            model.poll()
        assert model.version == 1
        shutil.move(model_folder / "away", model_folder / "2")
        for _ in range(2):
            model.poll()
        assert model.version == 2
    assert {state.version: state.state for state in model.states()} == {1: "END", 2: "AVAILABLE"}
    shutil.rmtree(model_folder)
    for _ in range(2):
        model.poll()
    with model.use() as servable:
        assert servable.predict(request(), None).outputs["text"].string_val == [b"A %s*"]


def test_the_first_load_falls_back_to_an_older_version(model_folder):
    (model_folder / "2").mkdir()
    (model_folder / "2" / "saved_model.pb").write_bytes(b"junk")
    with ModelServer(model_folder, port=0) as server:
        assert states(server) == {1: "AVAILABLE", 2: "END"}


def test_one_version_folder_is_served_alone(model_folder, saved_models):
    shutil.copytree(saved_models / "starred", model_folder / "2")
    with ModelServer(model_folder / "1", port=0, poll_seconds=0.01) as server:
        model = server.models["shouter"]
        model.poll()
        assert states(server) == {1: "AVAILABLE"}


def write_warmup(version_folder, *messages):
    (version_folder / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(
        str(version_folder / "assets.extra" / "tf_serving_warmup_requests")
    ) as writer:
        for message in messages:
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=message)
            )
            writer.write(log.SerializeToString())
        # Kinds of requests that this server does not offer are passed over.
        writer.write(
            prediction_log_pb2.PredictionLog(
                classify_log=prediction_log_pb2.ClassifyLog()
            ).SerializeToString()
        )


def test_warmup_runs_before_the_first_request(model_folder):
    # The warm-up covers every bucket of the model: the limits of this server are not for it.
    write_warmup(
        model_folder / "1", request(["a"] * 9, "count", model="any"), request(signature="count")
    )
    with (
        ModelServer(model_folder, port=0, max_batch_size=4) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        assert list(stub.Predict(request(["a"], "count")).outputs["calls"].int_val) == [3]


def test_a_version_whose_warmup_fails_is_not_served(model_folder, saved_models):
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    shutil.copytree(saved_models / "starred", model_folder / "2")
    write_warmup(model_folder / "2", request(["a " * 9]))
    for _ in range(2):
        model.poll()
    assert model.version == 1
    assert "more than 8 tokens" in model.states()[0].error


def test_polling_survives_its_own_failure(model_folder, saved_models, monkeypatch, caplog):
    original, calls = ModelVersions.poll, []

    def poll(self):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("disk gone")
        original(self)

    monkeypatch.setattr(ModelVersions, "poll", poll)
    with ModelServer(model_folder, port=0, poll_seconds=0.01) as server:
        shutil.copytree(saved_models / "starred", model_folder / "2")
        wait_until(lambda: states(server).get(2) == "AVAILABLE")
    assert "disk gone" in caplog.text


# What cannot be served


def test_model_folders_that_cannot_be_served(tmp_path, saved_models):
    with pytest.raises(ServeError, match="nowhere does not exist"):
        ModelServer(tmp_path / "nowhere", port=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ServeError, match="empty has no version"):
        ModelServer(tmp_path / "empty", port=0)
    (tmp_path / "hollow" / "3").mkdir(parents=True)
    with pytest.raises(
        ServeError, match="hollow has no SavedModel: there is no saved_model.pb in 3"
    ):
        ModelServer(tmp_path / "hollow", port=0)
    with pytest.raises(
        ServeError, match="plain holds a SavedModel but is not named by a version number"
    ):
        ModelServer(saved_models / "plain", port=0)
    with pytest.raises(ServeError, match="no model"):
        ModelServer({}, port=0)
    (tmp_path / "hollow" / "3" / "saved_model.pb").write_bytes(b"junk")
    with pytest.raises(ServeError, match="No version in .*hollow can be loaded .version 3: "):
        with ModelServer(tmp_path / "hollow", port=0):
            pass


def test_ports_and_hosts_that_cannot_be_used(model_folder, shared_server):
    with pytest.raises(ServeError) as caught:
        ModelServer(model_folder, port=shared_server.port)
    assert (
        str(caught.value)
        == f"Port {shared_server.port} is already in use; choose another with --port."
    )
    with socket.socket() as other:  # a program that is no gRPC server
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ServeError, match="already in use"):
            ModelServer(model_folder, port=other.getsockname()[1])
    with pytest.raises(ServeError, match="The host no.such.host.invalid is not known"):
        ModelServer(model_folder, port=0, host="no.such.host.invalid")
    with pytest.raises(ServeError, match="192.0.2.1"):
        ModelServer(model_folder, port=0, host="192.0.2.1")
    with pytest.raises(ServeError, match="from 0 to 65535; got 70000"):
        ModelServer(model_folder, port=70000)


def test_a_port_is_free_again_after_the_server_ended(model_folder):
    with ModelServer(model_folder, port=0) as server:
        port = server.port
    with ModelServer(model_folder, port=port) as server:
        assert server.address == f"127.0.0.1:{port}"


# TLS


def test_tls(model_folder, certificate):
    files = {"tls_key": certificate / "key.pem", "tls_certificate": certificate / "cert.pem"}
    with ModelServer(model_folder, port=0, **files) as server:
        credentials = grpc.ssl_channel_credentials((certificate / "cert.pem").read_bytes())
        with Client(f"localhost:{server.port}", credentials=credentials) as client:
            assert client.predict("a")[0].text == "A"
        with Client(server.address) as client, pytest.raises(Exception, match="No server answers"):
            client.predict("a")


def test_clients_that_must_show_a_certificate(model_folder, certificate):
    key, own = certificate / "key.pem", certificate / "cert.pem"
    files = {"tls_key": key, "tls_certificate": own, "tls_client_ca": own, "rest_port": 0}
    with ModelServer(model_folder, port=0, **files) as server:
        address = f"localhost:{server.port}"
        shown = grpc.ssl_channel_credentials(own.read_bytes(), key.read_bytes(), own.read_bytes())
        with Client(address, credentials=shown) as client:
            assert client.predict("a")[0].text == "A"
        unknown = grpc.ssl_channel_credentials(own.read_bytes())
        with (
            Client(address, credentials=unknown) as client,
            pytest.raises(Exception, match="No server answers"),
        ):
            client.predict("a")
        # The same for REST.
        url = f"https://localhost:{server.rest_port}/v1/models/shouter"
        context = ssl.create_default_context(cafile=own)
        with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
            urllib.request.urlopen(url, context=context, timeout=DEADLINE)
        context.load_cert_chain(own, key)
        with urllib.request.urlopen(url, context=context, timeout=DEADLINE) as response:
            assert response.status == 200


def test_tls_files_that_cannot_be_used(model_folder, certificate, tmp_path):
    key, good = certificate / "key.pem", certificate / "cert.pem"
    with pytest.raises(ServeError, match="both a key and a certificate"):
        ModelServer(model_folder, port=0, tls_key=key)
    with pytest.raises(ServeError, match="nothing.pem cannot be read: No such file"):
        ModelServer(model_folder, port=0, tls_key=key, tls_certificate=tmp_path / "nothing.pem")
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(ServeError, match="text.pem is not in PEM format"):
        ModelServer(model_folder, port=0, tls_key=key, tls_certificate=tmp_path / "text.pem")
    with pytest.raises(ServeError, match="must be PEM files that belong together"):
        ModelServer(model_folder, port=0, tls_key=good, tls_certificate=good)


# The blocking call


def read_ready_line(capfd):
    lines = []
    wait_until(lambda: lines.append(capfd.readouterr().out) or "".join(lines).endswith("\n"))
    return "".join(lines)


def test_serve_says_where_the_paths_and_the_page_are(model_folder, capfd):
    event = threading.Event()
    options = {"port": 0, "rest_port": 0, "stop_event": event}
    thread = threading.Thread(target=serve, args=(model_folder,), kwargs=options)
    thread.start()
    lines = []
    try:
        wait_until(lambda: lines.append(capfd.readouterr().out) or "".join(lines).count("\n") == 3)
        _, paths, page = "".join(lines).splitlines()
        url = page.partition("Web page at ")[2]
        assert paths == f"REST at {url}v1/models"
        with urllib.request.urlopen(url, timeout=DEADLINE) as response:
            assert b"<title>Verbatim</title>" in response.read()
    finally:
        event.set()
        thread.join(DEADLINE)


def test_serve_prints_one_line_and_ends_at_the_event(model_folder, capfd):
    event = threading.Event()
    thread = threading.Thread(
        target=serve, args=(model_folder,), kwargs={"port": 0, "stop_event": event}
    )
    thread.start()
    try:
        line = read_ready_line(capfd)
        assert line.startswith("Serving shouter version 1 at 127.0.0.1:") and line.endswith(
            " (gRPC)\n"
        )
        with Client(line.split(" at ")[1].split()[0]) as client:
            assert client.predict("a")[0].text == "A"
    finally:
        event.set()
        thread.join(DEADLINE)
    assert not thread.is_alive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_lets_running_requests_end_at_a_signal(model_folder, capfd, monkeypatch, number):
    before = signal.getsignal(number)
    original, running, stopping = Servable.predict, threading.Event(), threading.Event()
    original_stop = ModelServer.stop

    def slow(self, message, limits, given_up):
        running.set()
        assert stopping.wait(DEADLINE)
        return original(self, message, limits, given_up)

    def stop(self, grace_seconds):
        stopping.set()
        original_stop(self, grace_seconds)

    monkeypatch.setattr(Servable, "predict", slow)
    monkeypatch.setattr(ModelServer, "stop", stop)
    event = threading.Event()

    def ask():
        try:
            with Client(read_ready_line(capfd).split(" at ")[1].split()[0]) as client, pool:
                answer = pool.submit(client.predict, "a")
                assert running.wait(DEADLINE) and signal.getsignal(number) is not before
                os.kill(os.getpid(), number)
                return answer.result()
        finally:
            stopping.wait(DEADLINE)
            event.set()  # the server ends, even if the signal did not end it

    pool = concurrent.futures.ThreadPoolExecutor()
    with concurrent.futures.ThreadPoolExecutor() as outer:
        answer = outer.submit(ask)
        serve(model_folder, 0, stop_event=event)
        assert answer.result()[0].text == "A"
    assert signal.getsignal(number) is before


def test_health(shared_server):
    with grpc.insecure_channel(shared_server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", "shouter"):
            response = stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert response.status == health_pb2.HealthCheckResponse.SERVING


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.INFO, logger="serving")
