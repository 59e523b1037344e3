"""Requests that come together are answered together: the same answers, in few runs, and one bad text spoils no other."""

import concurrent.futures
import shutil
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf

from serving.batching import Batcher, Batching
from serving.client import Client, RequestError
from serving.errors import RequestRefused, invalid
from serving.server import ModelServer

WAIT = 20


class Doubler:
    """Doubles numbers; refuses negative ones; waits at a gate, so that requests come together for certain."""

    def __init__(self):
        self.gate, self.entered = threading.Event(), threading.Event()
        self.batches = []

    def __call__(self, inputs):
        self.entered.set()
        assert self.gate.wait(WAIT)
        x = inputs["x"].numpy()
        self.batches.append(x.tolist())
        if (x < 0).any():
            raise invalid(f"x[{int(np.argmax(x.reshape(len(x), -1).min(axis=1) < 0))}] is negative.")
        return {"y": 2 * x}


def submit(pool, batcher, *rows):
    return pool.submit(batcher, {"x": tf.constant(rows)})


def together(doubler, batcher, requests, options=None):
    """Answers of requests that arrive while another is being answered: results or exceptions."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        first = submit(pool, batcher, 1)
        assert doubler.entered.wait(WAIT)
        futures = []
        for number, rows in enumerate(requests):
            futures.append(submit(pool, batcher, *rows))
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


def test_only_inputs_of_the_same_form_come_together():
    doubler = Doubler()
    batcher = Batcher(doubler, Batching(max_batch_size=8, delay_seconds=0))
    assert together(doubler, batcher, [([1, 2],), ([3],), ([4, 5],)]) == [[[2, 4]], [[6]], [[8, 10]]]
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
            batcher({"x": tf.constant([3])})
        assert caught.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
        doubler.gate.set()
        assert [first.result(WAIT)["y"].tolist(), second.result(WAIT)["y"].tolist()] == [[2], [4]]
    assert batcher({"x": tf.constant([3])})["y"].tolist() == [6]


def test_a_failure_reaches_everyone_and_the_next_batch_runs():
    doubler = Doubler()
    batcher = Batcher(lambda inputs: doubler(inputs) and {}["y"], Batching(delay_seconds=0))
    doubler.gate.set()
    with pytest.raises(KeyError):
        batcher({"x": tf.constant([1])})
    with pytest.raises(KeyError):
        batcher({"x": tf.constant([1])})


def test_a_server_answers_the_same_with_and_without(model_folder, saved_models):
    texts = [f"text {'%s ' * (number % 5)}{number}" for number in range(200)]
    options = {"batching": Batching(max_batch_size=16, delay_seconds=0.02), "max_workers": 32}
    shutil.copytree(saved_models / "plain", model_folder.parent / "alone" / "1")
    with (
        ModelServer(model_folder, port=0, **options) as server,
        ModelServer(model_folder.parent / "alone", port=0) as plain,
        Client(server.address) as client,
        Client(plain.address) as alone,
        concurrent.futures.ThreadPoolExecutor(32) as pool,
    ):
        bad = pool.submit(client.predict, "a " * 9)
        answers = [answer for (answer,) in pool.map(client.predict, texts)]
        assert answers == [alone.predict(text)[0] for text in texts]
        assert all(
            number == number_of for number, number_of in zip(range(200), (int(a.text.split()[-1]) for a in answers))
        )
        with pytest.raises(RequestError, match="more than 8 tokens"):
            bad.result()
        # A second signature, with two inputs.
        scored = list(pool.map(lambda text: client.score(text, text), texts[:20]))
        assert scored == [alone.score(text, text) for text in texts[:20]]
