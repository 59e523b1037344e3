"""The embedded server: several models, folders and ports that do not fit, the blocking call."""

import concurrent.futures
import logging
import os
import queue
import shutil
import signal
import socket
import threading
import urllib.request

import grpc
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc

from serving.client import Client
from serving.servable import Servable
from serving.server import ModelServer, ServeError, ServerSettings, serve
from tests.serving.support import DEADLINE, request


def test_several_models(tmp_path, saved_models):
    for name, kind in ("one", "plain"), ("two", "starred"):
        shutil.copytree(saved_models / kind, tmp_path / name / "1")
    with ModelServer(
        {"one": tmp_path / "one", "zwei": tmp_path / "two"}, ServerSettings(port=0)
    ) as server:
        with grpc.insecure_channel(server.address) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            assert stub.Predict(request(model="one")).outputs["text"].string_val == [b"A %s"]
            assert stub.Predict(request(model="zwei")).outputs["text"].string_val == [b"A %s*"]
            with pytest.raises(
                grpc.RpcError, match="no name specified; this server has one, zwei"
            ) as caught:
                stub.Predict(request(model=""))
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# What cannot be served


def test_model_folders_that_cannot_be_served(tmp_path, saved_models):
    with pytest.raises(ServeError, match="nowhere does not exist"):
        ModelServer(tmp_path / "nowhere", ServerSettings(port=0))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ServeError, match="empty has no version"):
        ModelServer(tmp_path / "empty", ServerSettings(port=0))
    (tmp_path / "hollow" / "3").mkdir(parents=True)
    with pytest.raises(
        ServeError, match="hollow has no SavedModel: there is no saved_model.pb in 3"
    ):
        ModelServer(tmp_path / "hollow", ServerSettings(port=0))
    with pytest.raises(
        ServeError, match="plain holds a SavedModel but is not named by a version number"
    ):
        ModelServer(saved_models / "plain", ServerSettings(port=0))
    with pytest.raises(ServeError, match="no model"):
        ModelServer({}, ServerSettings(port=0))
    (tmp_path / "hollow" / "3" / "saved_model.pb").write_bytes(b"junk")
    with pytest.raises(ServeError, match="No version in .*hollow can be loaded .version 3: "):
        with ModelServer(tmp_path / "hollow", ServerSettings(port=0)):
            pass


def test_ports_and_hosts_that_cannot_be_used(shared_folder, shared_server):
    with pytest.raises(ServeError) as caught:
        ModelServer(shared_folder, ServerSettings(port=shared_server.port))
    assert (
        str(caught.value)
        == f"Port {shared_server.port} is already in use; choose another with --port."
    )
    with socket.socket() as other:  # a program that is no gRPC server
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ServeError, match="already in use"):
            ModelServer(shared_folder, ServerSettings(port=other.getsockname()[1]))
    with pytest.raises(ServeError, match="The host no.such.host.invalid is not known"):
        ModelServer(shared_folder, ServerSettings(port=0, host="no.such.host.invalid"))
    with pytest.raises(ServeError, match="192.0.2.1"):
        ModelServer(shared_folder, ServerSettings(port=0, host="192.0.2.1"))
    with pytest.raises(ServeError, match="from 0 to 65535; got 70000"):
        ModelServer(shared_folder, ServerSettings(port=70000))


def test_a_port_is_free_again_after_the_server_ended(shared_folder):
    with ModelServer(shared_folder, ServerSettings(port=0)) as server:
        port = server.port
    with ModelServer(shared_folder, ServerSettings(port=port)) as server:
        assert server.address == f"127.0.0.1:{port}"


# The blocking call


@pytest.fixture
def serving(shared_folder):
    """Runs `serve` in a thread until the test ends; returns function and queue of its lines."""
    lines, event = queue.Queue(), threading.Event()
    threads = []

    def start(**settings):
        arguments = (shared_folder, ServerSettings(port=0, **settings))
        options = {"stop_event": event, "announce": lines.put}
        threads.append(threading.Thread(target=serve, args=arguments, kwargs=options))
        threads[0].start()
        return lambda: lines.get(timeout=DEADLINE)

    yield start
    event.set()
    threads[0].join(DEADLINE)
    assert not threads[0].is_alive() and lines.empty()


def test_serve_says_where_the_paths_and_the_page_are(serving):
    next_line = serving(rest_port=0)
    _, paths, page = next_line(), next_line(), next_line()
    url = page.partition("Web page at ")[2]
    assert paths == f"REST at {url}v1/models/shouter"
    with urllib.request.urlopen(url, timeout=DEADLINE) as response:
        assert b"<title>Verbatim</title>" in response.read()
    # Every address that is printed answers.
    with urllib.request.urlopen(paths.removeprefix("REST at "), timeout=DEADLINE) as response:
        assert b"AVAILABLE" in response.read()


def test_serve_says_one_line_prints_nothing_and_ends_at_the_event(serving, capfd):
    line = serving()()
    assert line.startswith("Serving shouter version 7 at 127.0.0.1:") and line.endswith(" (gRPC)")
    with Client(line.split(" at ")[1].split()[0]) as client:
        assert client.predict("a")[0].text == "A"
    assert capfd.readouterr().out == ""


def test_serve_logs_its_line_where_nobody_takes_it(shared_folder, caplog):
    caplog.set_level(logging.INFO, logger="serving.server")
    event = threading.Event()
    event.set()
    serve(shared_folder, ServerSettings(port=0), "%s", stop_event=event)
    (line,) = [record for record in caplog.messages if record.startswith("Serving")]
    assert line.startswith("Serving %s version 7 at 127.0.0.1:")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_lets_running_requests_end_at_a_signal(shared_folder, monkeypatch, number):
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
    event, lines = threading.Event(), queue.Queue()

    def ask():
        try:
            address = lines.get(timeout=DEADLINE).split(" at ")[1].split()[0]
            with Client(address) as client, pool:
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
        serve(shared_folder, ServerSettings(port=0), stop_event=event, announce=lines.put)
        assert answer.result()[0].text == "A"
    assert signal.getsignal(number) is before
