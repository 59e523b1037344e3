"""The REST paths: answers in rows and in columns, refusals, logs and metrics."""

import base64
import concurrent.futures
import http.client
import json
import logging
import shutil
import threading
import urllib.parse

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving import observing
from serving.model_config import ALL_VERSIONS, ModelConfig
from serving.servable import Servable
from serving.server import ModelServer, ServeError, ServerSettings
from tests.serving.support import DEADLINE


def call(server, method, path, body=None, headers=None):
    """Returns status, headers and body, as JSON if it is JSON."""
    connection = http.client.HTTPConnection(server.rest_address, timeout=30)
    try:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read().decode("utf-8")
        if response.headers.get_content_type() == "application/json":
            content = json.loads(content)
        return response.status, response.headers, content
    finally:
        connection.close()


@pytest.fixture
def predict(shared_server):
    def send(body, where="/v1/models/shouter"):
        status, _, content = call(shared_server, "POST", f"{where}:predict", body)
        assert status == 200, content
        return content

    return send


# Answers


def test_rows(predict):
    first, second = predict({"instances": ["hello %s you", "é"]})["predictions"]
    assert (
        first["text"] == "HELLO %s YOU"
        and first["copied_from"] == [-1, 1, -1]
        and first["score"] == -3.0
    )
    assert second == {
        "text": "é",
        "score": -1.0,
        "tokens": ["é", "", ""],
        "copied_from": [-1, -1, -1],
        "copy_probability": [0.0] * 3,
        "source_tokens": ["é", "", ""],
    }
    # The input may be named, and a text may come as bytes.
    by_name = predict({"instances": [{"source": {"b64": base64.b64encode("é".encode()).decode()}}]})
    assert by_name["predictions"][0]["text"] == "é"


def test_columns(predict):
    outputs = predict({"inputs": ["a %s", "b"]})["outputs"]
    assert outputs["text"] == ["A %s", "B"] and outputs["copied_from"] == [[-1, 1], [-1, -1]]
    assert predict({"inputs": {"source": ["a"]}})["outputs"]["text"] == ["A"]
    # An output that is the only one has no name.
    assert isinstance(predict({"inputs": ["a"], "signature_name": "count"})["outputs"][0], int)
    assert isinstance(
        predict({"instances": ["a"], "signature_name": "count"})["predictions"][0], int
    )


def test_other_signatures(predict):
    (best,) = predict({"signature_name": "n_best", "instances": ["a %s B"]})["predictions"]
    assert best["text"] == ["A %s B", "a %s b"]
    rows = [{"source": "a", "target": "x"}, {"source": "b", "target": "y z"}]
    assert predict({"signature_name": "score", "instances": rows})["predictions"] == [
        {"log_probability": -1.0, "token_count": 2},
        {"log_probability": -1.5, "token_count": 3},
    ]


def test_versions_and_labels_are_part_of_the_path(model_folder, saved_models):
    shutil.copytree(saved_models / "starred", model_folder / "2")
    configs = [ModelConfig("shouter", str(model_folder), ALL_VERSIONS, {"stable": 1})]
    with ModelServer(configs, ServerSettings(port=0, rest_port=0)) as server:
        for path, text in (
            ("", "A*"),
            ("/versions/1", "A"),
            ("/versions/2", "A*"),
            ("/labels/stable", "A"),
        ):
            where = f"/v1/models/shouter{path}"
            status, _, content = call(server, "POST", f"{where}:predict", {"instances": ["a"]})
            assert (status, content["predictions"][0]["text"]) == (200, text)
            status, _, content = call(server, "GET", where)
            assert status == 200 and content["model_version_status"][0]["state"] == "AVAILABLE"
            assert len(content["model_version_status"]) == (2 if not path else 1)
        assert call(server, "GET", "/v1/models/shouter/labels/canary")[0] == 400
        assert call(server, "GET", "/v1/models/shouter/versions/9")[0] == 404


