"""The warm-up of a version: requests that came with it, run so that no client waits for XLA."""

import concurrent.futures
import contextlib
import logging
import os
import pathlib
import threading
import time
from collections.abc import Callable, Sequence

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from serving import memory, processors
from serving.errors import RequestRefused
from serving.human_sentence import human_sentence
from serving.servable import DEFAULT_SIGNATURE, Servable

logger = logging.getLogger(__name__)

WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
# How often a long warm-up logs a line.
_SECONDS_BETWEEN_LINES = 10.0
# How often a thread with nothing to compile looks whether its version still answers.
_SECONDS_BETWEEN_LOOKS = 0.5
# What the name of a signature ends with that answers the same without XLA.
_NOT_COMPILED = "_no_xla"


def read_requests(path: str | os.PathLike[str]) -> list[predict_pb2.PredictRequest]:
    """Returns the requests of a TFRecord file of `PredictionLog`, those that are Predict.

    Raises:
        Exception: a record cannot be read.
    """
    log = logging.getLogger("tensorflow")
    level = log.level
    try:
        # Users need no warning that the function is of TensorFlow 1. `tf.data` would start a second
        # runtime beside that of the session.
        log.setLevel(logging.ERROR)
        records = list(tf.compat.v1.io.tf_record_iterator(str(path)))
    finally:
        log.setLevel(level)
    logs = map(prediction_log_pb2.PredictionLog.FromString, records)
    return [log.predict_log.request for log in logs if log.WhichOneof("log_type") == "predict_log"]


