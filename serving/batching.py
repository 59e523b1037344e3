"""Micro-batching:
requests that arrive together are answered together, which costs little more than one of them.
"""

import contextlib
import dataclasses
import threading
import time

import grpc
import numpy as np

from serving.errors import RequestRefused


@dataclasses.dataclass(frozen=True)
class Batching:
    """How requests are put together.

    Attributes:
        max_batch_size: the most texts in a batch.
        delay_seconds: how long a batch waits for more requests; one that is alone waits for
            nothing.
        delay_share: or so many times what the batch before took, if that is longer. Batches that
            run at the same time need it: those whom the last one answered ask again while the
            others still run, so the next has not filled up meanwhile.
        max_queued: the most requests that wait or are answered, for each signature of a model;
            others are told RESOURCE_EXHAUSTED.
        parallel: how many batches run at the same time.
    """

    max_batch_size: int = 32
    delay_seconds: float = 0.002
    delay_share: float = 0.0
    max_queued: int = 256
    parallel: int = 1


def can_batch(signature):
    """Whether the texts of a `SignatureDef` can be put together:
    all its inputs and outputs have the texts on their first axis.
    """
    infos = [*signature.inputs.values(), *signature.outputs.values()]
    return all(
        not info.tensor_shape.unknown_rank
        and info.tensor_shape.dim
        and info.tensor_shape.dim[0].size == -1
        for info in infos
    )


def waits():
    """What is asked of a client that never gives up."""
    return None


class _Batch:
    """Requests that are answered together. Its first request's thread runs it; the others wait."""

    def __init__(self):
        self.inputs, self.sizes, self.size = [], [], 0
        # For each request a function: None while its client waits, else its refusal.
        self.given_up = []
        self.full, self.done = threading.Event(), threading.Event()
        self.answers = (
            None  # for each request its outputs, or the exception that it is refused with
        )

    def add(self, inputs, size, given_up):
        """Returns the place of one more request."""
        self.inputs.append(inputs)
        self.sizes.append(size)
        self.given_up.append(given_up)
        self.size += size
        return len(self.sizes) - 1

    def answer(self, place):
        answer = self.answers[place]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Batcher:
    """Runs one signature on batches of requests.

    Texts of a batch are padded to the longest, so an answer may have more padding than it would
    have alone. A batch that fails is run again request by request, so that one bad text spoils no
    other's answer. A request whose client gave up while it waited is left out when its batch runs.

    Args:
        run: function of a dict of arrays, texts on the first axis; returns a dict of arrays with as
            many rows.
        batching: the `Batching`.
    """

    def __init__(self, run, batching):
        self._run = run
        self._batching = batching
        self._lock = threading.Lock()
        # Batches that still take requests, by what their inputs must have in common.
        self._open = {}
        self._queued = 0
        self._last_seconds = 0.0  # what the last batch took
        self._slots = threading.Semaphore(batching.parallel)

    def __call__(self, inputs, given_up=waits):
        """Returns the outputs for a dict of arrays.

        Args:
            inputs: the arrays.
            given_up: function that returns None while the client waits for the answer, else the
                `RequestRefused` that says why it does not. It is asked when the batch runs, perhaps
                in another thread.

        Raises:
            RequestRefused: RESOURCE_EXHAUSTED, too many requests wait; what `given_up` returned; or
                what `run` raises for these inputs.
        """
        size = len(next(iter(inputs.values())))
        key = tuple((name, array.dtype, array.shape[1:]) for name, array in sorted(inputs.items()))
        with self._one_more():
            with self._lock:
                batch = self._open.get(key)
                leads = batch is None or batch.size + size > self._batching.max_batch_size
                if leads:
                    if batch is not None:
                        batch.full.set()
                    batch = self._open[key] = _Batch()
                place = batch.add(inputs, size, given_up)
                if batch.size >= self._batching.max_batch_size:
                    self._close(key, batch)
            if leads:
                self._lead(key, batch)
            else:
                batch.done.wait()
            return batch.answer(place)

    @contextlib.contextmanager
    def _one_more(self):
        with self._lock:
            if self._queued >= self._batching.max_queued:
                raise RequestRefused(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"The server has {self._queued} requests to answer already; try again later.",
                )
            self._queued += 1
        try:
            yield
        finally:
            with self._lock:
                self._queued -= 1

    def _close(self, key, batch):
        """Lets a batch take no more requests; the lock is held."""
        batch.full.set()
        if self._open.get(key) is batch:
            del self._open[key]

    def _lead(self, key, batch):
        """Waits for more requests, then runs the batch, and whatever happens lets the others go on."""
        try:
            with self._slots:
                # While it waited for its turn, others joined it; alone in the server it waits for
                # nobody.
                if self._queued > len(batch.sizes):
                    share = self._batching.delay_share * self._last_seconds
                    batch.full.wait(max(self._batching.delay_seconds, share))
                with self._lock:
                    self._close(key, batch)
                started = time.perf_counter()
                batch.answers = self._answers(batch)
                self._last_seconds = time.perf_counter() - started
        except BaseException as error:
            batch.answers = [error] * len(batch.sizes)
            raise
        finally:
            batch.done.set()

    def _answers(self, batch):
        answers = [given_up() for given_up in batch.given_up]
        wanted = [place for place, refusal in enumerate(answers) if refusal is None]
        if len(wanted) > 1:
            try:
                for place, answer in zip(wanted, self._together(batch, wanted)):
                    answers[place] = answer
                return answers
            except Exception:  # whose fault it is shows when each is run alone
                pass
        for place in wanted:
            answers[place] = self._alone(batch, place)
        return answers

    def _together(self, batch, places):
        inputs = [batch.inputs[place] for place in places]
        outputs = self._run(
            {name: np.concatenate([one[name] for one in inputs]) for name in inputs[0]}
        )
        sizes = [batch.sizes[place] for place in places]
        return [
            {name: array[end - size : end] for name, array in outputs.items()}
            for end, size in zip(np.cumsum(sizes), sizes)
        ]

    def _alone(self, batch, place):
        try:
            return batch.given_up[place]() or self._run(batch.inputs[place])
        except Exception as error:
            return error
