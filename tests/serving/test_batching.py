"""Micro-batching: the same answers in fewer runs, and one bad text spoils no other."""

import concurrent.futures
import http.client
import json
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from serving.batching import Batcher, Batching
from serving.batching_config import read_batching_file
from serving.client import Client, RequestError
from serving.errors import RequestRefused, ServeError, invalid
from serving.servable import Servable
from serving.server import ModelServer, ServerSettings
from tests.serving.support import wait_until

WAIT = 20


class Doubler:
    """Doubles numbers and refuses negative ones; its gate lets requests come together."""

    def __init__(self):
        self.gate, self.entered = threading.Event(), threading.Event()
        self.batches = []

    def __call__(self, inputs):
        self.entered.set()
        assert self.gate.wait(WAIT)
        x = inputs["x"]
        self.batches.append(x.tolist())
        if (x < 0).any():
            raise invalid(
                f"x[{int(np.argmax(x.reshape(len(x), -1).min(axis=1) < 0))}] is negative."
            )
        return {"y": 2 * x}


def submit(pool, batcher, *rows, **options):
    return pool.submit(batcher, {"x": np.array(rows)}, **options)


def together(doubler, batcher, requests, given_up=None):
    """Answers of requests that arrive while another is being answered: results or exceptions.

    `given_up` has, for the places of some, what they are refused with when their batch runs.
    """
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        first = submit(pool, batcher, 1)
        assert doubler.entered.wait(WAIT)
        futures = []
        for number, rows in enumerate(requests):
            refusal = (given_up or {}).get(number)
            futures.append(submit(pool, batcher, *rows, given_up=lambda refusal=refusal: refusal))
            while batcher._queued < number + 2:  # in this order
                pass
        doubler.gate.set()
        assert first.result(WAIT)["y"].tolist() == [2]
        return [future.exception(WAIT) or future.result()["y"].tolist() for future in futures]


def test_what_comes_together_is_run_together():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0))
    assert together(doubler, batcher, [(1, 2), (3,), (4, 5, 6)]) == [[2, 4], [6], [8, 10, 12]]
    assert doubler.batches == [[1], [1, 2, 3, 4, 5, 6]]


def test_a_batch_holds_no_more_than_it_may():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=4, delay_seconds=0))
    answers = together(doubler, batcher, [(1, 2, 3), (4, 5), (6, 7), (8,), (9,) * 7])
    assert answers == [[2, 4, 6], [8, 10], [12, 14], [16], [18] * 7]
    # A request alone may be larger: it is the server's limit that refuses it, not the batch.
    assert sorted(doubler.batches[1:]) == sorted([[1, 2, 3], [4, 5, 6, 7], [8], [9] * 7])


def test_a_bad_request_spoils_no_other():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0))
    good, bad, also = together(doubler, batcher, [(1, 2), (3, -4), (5,)])
    assert (good, also) == ([2, 4], [10])
    # Its position is that in its own request.
    assert isinstance(bad, RequestRefused) and bad.sentence == "x[1] is negative."