class WarmUp:
    """The requests of one version, which are run once.

    A batch is padded to the number of texts of one of the requests, its size. A version that is not
    compiled for a size answers such batches without XLA, and is compiled behind when the first one
    arrives.

    Args:
        servable: the version.
        folder: its folder; without the file, there are no requests.
        name: the model's name, for the log.

    Raises:
        Exception: the file cannot be read.
    """

    def __init__(self, servable: Servable, folder: pathlib.Path, name: str) -> None:
        self._servable = servable
        self._name = f"{name} version {servable.version}"
        path = folder / WARMUP_FILE
        self._requests = read_requests(path) if path.is_file() else []
        # The requests that compile, by their size, and those of signatures that have no other way.
        self._of_size: dict[int, list[predict_pb2.PredictRequest]] = {}
        self._others: list[predict_pb2.PredictRequest] = []
        for request in self._requests:
            if self._not_compiled(_signature_of(request)):
                self._of_size.setdefault(_number_of_texts(request), []).append(request)
            else:
                self._others.append(request)
        self._asked_for = threading.Condition()
        # The sizes that were asked for, in their order, and those whose requests have been run.
        self._asked: list[int] = []
        self._compiled: set[int] = set()

    def instead(self, signature: str, number: int) -> str:
        """Returns the signature that answers a batch now.

        Args:
            signature: the one that was asked.
            number: how many texts the batch has.
        """
        other = self._not_compiled(signature)
        if not self._of_size or not other:
            return signature
        size = min((one for one in self._of_size if one >= number), default=max(self._of_size))
        with self._asked_for:
            if size in self._compiled:
                return signature
            if size not in self._asked:
                self._asked.append(size)
                self._asked_for.notify_all()
        return other

    def run_first(self) -> None:
        """Runs the first request, without XLA if it can, and lets the version answer so.

        Raises:
            Exception: the model refuses the request.
        """
        for request in self._requests[:1]:
            asked = predict_pb2.PredictRequest()
            asked.CopyFrom(request)
            if other := self._not_compiled(_signature_of(request)):
                asked.model_spec.signature_name = other
            else:
                self._others.remove(request)
            self._servable.predict(asked, limits=None)
        self._servable.instead = self.instead

    def run_all(self) -> None:
        """Runs all requests, one by one.

        Raises:
            Exception: the model refuses one.
        """
        total, logged = len(self._requests), time.monotonic()
        logger.info("Warming up %s: %d requests.", self._name, total)
        for done, request in enumerate(self._requests):
            if time.monotonic() - logged >= _SECONDS_BETWEEN_LINES:
                logged = time.monotonic()
                logger.info("Warming up %s: %d of %d requests.", self._name, done, total)
            self._servable.predict(request, limits=None)
        logger.info("%s: %d warm-up requests done.", self._name, total)

    def run_asked(
        self,
        threads: int,
        lent: Callable[[], contextlib.AbstractContextManager[Servable]],
        goes_on: Callable[[], bool],
    ) -> None:
        """Runs the requests of each size that is asked for, until all have been run.

        Before them it runs the requests of signatures that have no other way. If one fails, the log
        says so, and batches of its size are answered as they ask.

        Args:
            threads: how many at the same time; each compiles on a core of its own.
            lent: lends the version that answers by that number, or raises `RequestRefused`.
            goes_on: whether the next ones are still wanted.
        """

        def run(requests: Sequence[predict_pb2.PredictRequest]) -> bool:
            """Returns whether the version still answers."""
            with contextlib.suppress(RequestRefused), lent() as servable:
                if servable is self._servable and goes_on():
                    self._try(requests, threads, goes_on)
                    return True
            return False

        answers = run(self._others)
        while answers and len(self._compiled) < len(self._of_size):
            size = self._next_size()
            if size is None:
                answers = run(())
                continue
            logger.info("Compiling %s for batches of %d.", self._name, size)
            answers = run(self._of_size[size])
            with self._asked_for:
                self._compiled.add(size)
            if answers:
                logger.info("%s is compiled for batches of %d.", self._name, size)

    def wake(self) -> None:
        """Lets `run_asked` look at once whether it goes on."""
        with self._asked_for:
            self._asked_for.notify_all()

    def _next_size(self) -> int | None:
        """Returns a size that was asked for; None if there is none for a while."""
        with self._asked_for:
            waiting = [size for size in self._asked if size not in self._compiled]
            if not waiting:
                self._asked_for.wait(_SECONDS_BETWEEN_LOOKS)
        return waiting[0] if waiting else None

    def _try(
        self,
        requests: Sequence[predict_pb2.PredictRequest],
        threads: int,
        goes_on: Callable[[], bool],
    ) -> None:
        """Runs requests, if they are wanted, and returns memory; a failure is logged."""

        def run(request: predict_pb2.PredictRequest) -> None:
            if goes_on():
                self._servable.predict(request, limits=None)

        if not requests:
            return
        try:
            # With the first one the session prepares the graph, which several requests at once
            # would do several times.
            run(requests[0])
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                # The loop raises the exception of a request that fails.
                for _ in pool.map(run, requests[1:]):
                    pass
        except Exception as error:
            reason = human_sentence(str(error)) if str(error) else type(error).__name__
            logger.warning("A warm-up request of %s failed: %s", self._name, reason)
        memory.give_back()

    def _not_compiled(self, signature: str) -> str:
        """Returns the signature that answers the same without XLA; an empty text if none does."""
        name = signature + _NOT_COMPILED
        return name if name in self._servable.signature_defs else ""


def _signature_of(request: predict_pb2.PredictRequest) -> str:
    return request.model_spec.signature_name or DEFAULT_SIGNATURE


def _number_of_texts(request: predict_pb2.PredictRequest) -> int:
    for tensor in request.inputs.values():
        if tensor.tensor_shape.dim:
            return int(tensor.tensor_shape.dim[0].size)
    return 0


class WarmUpsBehind:
    """Warms up versions that answer already, each in a thread of its own."""

    def __init__(self) -> None:
        self._threads: list[tuple[WarmUp, threading.Thread]] = []
        self._stopping = threading.Event()

    def start(
        self, warm_up: WarmUp, lent: Callable[[], contextlib.AbstractContextManager[Servable]]
    ) -> None:
        """Begins to run what is asked for.

        Args:
            warm_up: the warm-up, whose first request has been run.
            lent: see `WarmUp.run_asked`.
        """

        def work() -> None:
            # One core is left to clients.
            threads = max(1, processors.cores() - 1)
            warm_up.run_asked(threads, lent, lambda: not self._stopping.is_set())

        thread = threading.Thread(target=work, name="verbatim-warm-up", daemon=True)
        self._threads.append((warm_up, thread))
        thread.start()

    def stop(self, seconds: float) -> None:
        """Begins no further request, and waits so long for those that are running."""
        self._stopping.set()
        for warm_up, _ in self._threads:
            warm_up.wake()
        for _, thread in self._threads:
            thread.join(seconds)