def test_status_and_metadata(shared_server):
    expected = {
        "version": "7",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert call(shared_server, "GET", "/v1/models/shouter")[::2] == (
        200,
        {"model_version_status": [expected]},
    )
    status, _, content = call(shared_server, "GET", "/v1/models/shouter/versions/7/metadata")
    assert status == 200
    assert content["model_spec"] == {"name": "shouter", "signature_name": "", "version": "7"}
    signatures = content["metadata"]["signature_def"]["signature_def"]
    # Fields with their default values are there, too.
    target = signatures["score"]["inputs"]["target"]
    assert target["dtype"] == "DT_STRING" and target["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }


def test_while_models_are_loaded_their_state_is_known(model_folder, monkeypatch):
    original, loading, go_on = Servable.__init__, threading.Event(), threading.Event()

    def slow(self, *arguments):
        loading.set()
        assert go_on.wait(DEADLINE)
        original(self, *arguments)

    monkeypatch.setattr(Servable, "__init__", slow)
    server = ModelServer(
        {"shouter": model_folder, "second": model_folder}, ServerSettings(port=0, rest_port=0)
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        started = pool.submit(server.start)
        try:
            assert loading.wait(DEADLINE)
            for name, state in ("shouter", "LOADING"), ("second", "START"):
                status, _, content = call(server, "GET", f"/v1/models/{name}")
                assert status == 200 and content["model_version_status"][0]["state"] == state
            assert call(server, "GET", "/healthz")[0] == 503
            predict = ("POST", "/v1/models/shouter:predict", {"instances": ["a"]})
            status, _, content = call(server, *predict)
            assert status == 503 and "is loading its models" in content["error"]
        finally:
            go_on.set()
        started.result()
        assert call(server, "GET", "/healthz")[::2] == (200, "ok\n")
        assert call(server, *predict)[0] == 200
    server.stop(0)


# Refusals


@pytest.mark.parametrize(
    "body, sentence",
    [
        (b"{", "The body is not valid JSON."),
        (b"\xff\xfe", "The body is not valid JSON."),
        (b"[" * 20_000, "The body is not valid JSON."),
        ([], "must be one JSON object"),
        ({}, "either 'instances' or 'inputs'"),
        ({"instances": ["a"], "inputs": ["a"]}, "either 'instances' or 'inputs'"),
        ({"instances": []}, "at least one element"),
        ({"instances": "a"}, "must be a list"),
        ({"instances": ["a", {"source": "b"}]}, "must name the same inputs"),
        ({"instances": [{"source": "a"}, {"target": "b"}]}, "must name the same inputs"),
        ({"instances": [{"text": "a"}]}, "The input 'text' is not known"),
        ({"instances": [7]}, 'Input "source" must be of type string; got 7.'),
        ({"instances": [None]}, "got null"),
        ({"instances": [["a"]]}, "must be of rank 1; got rank 2"),
        ({"inputs": [["a", "b"], ["c"]]}, "uneven"),
        ({"instances": [{"b64": "!"}]}, "not base64"),
        ({"instances": [{"b64": "/w=="}]}, "not valid UTF-8"),
        ({"instances": ["\ud800"]}, "not valid UTF-8"),
        ({"instances": ["a"] * 17}, "16"),
        ({"instances": ["a" * 101]}, "at most 100"),
        ({"instances": ["  "]}, "is empty"),
        ({"instances": ["a " * 9]}, "more than 8 tokens"),
        ({"instances": ["a"], "signature_name": "sing"}, 'Serving signature key "sing" not found'),
        ({"instances": ["a"], "signature_name": ["x"]}, "must be a string value"),
        ({"inputs": {"text": ["a"]}}, "Missing named input: source"),
        (b"", "The body is not valid JSON."),
        (b'{"instances": [1e999]}', "The body is not valid JSON."),
        ({"instances": ["a"], "signature_name": "score"}, "Name the inputs"),
    ],
)
def test_a_body_that_does_not_fit_is_one_sentence(shared_server, predict, body, sentence):
    status, _, content = call(shared_server, "POST", "/v1/models/shouter:predict", body)
    assert status == 400 and list(content) == ["error"]
    assert sentence in content["error"] and "\n" not in content["error"]
    assert predict({"inputs": ["a"]})["outputs"]["text"] == ["A"]


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/shouter/versions/8:predict", 404),
        ("POST", "/v1/models/shouter/versions/x:predict", 400),
        ("POST", "/v1/models/shouter:classify", 501),
        ("GET", "/v1/models/shouter:predict", 400),
        ("POST", "/v1/models/shouter:PREDICT", 400),
        ("POST", "/v1/models/shouter:sing", 400),
        ("POST", "/v1/models/shouter", 400),
        ("POST", "/v1/models/shouter/metadata", 400),
        ("POST", "/v1/models/shouter/version/7:predict", 400),
        ("POST", "/v1/models/shouter/versions/7/labels/x:predict", 400),
        ("GET", "/v1/models", 400),
        ("GET", "/v1/models/", 400),
        ("GET", "/v1/models/metadata", 404),
        ("GET", "/v1/foo", 400),
        ("GET", "/v1/models/debug/shouter", 400),
        ("GET", "/v1/models/shouter/versions/18446744073709551615", 400),
        ("GET", "/v1/models/shouter/versions/" + "9" * 5000, 400),
        ("GET", "/v1/models/shouter/versions/8", 404),
        ("GET", "/v1/models/%2F%3a%zz%ff", 404),
        ("GET", "/v2/models/shouter", 404),
        ("GET", "/v1/models/other/metadata", 404),
        ("POST", "/", 404),
        ("DELETE", "/v1/models/shouter", 400),
    ],
)
def test_paths_that_are_not_there(shared_server, method, path, status):
    found, _, content = call(shared_server, method, path, {"instances": ["a"]})
    assert found == status and content["error"]


@pytest.mark.parametrize(
    "path", ["/V1/Models/shouter", "/v1/models/sh%6Futer?x=1", "/v1/models/shouter/Versions/7"]
)
def test_other_spellings_of_a_path(shared_server, path):
    assert call(shared_server, "GET", path)[0] == 200


def test_unknown_keys_are_ignored(predict):
    body = {"instances": ["a"], "more": 1, "signature_name": ""}
    assert predict(body)["predictions"][0]["text"] == "A"
    assert predict({"inputs": {"source": ["a"], "more": 1}})["outputs"]["text"] == ["A"]


def test_names_with_slashes_and_colons(tmp_path, saved_models):
    shutil.copytree(saved_models / "plain", tmp_path / "1")
    names = ["a/b", "a:b", "é ü", "50%"]
    with ModelServer(dict.fromkeys(names, tmp_path), ServerSettings(port=0, rest_port=0)) as server:
        for name in names:
            path = f"/v1/models/{urllib.parse.quote(name, safe='')}"
            assert call(server, "GET", path)[0] == 200
            status, _, content = call(server, "GET", f"{path}/metadata")
            assert (status, content["model_spec"]["name"]) == (200, name)
            status, _, content = call(server, "POST", f"{path}:predict", {"instances": ["x"]})
            assert (status, content["predictions"][0]["text"]) == (200, "X")


def test_a_body_beyond_all_limits_is_not_read(shared_server):
    status, _, content = call(
        shared_server, "POST", "/v1/models/shouter:predict", b'"' + b"a" * 40_000 + b'"'
    )
    assert status == 429 and "larger than the server takes" in content["error"]


def test_ports_that_cannot_be_used(shared_folder, shared_server):
    with pytest.raises(ServeError, match="REST port .* cannot be used"):
        ModelServer(shared_folder, ServerSettings(port=0, rest_port=shared_server.rest_port))
    with pytest.raises(ServeError, match="0 to 65535"):
        ModelServer(shared_folder, ServerSettings(port=0, rest_port=-1))


# What those see who run it


def test_requests_have_an_id_and_a_line_in_the_log(shared_server, caplog):
    caplog.set_level(logging.INFO, logger=observing.REQUESTS.name)
    headers = call(
        shared_server,
        "POST",
        "/v1/models/shouter:predict",
        {"instances": ["a", "b"]},
        {"x-request-id": "one-1"},
    )[1]
    assert headers["x-request-id"] == "one-1"
    made = call(shared_server, "GET", "/v1/models/other", headers={"x-request-id": "not one"})[1][
        "x-request-id"
    ]
    assert len(made) == 32
    with grpc.insecure_channel(shared_server.address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        message = predict_pb2.PredictRequest()
        message.inputs["source"].CopyFrom(tf.make_tensor_proto(["a"]))
        _, answered = stub.Predict.with_call(
            message, timeout=120, metadata=(("x-request-id", "two-2"),)
        )
        assert dict(answered.trailing_metadata())["x-request-id"] == "two-2"
    lines = [
        json.loads(record.getMessage())
        for record in caplog.records
        if record.name == observing.REQUESTS.name
    ]
    first, second, third = lines
    assert first["seconds"] >= 0 and first.pop("time") and first.pop("seconds") is not None
    assert first == {
        **{
            "id": "one-1",
            "protocol": "http",
            "method": "rest_predict",
            "model": "shouter",
            "version": 7,
        },
        **{"signature": "serving_default", "texts": 2, "code": "OK"},
    }
    assert (second["id"], second["code"]) == (made, "NOT_FOUND") and "model" not in second
    assert (third["id"], third["protocol"], third["method"], third["texts"]) == (
        "two-2",
        "grpc",
        "Predict",
        1,
    )


def test_prometheus_reads_the_numbers(shared_server):
    def read():
        status, headers, text = call(shared_server, "GET", "/monitoring/prometheus/metrics")
        assert status == 200 and headers.get_content_type() == "text/plain"
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    answered = (
        'verbatim_requests_total{code="OK",method="rest_predict",model="shouter",'
        'protocol="http",signature="serving_default"}'
    )
    refused = answered.replace('"OK"', '"INVALID_ARGUMENT"').replace('"serving_default"', '""')
    metrics = call(shared_server, "GET", "/metrics")
    assert metrics[0] == 200 and "verbatim_requests_total" in metrics[2]
    before = read()
    assert call(shared_server, "POST", "/v1/models/shouter:predict", {"instances": ["a"]})[0] == 200
    assert call(shared_server, "POST", "/v1/models/shouter:predict", {"instances": [1]})[0] == 400
    # What is not there makes no new series.
    assert call(shared_server, "POST", "/v1/models/made-up:predict", {"instances": ["a"]})[0] == 404
    after = read()
    assert (
        after[answered] == before.get(answered, 0) + 1
        and after[refused] == before.get(refused, 0) + 1
    )
    assert after['verbatim_model_version_available{model="shouter",version="7"}'] == 1
    assert not any("made-up" in name for name in after)


def test_reflection_names_the_services(shared_server):
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    with grpc.insecure_channel(shared_server.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        (listed,) = stub.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        names = {service.name for service in listed.list_services_response.service}
        assert {"tensorflow.serving.PredictionService", "grpc.health.v1.Health"} <= names
        asked = reflection_pb2.ServerReflectionRequest(
            file_containing_symbol="tensorflow.serving.PredictionService"
        )
        (found,) = stub.ServerReflectionInfo(iter([asked]))
        assert found.file_descriptor_response.file_descriptor_proto
