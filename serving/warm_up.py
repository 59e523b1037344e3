"""The warm-up of a version: requests that came with it, run so that no client waits for XLA."""

import concurrent.futures
import contextlib
import logging
import os
import pathlib
import threading
import time
from collections.abc import Callable, Iterable

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from serving import memory, processors
from serving.errors import RequestRefused
from serving.human_sentence import human_sentence
from serving.servable import Servable

logger = logging.getLogger(__name__)

WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
# How often a long warm-up logs a line.
_SECONDS_BETWEEN_LINES = 10.0


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
        self._lock = threading.Lock()
        self._logged = time.monotonic()

    @property
    def is_done(self) -> bool:
        """Whether no request is left."""
        return self._done == len(self._requests)

    def run_first(self) -> None:
        """Runs the first request.

        With it the session prepares the graph, which several requests at once would do several
        times.

        Raises:
            Exception: the model refuses the request.
        """
        self._log()
        self._run(self._requests[:1])

    def run_rest(self, threads: int, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Runs the other requests, the small ones first.

        Args:
            threads: how many at the same time; each compiles on a core of its own.
            goes_on: whether the next one is still wanted.

        Raises:
            Exception: the model refuses one.
        """

        def run(request: predict_pb2.PredictRequest) -> None:
            if goes_on():
                self._run([request])

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            # The loop raises the exception of a request that fails.
            for _ in pool.map(run, self._requests[1:]):
                pass

    def try_rest(self, threads: int, goes_on: Callable[[], bool]) -> None:
        """Runs the other requests; a failure is logged."""
        try:
            self.run_rest(threads, goes_on)
        except Exception as error:
            reason = human_sentence(str(error)) if str(error) else type(error).__name__
            logger.warning("A warm-up request of %s failed: %s", self._name, reason)

    def _run(self, requests: Iterable[predict_pb2.PredictRequest]) -> None:
        for request in requests:
            self._servable.predict(request, limits=None)
            with self._lock:
                self._done += 1
                self._log()

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
