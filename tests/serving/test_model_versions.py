"""The versions of a model: how they come and go while requests are answered."""

import concurrent.futures
import logging
import os
import shutil
import threading

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2, prediction_service_pb2_grpc

from serving import processors
from serving.client import Client, RequestError
from serving.limits import Limits
from serving.model_versions import ModelVersions
from serving.servable import Servable
from serving.server import ModelServer, ServerSettings
from serving.warm_up import WarmUp
from tests.serving.support import DEADLINE, request, states, wait_until


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.INFO, logger="serving")


def test_hot_swap_drops_no_request(model_folder, saved_models):
    with (
        ModelServer(model_folder, ServerSettings(port=0, poll_seconds=0.05)) as server,
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
        with pytest.raises(RequestError, match=r"Specific\(shouter, 1\)"):
            Client(server.address, version=1).predict("a")


def test_a_retired_version_ends_after_its_last_request(model_folder, saved_models):
    with ModelServer(model_folder, ServerSettings(port=0, poll_seconds=0.05)) as server:
        model = server.models["shouter"]
        with model.use() as first, model.use(1) as same:
            assert first is same
            shutil.copytree(saved_models / "starred", model_folder / "2")
            wait_until(lambda: states(server) == {1: "UNLOADING", 2: "AVAILABLE"})
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
    with ModelServer(model_folder, ServerSettings(port=0)) as server:
        assert states(server) == {1: "AVAILABLE", 2: "END"}


def test_one_version_folder_is_served_alone(model_folder, saved_models):
    shutil.copytree(saved_models / "starred", model_folder / "2")
    with ModelServer(model_folder / "1", ServerSettings(port=0, poll_seconds=0.01)) as server:
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


COUNTS = [request(["a"] * 9, "count", model="any"), request(signature="count")]


def calls(servable):
    """Returns how often a version's signature `count` was called before."""
    outputs = servable.predict(request(["a"], "count"), None).outputs
    return list(outputs["calls"].int_val)[0] - 1


def test_a_new_version_is_warm_before_it_answers(model_folder, saved_models, caplog):
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    shutil.copytree(saved_models / "starred", model_folder / "2")
    write_warmup(model_folder / "2", *COUNTS)
    for _ in range(2):
        model.poll()
    with model.use(2) as servable:
        assert calls(servable) == 2
    assert "2 warm-up requests done" in caplog.text


def test_the_first_version_answers_early_and_warms_up_behind(model_folder, monkeypatch):
    # The warm-up covers every bucket of the model: the limits of this server are not for it.
    write_warmup(model_folder / "1", *COUNTS)
    may_go_on = threading.Event()
    run_asked = WarmUp.run_asked

    def run_later(self, *arguments):
        assert may_go_on.wait(DEADLINE)
        run_asked(self, *arguments)

    monkeypatch.setattr(WarmUp, "run_asked", run_later)
    settings = ServerSettings(port=0, limits=Limits(max_batch_size=4))
    with (
        ModelServer(model_folder, settings) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        assert list(stub.Predict(request(["a"], "count")).outputs["calls"].int_val) == [2]
        may_go_on.set()
        # Nothing is compiled, so the warm-up ends with the second request.
        ((_, thread),) = server.models["shouter"]._behind._threads
        thread.join(DEADLINE)
        assert not thread.is_alive()
        assert list(stub.Predict(request(["a"], "count")).outputs["calls"].int_val) == [4]


def test_a_size_is_compiled_when_it_is_asked_for(model_folder, monkeypatch):
    """Until then, batches that are padded to it are answered without XLA."""
    write_warmup(model_folder / "1", *(request(["a"] * size) for size in (1, 1, 4)))
    may_run, run = threading.Event(), []
    original = WarmUp._try

    def run_later(self, requests, *arguments):
        if requests:
            assert may_run.wait(DEADLINE)
            run.extend(len(one.inputs["source"].string_val) for one in requests)
        original(self, requests, *arguments)

    monkeypatch.setattr(WarmUp, "_try", run_later)
    with ModelServer(model_folder, ServerSettings(port=0)) as server:
        client = Client(server.address)

        def is_compiled(number):
            return client.predict(["a"] * number)[0].text == "A"

        assert client.predict(["a"])[0].text == "A (not compiled)"
        assert not is_compiled(1) and run == []
        may_run.set()
        wait_until(lambda: is_compiled(1))
        assert run == [1, 1]
        assert not is_compiled(2)
        # More texts than any size are done in parts of the largest.
        wait_until(lambda: is_compiled(5))
        assert run == [1, 1, 4] and is_compiled(2) and is_compiled(1)


def test_a_retired_version_is_compiled_no_further(model_folder, saved_models):
    write_warmup(model_folder / "1", request(["a"]))
    settings = ServerSettings(port=0, poll_seconds=0.05)
    with ModelServer(model_folder, settings) as server:
        ((_, thread),) = server.models["shouter"]._behind._threads
        assert thread.is_alive()
        shutil.copytree(saved_models / "starred", model_folder / "2")
        wait_until(lambda: states(server) == {1: "END", 2: "AVAILABLE"})
        thread.join(DEADLINE)
        assert not thread.is_alive()


def test_a_server_that_stops_warms_up_no_further(model_folder, monkeypatch):
    write_warmup(model_folder / "1", *COUNTS, *COUNTS)
    begun, may_go_on, run = threading.Event(), threading.Event(), []

    def predict(self, asked, **limits):
        run.append(asked)
        if len(run) == 2:
            begun.set()
            assert may_go_on.wait(DEADLINE)

    monkeypatch.setattr(Servable, "predict", predict)
    monkeypatch.setattr(processors, "cores", lambda: 2)
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    assert begun.wait(DEADLINE)
    stopping = threading.Thread(target=model.stop_warming_up, args=[DEADLINE])
    stopping.start()
    wait_until(lambda: model._behind._stopping.is_set())
    may_go_on.set()
    stopping.join(DEADLINE)
    assert not stopping.is_alive() and len(run) == 2


def test_a_failed_warm_up_behind_is_logged_and_the_version_answers(model_folder, caplog):
    write_warmup(model_folder / "1", COUNTS[0], request(["a " * 9], "n_best"))
    model = ModelVersions("shouter", model_folder)
    model.load_first()
    wait_until(lambda: "A warm-up request of shouter version 1 failed" in caplog.text)
    assert "more than 8 tokens" in caplog.text
    assert model.version == 1


def test_a_size_that_cannot_be_compiled_is_answered_as_it_is_asked(model_folder, caplog):
    write_warmup(model_folder / "1", request(["a"]), request(["a " * 9]))
    with ModelServer(model_folder, ServerSettings(port=0)) as server:
        client = Client(server.address)
        assert client.predict(["a"])[0].text == "A (not compiled)"
        wait_until(lambda: "A warm-up request of shouter version 1 failed" in caplog.text)
        assert "more than 8 tokens" in caplog.text
        wait_until(lambda: client.predict(["a"])[0].text == "A")


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
    with ModelServer(model_folder, ServerSettings(port=0, poll_seconds=0.01)) as server:
        shutil.copytree(saved_models / "starred", model_folder / "2")
        wait_until(lambda: states(server).get(2) == "AVAILABLE")
    assert "disk gone" in caplog.text


def test_what_becomes_of_versions_is_logged(model_folder, saved_models, caplog):
    shutil.copytree(saved_models / "starred", model_folder / "2")
    (model_folder / "3").mkdir()
    (model_folder / "3" / "saved_model.pb").write_bytes(b"junk")
    model = ModelVersions("shouter", model_folder)
    assert [(state.version, state.state) for state in model.states()] == [(3, "START")]
    model.load_first()
    assert "shouter version 3 cannot be loaded and is skipped (no version answers): " in caplog.text
    assert "Loading shouter version 2 from " in caplog.text
    assert "shouter version 2 is available." in caplog.text
    shutil.rmtree(model_folder / "2")
    model.poll()
    model.poll()
    assert model.version == 1
    for line in (
        "shouter version 1 is available.",
        "shouter version 2 is retired.",
        "shouter is rolled back from version 2 to version 1.",
    ):
        assert line in caplog.messages
    model.unload()
