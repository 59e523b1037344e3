"""A model in this process, asked as a served one is: no server, no port.

with Model("build/demo/models/localization_en_fr") as model:
    print(model.predict("Delete %(name)s?")[0].text)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
import time
from collections.abc import Iterator
from typing import Any, TypeVar

import serving.lean_tensorflow  # noqa: F401  (before whatever imports TensorFlow)

# isort: split
import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_pb2,
    predict_pb2,
)

from serving import asking, grpc_services, memory, processors, protos
from serving.async_text_model import AsyncTextModel
from serving.caller_texts import check_seconds, check_whole_number
from serving.connection import BATCH_SIZE
from serving.errors import RequestError, RequestRefused
from serving.limits import Limits
from serving.messages import Messages, Question
from serving.registry import Registry, configs_of_folders
from serving.text_model import TextModel

T = TypeVar("T")
Path = str | os.PathLike[str]
# XLA compiled in a call that took longer, and its memory is worth a few hundredths of a second; or
# the call was so long that they do not count.
_LONG_SECONDS = 1.0


class Model(TextModel):
    """An exported model, loaded into this process. Close it, or use it in a `with` statement.

    Threads may share it. It has the methods, answers, limits and errors of
    `serving.client.Client`.

    Nothing is compiled when it is loaded: the first texts of each length wait for XLA. The
    signatures `..._no_xla` do not.

    Args:
        folder: a model's folder, whose latest version is loaded, or the folder of one version.
        timeout: seconds for a call; None waits without limit. Batches that have not begun by then
            are not computed.
        batch_size: the most texts in a batch. Longer lists are sorted by length first.
        concurrency: how many batches of a list are computed at the same time; by default as many as
            `serving.processors.compute_each_batch_on` says, otherwise 1, on all cores.

    Raises:
        ServeError: the folder has no model that can be loaded; one sentence.
        RequestError: an argument is of another type, or a number out of its range.
    """

    def __init__(
        self,
        folder: Path,
        *,
        timeout: float | None = None,
        batch_size: int = BATCH_SIZE,
        concurrency: int | None = None,
    ) -> None:
        check_seconds("timeout", timeout)
        check_whole_number("batch_size", batch_size, 1, Limits.max_batch_size)
        if concurrency is not None:
            check_whole_number("concurrency", concurrency, 1)
        self.folder = os.fspath(folder)
        self.timeout = timeout
        self.concurrency = concurrency or processors.batches_at_once()
        self._messages = Messages(self.folder, "", None, batch_size, by_length=True)
        self._closed = False
        self._registry = Registry(configs_of_folders(folder), warms_up=False)
        self._registry.load_first()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the model's memory after the last call that other threads wait for."""
        self._closed = True
        self._registry.unload()

    def _ask(
        self, questions: Iterator[Question[list[T]]], timeout: float | None, return_exceptions: bool
    ) -> list[T]:
        if self.concurrency == 1:
            return super()._ask(questions, timeout, return_exceptions)
        collected = asking.Collected()
        lock = threading.Lock()
        has_failed = threading.Event()

        def work() -> None:
            # All workers share the questions: each takes the next one.
            while not has_failed.is_set():
                with lock:
                    question = next(questions, None)
                if question is None:
                    return
                try:
                    self._collect(collected, question, timeout)
                except BaseException:
                    has_failed.set()
                    raise

        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as pool:
            workers = [pool.submit(work) for _ in range(self.concurrency)]
        try:
            for worker in workers:
                worker.result()
        except RequestError as error:
            raise collected.broken_off(error) from None
        return collected.result(return_exceptions)

    def _answer(self, question: Question[T], timeout: float | None) -> T:
        if timeout is not None:
            check_seconds("timeout", timeout)
        seconds = self.timeout if timeout is None else timeout
        if self._closed:
            raise RequestError(f"The model of {self.folder} is closed.", grpc.StatusCode.CANCELLED)
        request = question.make().SerializeToString()
        given_up = functools.partial(_given_up, seconds, time.monotonic())
        try:
            response = grpc_services.answer(self._METHODS[question.method], self, request, given_up)
        except RequestRefused as refused:
            raise question.failure(refused.sentence, refused.code) from None
        name = protos.METHODS[question.method][2]
        return question.read(protos.message(name).FromString(response.SerializeToString()))

    def _predict(self, serialized: bytes, given_up: Any) -> predict_pb2.PredictResponse:
        request = predict_pb2.PredictRequest.FromString(serialized)
        model, version = self._registry.find(request.model_spec)
        began = time.monotonic()
        with model.use(version) as servable:
            response = servable.predict(request, Limits(), given_up)
        if time.monotonic() - began > _LONG_SECONDS:
            memory.give_back()
        return response

    def _metadata(
        self, serialized: bytes, given_up: Any
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        return grpc_services.metadata(self._registry, model_pb2.ModelSpec())

    def _status(
        self, serialized: bytes, given_up: Any
    ) -> get_model_status_pb2.GetModelStatusResponse:
        return grpc_services.status(self._registry, model_pb2.ModelSpec())

    _METHODS = {"Predict": _predict, "GetModelMetadata": _metadata, "GetModelStatus": _status}


def languages_of(model: Model) -> tuple[str, str] | None:
    """Returns the codes of a model's source and target language; None if it does not say so.

    It is no method, since a `Client` cannot know them.
    """
    served, version = model._registry.find(model_pb2.ModelSpec())
    with served.use(version) as servable:
        return servable.languages


class AsyncModel(AsyncTextModel):
    """`Model` for asyncio: the same methods, to be awaited.

    Close it, or use it in an `async with` statement. Threads compute, so the event loop goes on.
    A batch that has begun ends even if its call is cancelled.

    Args:
        model: a `Model`, which is closed with this one, or a folder to load one from. Loading
            blocks: `await asyncio.to_thread(AsyncModel, folder)` does not.

    Raises:
        ServeError, RequestError: as for `Model`.
    """

    def __init__(self, model: Model | Path) -> None:
        self._model = model if isinstance(model, Model) else Model(model)
        self._messages = self._model._messages
        self._concurrency = self._model.concurrency

    async def __aenter__(self) -> AsyncModel:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Frees the model's memory after the last call under way."""
        await asyncio.to_thread(self._model.close)

    async def _answer(self, question: Question[T], timeout: float | None) -> T:
        return await asyncio.to_thread(self._model._answer, question, timeout)


def _given_up(seconds: float | None, started: float) -> RequestRefused | None:
    """Returns the refusal of a batch that has not begun in time."""
    if seconds is None or time.monotonic() - started < seconds:
        return None
    return RequestRefused(
        grpc.StatusCode.DEADLINE_EXCEEDED, f"The model did not answer within {seconds:g} seconds."
    )
