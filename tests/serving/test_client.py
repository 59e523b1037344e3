"""The client: answers as plain values, failures as one sentence, and no TensorFlow at import time."""

import concurrent.futures
import pathlib
import socket
import subprocess
import sys
import threading

import grpc
import pytest
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

import serving.client
from serving.client import (
    Answer,
    Client,
    RequestError,
    Score,
    TensorFacts,
    Token,
    VersionStatus,
    format_answer,
)


@pytest.fixture(scope="module")
def client(shared_server):
    with Client(shared_server.address) as client:
        yield client


def test_predict(client):
    first, second = client.predict(["hello %(name)s you", "x"])
    assert first.text == "HELLO %(name)s YOU"
    assert first.score == -3.0
    assert first.tokens == (
        Token("HELLO"),
        Token("%(name)s", 1, "%(name)s", pytest.approx(0.984)),
        Token("YOU"),
    )
    assert second == Answer("X", -1.0, (Token("X"),))  # no padding


def test_predict_takes_one_text_or_any_sequence(client):
    assert [answer.text for answer in client.predict("one")] == ["ONE"]
    assert [answer.text for answer in client.predict(("one", "%s"))] == ["ONE", "%s"]
    assert client.predict([]) == client.n_best([]) == client.score([], []) == []


def test_n_best(client):
    lists = client.n_best(["Ab %s c", "d"])
    assert [[answer.text for answer in answers] for answers in lists] == [["AB %s C", "ab %s c"], ["D", "d"]]
    assert lists[0][1].tokens[1] == Token("%s", 1, "%s", pytest.approx(0.984))
    assert len(lists[1][0].tokens) == 1


def test_score(client):
    assert client.score(["a", "b"], ["x", "y z"]) == [Score(-1.0, 2), Score(-1.5, 3)]
    assert client.score("a", "x") == [Score(-1.0, 2)]
    with pytest.raises(RequestError, match="got 2 sources and 1 targets"):
        client.score(["a", "b"], ["x"])


def test_metadata_and_status(client):
    metadata = client.metadata()
    assert (metadata.name, metadata.version) == ("shouter", 7)
    assert metadata.signatures["score"].inputs["target"] == TensorFacts("string", (-1,))
    assert metadata.signatures["n_best"].outputs["score"] == TensorFacts("float32", (-1, 2))
    assert client.status() == [VersionStatus(7, "AVAILABLE")]


def test_model_and_version_by_name(shared_server):
    with Client(shared_server.address, model="shouter", version=7) as client:
        assert client.predict("a")[0].text == "A"
    with Client(shared_server.address, model="other") as client:
        for call in (lambda: client.predict("a"), client.status, client.metadata):
            with pytest.raises(RequestError, match="this server has shouter") as caught:
                call()
            assert caught.value.code == grpc.StatusCode.NOT_FOUND


def test_refusals_are_the_servers_sentence(client):
    with pytest.raises(RequestError) as caught:
        client.predict(["fine", " "])
    assert str(caught.value) == "source[1] is empty; send a text that is not only white space."
    assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(RequestError, match="half a surrogate pair"):
        client.predict("\ud800")
    with pytest.raises(RequestError, match='signature key "sing" not found'):
        client.predict("a", signature="sing")


def test_answers_of_another_kind_of_model(client):
    with pytest.raises(RequestError, match='does not answer as a Verbatim model does: see its output "text"'):
        client.predict("a", signature="n_best")  # there are no lists in a plain answer
    with pytest.raises(RequestError, match='of output_filter is not found in signature "count"; it gives calls'):
        client.predict("a", signature="count")


def test_no_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with Client(address) as client, pytest.raises(RequestError) as caught:
            client.predict("a")
    assert caught.value.code == grpc.StatusCode.UNAVAILABLE
    assert str(caught.value) == f"No server answers at {address}; start one with 'verbatim serve' or check the address."


class _Odd(prediction_service_pb2_grpc.PredictionServiceServicer):
    """A server that does what its input says: sleeps on, runs out of memory, or answers in packed bytes."""

    def Predict(self, request, context):
        text = request.inputs["source"].string_val[0]
        if text == b"sleep":
            gone = threading.Event()
            if context.add_callback(gone.set):
                gone.wait()
        if text == b"memory":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
        if text == b"method":
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        import tensorflow as tf

        response = predict_pb2.PredictResponse()
        values = {"text": ["x"], "score": [1.5], "tokens": [["x", "y", ""]], "source_tokens": [["x", "s", "t"]]}
        values |= {"copied_from": [[2, 9, -1]], "copy_probability": [[0.5, 0.25, 0.0]]}
        for name, value in values.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return response


@pytest.fixture(scope="module")
def odd_server():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Odd(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0).wait()


def test_packed_tensors_and_positions_out_of_range(odd_server):
    with Client(odd_server, model="any") as client:
        (answer,) = client.predict("pack")
    assert answer.score == 1.5
    assert answer.tokens == (Token("x", 2, "t", 0.5), Token("y", copy_probability=0.25))


@pytest.mark.parametrize(
    "text, code, sentence",
    [
        ("sleep", grpc.StatusCode.DEADLINE_EXCEEDED, "did not answer within 0.2 seconds"),
        ("memory", grpc.StatusCode.RESOURCE_EXHAUSTED, "answered RESOURCE_EXHAUSTED: too large"),
        ("method", grpc.StatusCode.UNIMPLEMENTED, "does not offer this request"),
    ],
)
def test_other_failures(odd_server, text, code, sentence):
    with Client(odd_server, timeout=0.2 if text == "sleep" else 20) as client:
        with pytest.raises(RequestError, match=sentence) as caught:
            client.predict(text)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_format_answer():
    copied = Token("%(name)s", 3, "%(name)s", 0.984)
    answer = Answer("Bonjour, %(name)s", -0.1, (Token("Bonjour"), Token("￭,"), copied))
    assert format_answer(answer) == (
        "Bonjour, %(name)s\n  %(name)s  <- source token 3 '%(name)s' (copy probability 0.98)"
    )
    assert format_answer(Answer("Oui", -0.1, (Token("Oui"),))) == "Oui"


def run_python(program):
    root = pathlib.Path(serving.client.__file__).parent.parent
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)


def test_a_client_imports_no_tensorflow(shared_server):
    done = run_python(
        f"""
import sys
from serving.client import Client
with Client({shared_server.address!r}) as client:
    assert client.predict("a")[0].text == "A"
    assert client.status() and client.metadata()
heavy = [name for name in ("tensorflow", "tensorflow.python", "keras", "tfx") if name in sys.modules]
assert not heavy, heavy
print("good")
"""
    )
    assert done.stdout == "good\n", done.stderr


def test_without_the_package_of_messages_the_sentence_says_so():
    done = run_python(
        """
import importlib.util
from serving import protos
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "tensorflow" else find(name, *rest)
try:
    protos.load()
except ImportError as error:
    print(error)
"""
    )
    assert done.stdout == "The package 'tensorflow' is not installed; it holds the messages of TF Serving.\n", (
        done.stderr
    )
