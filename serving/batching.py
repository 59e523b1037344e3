"""Micro-batching of concurrent requests.

A batch costs little more than one of its requests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import numpy.typing as npt

from serving.errors import RequestRefused

if TYPE_CHECKING:
    from tensorflow.core.protobuf import meta_graph_pb2

Arrays = Mapping[str, npt.NDArray[Any]]
Outputs = dict[str, npt.NDArray[Any]]
# Returns None while the client waits for the answer, else the refusal that says why it stopped.
GivenUp = Callable[[], RequestRefused | None]
# The properties that all inputs of a batch share: name, type, and shape without the texts' axis.
_Form = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]


@dataclasses.dataclass(frozen=True)
class Batching:
    """How requests are batched.

    Attributes:
        max_batch_size: the most texts in a batch.
        delay_seconds: how long a batch waits for more requests; a lone request does not wait.
        delay_share: the same, as a share of what the batch before took; the longer one counts.
            Batches that run at the same time need it: clients of the last one ask again while the
            others still run, so the next batch has not filled up meanwhile.
        max_queued: the most requests that wait or are answered, for each signature of a model;
            further ones are refused with RESOURCE_EXHAUSTED.
        parallel: how many batches run at the same time.
    """

    max_batch_size: int = 32
    delay_seconds: float = 0.002
    delay_share: float = 0.0
    max_queued: int = 256
    parallel: int = 1


def can_batch(signature: meta_graph_pb2.SignatureDef) -> bool:
    """Whether all inputs and outputs of a `SignatureDef` have the texts on their first axis."""
    infos = [*signature.inputs.values(), *signature.outputs.values()]
    return all(
        info.HasField("tensor_shape")
        and not info.tensor_shape.unknown_rank
        and info.tensor_shape.dim
        and info.tensor_shape.dim[0].size == -1
        for info in infos
    )


def waits() -> RequestRefused | None:
    """A `GivenUp` of a client that never gives up."""
    return None


class _Batch:
    """A batch of requests. Its first request's thread runs it; the others wait."""

    def __init__(self) -> None:
        self.inputs: list[Arrays] = []
        self.sizes: list[int] = []
        self.size = 0
        self.given_up: list[GivenUp] = []
        self.full, self.done = threading.Event(), threading.Event()
        # For each request its outputs, or the exception that it is refused with.
        self.answers: Sequence[Outputs | BaseException] = ()

    def add(self, inputs: Arrays, size: int, given_up: GivenUp) -> int:
        """Returns the place of one more request."""
        self.inputs.append(inputs)
        self.sizes.append(size)
        self.given_up.append(given_up)
        self.size += size
        return len(self.sizes) - 1

    def answer(self, place: int) -> Outputs:
        answer = self.answers[place]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Batcher:
    """Runs one signature on batches of requests.

    Texts of a batch are padded to the longest, so an answer may have more padding than it would
    have alone. A batch that fails is run again request by request, so that a bad text affects no
    other. A request whose client gave up while it waited is left out when its batch runs.

    Args:
        run: function of a dict of arrays, texts on the first axis; returns a dict of arrays with as
            many rows.
        batching: the `Batching`.
    """

    def __init__(self, run: Callable[[Arrays], Outputs], batching: Batching) -> None:
        self._run = run
        self._batching = batching
        self._lock = threading.Lock()
        # Batches that still take requests, by the properties that their inputs share.
        self._open: dict[_Form, _Batch] = {}
        self._queued = 0
        # The seconds that the last batch took.
        self._last_seconds = 0.0
        self._slots = threading.Semaphore(batching.parallel)

    def __call__(self, inputs: Arrays, given_up: GivenUp = waits) -> Outputs:
        """Returns the outputs for a dict of arrays.

        Args:
            inputs: the arrays.
            given_up: function that returns None while the client waits for the answer, else the
                `RequestRefused` that says why it stopped. It is called when the batch runs, perhaps
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
                leads = False
                if batch is None or batch.size + size > self._batching.max_batch_size:
                    if batch is not None:
                        batch.full.set()
                    batch = self._open[key] = _Batch()
                    leads = True
                place = batch.add(inputs, size, given_up)
                if batch.size >= self._batching.max_batch_size:
                    self._close(key, batch)
            if leads:
                self._lead(key, batch)
            else:
                batch.done.wait()
            return batch.answer(place)

    @contextlib.contextmanager
    def _one_more(self) -> Iterator[None]:
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

    def _close(self, key: _Form, batch: _Batch) -> None:
        """Closes a batch for more requests; the lock is held."""
        batch.full.set()
        if self._open.get(key) is batch:
            del self._open[key]

    def _lead(self, key: _Form, batch: _Batch) -> None:
        """Waits for more requests, then runs the batch; in any case the other threads continue."""
        try:
            with self._slots:
                # While the batch waited for its turn, others joined it. A lone request in the
                # server does not wait.
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

    def _answers(self, batch: _Batch) -> list[Outputs | BaseException]:
        refusals = [given_up() for given_up in batch.given_up]
        waiting = [place for place, refusal in enumerate(refusals) if refusal is None]
        answers: dict[int, Outputs | BaseException] = {
            place: refusal for place, refusal in enumerate(refusals) if refusal is not None
        }
        if len(waiting) > 1:
            # If it fails, the requests are run one by one: that shows which of them fails.
            with contextlib.suppress(Exception):
                answers.update(zip(waiting, self._together(batch, waiting)))
        for place in waiting:
            if place not in answers:
                answers[place] = self._alone(batch, place)
        return [answers[place] for place in range(len(refusals))]

    def _together(self, batch: _Batch, places: Sequence[int]) -> list[Outputs]:
        inputs = [batch.inputs[place] for place in places]
        outputs = self._run(
            {name: np.concatenate([one[name] for one in inputs]) for name in inputs[0]}
        )
        sizes = [batch.sizes[place] for place in places]
        return [
            {name: array[end - size : end] for name, array in outputs.items()}
            for end, size in zip(np.cumsum(sizes), sizes)
        ]

    def _alone(self, batch: _Batch, place: int) -> Outputs | BaseException:
        try:
            return batch.given_up[place]() or self._run(batch.inputs[place])
        except Exception as error:
            return error