def test_what_nobody_waits_for_is_not_computed():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0))
    late = RequestRefused(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
    # The first of a batch is one of them, too: its thread runs the batch for the others.
    assert together(doubler, batcher, [(1, 2), (3,), (4,), (5,)], {0: late, 2: late}) == [
        late,
        [6],
        late,
        [10],
    ]
    assert doubler.batches == [[1], [3, 5]]
    doubler.gate.clear()
    doubler.entered.clear()
    assert together(doubler, batcher, [(1, 2), (3,)], {0: late, 1: late}) == [late, late]
    assert doubler.batches == [[1], [3, 5], [1]]


def test_a_failed_batch_is_not_repeated_for_those_who_left_meanwhile():
    doubler, left = Doubler(), threading.Event()
    late = RequestRefused(grpc.StatusCode.CANCELLED, "gone")

    def run(inputs):
        if inputs["x"].shape[0] > 1:
            left.set()
            raise invalid("not together")
        return doubler(inputs)

    batcher = Batcher(run, Batching(max_batch_size=8, delay_seconds=0))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        first = submit(pool, batcher, 1)
        assert doubler.entered.wait(WAIT)
        stays = submit(pool, batcher, 2)
        while batcher._queued < 2:
            pass
        leaves = submit(pool, batcher, 3, given_up=lambda: late if left.is_set() else None)
        while batcher._queued < 3:
            pass
        doubler.gate.set()
        assert first.result(WAIT) and stays.result(WAIT)["y"].tolist() == [4]
        assert leaves.exception(WAIT) is late
    assert doubler.batches == [[1], [2]]


def test_beside_others_a_batch_waits_by_what_the_last_one_took():
    doubler = Doubler()
    # Nothing is waited for but a share, which is so large that only a full batch ends it.
    batcher = Batcher(
        doubler, Batching(max_batch_size=2, delay_seconds=0, delay_share=1e6, parallel=2)
    )
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        doubler.gate.set()
        # Alone, it waits for nobody.
        assert submit(pool, batcher, 1).result(WAIT)["y"].tolist() == [2]
        doubler.gate.clear()
        doubler.entered.clear()
        first = submit(pool, batcher, 2)
        assert doubler.entered.wait(WAIT)
        doubler.entered.clear()
        second = submit(pool, batcher, 3)
        assert not doubler.entered.wait(0.3)  # there is a slot, but the batch is not full
        third = submit(pool, batcher, 4)
        assert doubler.entered.wait(WAIT)
        doubler.gate.set()
        assert [one.result(WAIT)["y"].tolist() for one in (first, second, third)] == [[4], [6], [8]]
    assert sorted(doubler.batches) == [[1], [2], [3, 4]]


def test_only_inputs_of_the_same_form_come_together():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0))
    assert together(doubler, batcher, [([1, 2],), ([3],), ([4, 5],)]) == [
        [[2, 4]],
        [[6]],
        [[8, 10]],
    ]
    assert sorted(doubler.batches[1:]) == [[[1, 2], [4, 5]], [[3]]]


def test_a_full_queue_refuses():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0, max_queued=2))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        first = submit(pool, batcher, 1)
        assert doubler.entered.wait(WAIT)
        second = submit(pool, batcher, 2)
        while batcher._queued < 2:
            pass
        with pytest.raises(RequestRefused, match="has 2 requests to answer already") as caught:
            batcher({"x": np.array([3])})
        assert caught.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
        doubler.gate.set()
        assert [first.result(WAIT)["y"].tolist(), second.result(WAIT)["y"].tolist()] == [[2], [4]]
    assert batcher({"x": np.array([3])})["y"].tolist() == [6]


def test_a_failure_reaches_everyone_and_the_next_batch_runs():
    doubler = Doubler()
    batcher = Batcher(lambda inputs: doubler(inputs) and {}["y"], Batching(delay_seconds=0))
    doubler.gate.set()
    with pytest.raises(KeyError):
        batcher({"x": np.array([1])})
    with pytest.raises(KeyError):
        batcher({"x": np.array([1])})


def test_a_server_answers_the_same_with_and_without(shared_folder, shared_server):
    texts = [f"text {'%s ' * (number % 5)}{number}" for number in range(200)]
    batching = Batching(max_batch_size=16, delay_seconds=0.02)
    settings = ServerSettings(port=0, batching=batching, max_workers=32)
    with (
        ModelServer(shared_folder, settings) as server,
        Client(server.address) as client,
        Client(shared_server.address, batch_size=1) as alone,
        concurrent.futures.ThreadPoolExecutor(32) as pool,
    ):
        bad = pool.submit(client.predict, "a " * 9)
        answers = [answer for (answer,) in pool.map(client.predict, texts)]
        assert answers == alone.predict(texts)
        assert all(
            number == number_of
            for number, number_of in zip(range(200), (int(a.text.split()[-1]) for a in answers))
        )
        with pytest.raises(RequestError, match="more than 8 tokens"):
            bad.result()
        # A second signature, with two inputs.
        scored = list(pool.map(lambda text: client.score(text, text), texts[:20]))
        assert scored == [[score] for score in alone.score(texts[:20], texts[:20])]


