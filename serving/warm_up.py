"""The warm-up of a version: requests that came with it, run so that no client waits for XLA."""

import collections
import concurrent.futures
import contextlib
import logging
import os
import pathlib
import threading
import time
from collections.abc import Callable

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

    A batch is padded to the number of texts of one of the requests. Until the requests of that
    number have been run, `instead` names the signature that answers without XLA.

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
        self._done = 0
        # How many requests of each number of texts are to be run.
        self._left = collections.Counter(
            _number_of_texts(request)
            for request in self._requests
            if self._not_compiled(_signature_of(request))
        )
        self._lock = threading.Lock()
        self._logged = time.monotonic()

    @property
    def is_done(self) -> bool:
        """Whether no request is left."""
        return self._done == len(self._requests)

    def instead(self, signature: str, number: int) -> str:
        """Returns the signature that answers a batch now.

        Args:
            signature: the one that was asked.
            number: how many texts the batch has.
        """
        with self._lock:
            sizes = sorted(self._left)
            holding = [size for size in sizes if size >= number] or sizes[-1:]
            is_ready = not any(self._left[size] for size in holding[:1])
        return signature if is_ready else self._not_compiled(signature) or signature

    def run_first(self) -> None:
        """Lets the version answer without XLA where it can, and runs the first request so.

        Raises:
            Exception: the model refuses the request.
        """
        self._servable.instead = self.instead
        self._log()
        for request in self._requests[:1]:
            signature = self._not_compiled(_signature_of(request))
            if not signature:
                self._run(request)
                continue
            changed = predict_pb2.PredictRequest()
            changed.CopyFrom(request)
            changed.model_spec.signature_name = signature
            self._servable.predict(changed, limits=None)

    def run_rest(self, threads: int, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Runs the requests that have not been run, the small ones first.

        Args:
            threads: how many at the same time; each compiles on a core of its own.
            goes_on: whether the next one is still wanted.

        Raises:
            Exception: the model refuses one.
        """

        def run(request: predict_pb2.PredictRequest) -> None:
            if goes_on():
                self._run(request)

        rest = self._requests[self._done :]
        # With the first one the session prepares the graph, which several requests at once would do
        # several times.
        for request in rest[:1]:
            run(request)
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            # The loop raises the exception of a request that fails.
            for _ in pool.map(run, rest[1:]):
                pass

    def try_rest(self, threads: int, goes_on: Callable[[], bool]) -> None:
        """Runs the requests that have not been run; a failure is logged.

        Afterwards every signature answers what it is asked.
        """
        try:
            self.run_rest(threads, goes_on)
        except Exception as error:
            reason = human_sentence(str(error)) if str(error) else type(error).__name__
            logger.warning("A warm-up request of %s failed: %s", self._name, reason)
        finally:
            with self._lock:
                self._left.clear()

    def _run(self, request: predict_pb2.PredictRequest) -> None:
        self._servable.predict(request, limits=None)
        with self._lock:
            self._done += 1
            if self._not_compiled(_signature_of(request)):
                self._left[_number_of_texts(request)] -= 1
            self._log()

    def _not_compiled(self, signature: str) -> str:
        """Returns the signature that answers the same without XLA; an empty text if none does."""
        name = signature + _NOT_COMPILED
        return name if name in self._servable.signature_defs else ""

    def _log(self) -> None:
        """Logs the beginning, the end, and some lines in between."""
        done, total = self._done, len(self._requests)
        if not total:
            return
        now = time.monotonic()
        if done == 0:
            logger.info("Warming up %s: %d requests.", self._name, total)
        elif done == total:
            logger.info("%s: %d warm-up requests done.", self._name, total)
        elif now - self._logged < _SECONDS_BETWEEN_LINES:
            return
        else:
            logger.info("Warming up %s: %d of %d requests.", self._name, done, total)
        self._logged = now


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
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def start(
        self,
        warm_up: WarmUp,
        lent: contextlib.AbstractContextManager[Servable],
        wanted: Callable[[], bool],
    ) -> None:
        """Begins with the rest of a warm-up.

        Args:
            warm_up: the warm-up, whose first request has been run.
            lent: the version, lent; it raises `RequestRefused` if the version is gone.
            wanted: whether the version is still to be warmed up.
        """

        if warm_up.is_done:
            return

        def goes_on() -> bool:
            return wanted() and not self._stopping.is_set()

        def work() -> None:
            with contextlib.suppress(RequestRefused), lent:
                # One core is left to clients.
                warm_up.try_rest(max(1, processors.cores() - 1), goes_on)
                memory.give_back()

        thread = threading.Thread(target=work, name="verbatim-warm-up", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, seconds: float) -> None:
        """Begins no further request, and waits so long for those that are running."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(seconds)