def test_a_server_does_not_compute_what_its_clients_gave_up(shared_folder, monkeypatch):
    original, entered, gate = Servable._run, threading.Event(), threading.Event()
    computed = []

    def slow(self, name, inputs, names):
        entered.set()
        assert gate.wait(WAIT)
        computed.append(inputs["source"].tolist())
        return original(self, name, inputs, names)

    def request(text):
        message = predict_pb2.PredictRequest()
        message.model_spec.name, message.model_spec.signature_name = "shouter", "count"
        message.inputs["source"].CopyFrom(tf.make_tensor_proto([text]))
        return message

    monkeypatch.setattr(Servable, "_run", slow)
    settings = ServerSettings(port=0, rest_port=0, batching=Batching(delay_seconds=0))
    with (
        ModelServer(shared_folder, settings) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        with server.models["shouter"].use() as servable:
            batcher = servable._batchers["count"]

        predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
        try:
            first = predict.future(request("first"), timeout=WAIT)
            assert entered.wait(WAIT)
            late = predict.future(request("late"), timeout=1.5)
            left = predict.future(request("left"), timeout=WAIT)
            stays = predict.future(request("stays"), timeout=2 * WAIT)
            connection = http.client.HTTPConnection(server.rest_address)
            body = {"signature_name": "count", "instances": ["closed"]}
            connection.request("POST", "/v1/models/shouter:predict", json.dumps(body))
            wait_until(lambda: batcher._queued == 5)
            (batch,) = batcher._open.values()
            left.cancel()
            connection.close()
            assert late.exception().code() == grpc.StatusCode.DEADLINE_EXCEEDED

            def codes():
                return sorted(
                    refusal.code.name for given_up in batch.given_up if (refusal := given_up())
                )

            # The client's clock sees a deadline first: for a moment the server knows of a cancelled
            # call alone.
            wait_until(lambda: codes() == ["CANCELLED", "CANCELLED", "DEADLINE_EXCEEDED"])
        finally:
            gate.set()
        assert list(first.result().outputs["calls"].int_val) == [1]
        assert list(stays.result().outputs["calls"].int_val) == [2]
    assert computed == [[b"first"], [b"stays"]]


def test_without_batching_what_nobody_waits_for_is_not_computed_either(saved_models):
    servable = Servable(saved_models / "plain", 1)
    late = RequestRefused(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
    message = predict_pb2.PredictRequest()
    message.model_spec.signature_name = "count"
    message.inputs["source"].CopyFrom(tf.make_tensor_proto(["a"]))
    with pytest.raises(RequestRefused) as caught:
        servable.predict(message, None, lambda: late)
    assert caught.value is late
    assert list(servable.predict(message, None).outputs["calls"].int_val) == [1]


# The file of TensorFlow Serving


def test_a_batching_file_is_read_as_tensorflow_serving_reads_it(tmp_path, caplog):
    path = tmp_path / "batching.config"
    path.write_text(
        """
        max_batch_size { value: 64 }  # texts
        batch_timeout_micros { value: 1500 }
        max_enqueued_batches { value: 10 }
        num_batch_threads { value: 4 }
        thread_pool_name { value: "batches" }
        """
    )
    assert read_batching_file(path) == Batching(
        max_batch_size=64, delay_seconds=0.0015, max_queued=640, parallel=4
    )
    assert not caplog.text
    path.write_text(
        "batch_timeout_micros {} allowed_batch_sizes: 8 allowed_batch_sizes: 32 "
        "pad_variable_length_inputs: true"
        " enable_large_batch_splitting { value: true } max_execution_batch_size { value: 8 }"
    )
    assert read_batching_file(path) == Batching(delay_seconds=0)
    for name in "allowed_batch_sizes", "pad_variable_length_inputs", "enable_large_batch_splitting":
        assert f"{name} of the batching config file {path} is not used" in caplog.text


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("max_batch_size: 3", "is not a BatchingParameters: "),
        ("max_batch { value: 3 }", "is not a BatchingParameters: .*max_batch"),
        (
            "max_batch_size { value: 0 }",
            "max_batch_size of the batching config file .* must be 1 or more; got 0",
        ),
        ("batch_timeout_micros { value: -1 }", "must be 0 or more; got -1"),
    ],
)
def test_a_batching_file_that_cannot_be_used_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "b").write_text(text)
    with pytest.raises(ServeError, match=sentence) as caught:
        read_batching_file(tmp_path / "b")
    assert "\n" not in str(caught.value)
