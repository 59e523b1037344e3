"""Shared by the benchmarks of serving: a server in a process of its own, requests, and clients."""

import argparse
import asyncio
import contextlib
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from benchmarks.peers.processes import cpu_seconds_of, memory_of
from pipeline.export import served_model
from serving import protos

NAME = "model"
# A process is at rest when it works less than this share of the time.
_REST, _REST_SECONDS = 0.05, 2.0

_Job = TypeVar("_Job")


def model_version(directory: str) -> pathlib.Path:
    """Returns the folder of a model's newest version, or of the version that an option names.

    It is the `type` of such options.

    Raises:
        argparse.ArgumentTypeError: there is none.
    """
    try:
        return served_model.version_directory(directory)
    except served_model.ModelError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def warming_batches(model: pathlib.Path) -> list[list[str]]:
    """Returns a batch of texts for each pair of a model's buckets."""
    facts = served_model.read_facts(model)
    return [
        [" ".join(["a"] * length)] * batch
        for batch in facts["batch_buckets"]
        for length in facts["length_buckets"]
    ]


def read_texts(path: str, count: int) -> list[str]:
    """Returns `count` lines of a file, repeated if there are fewer."""
    lines = [
        line.strip()
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    return (lines * (count // max(len(lines), 1) + 1))[:count]


class Server:
    """`verbatim serve` in a process of its own, on loopback, with a model folder of its own.

    Args:
        version: folder of a version, which becomes version 1.
        *options: more options of `verbatim serve`.

    Attributes:
        address: `host:port`.
        folder: the model folder, to push versions to.
        started: when the process began, by `time.perf_counter`.
    """

    def __init__(self, version: pathlib.Path, *options: str) -> None:
        self._version = version
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._temporary.name) / NAME
        self.push(1)
        self._log = open(pathlib.Path(self._temporary.name) / "log", "w+", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pipeline.commands.main",
            "serve",
            "--model",
            str(self.folder),
            "--port",
            "0",
            *options,
        ]
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self._process.stdout, "It is a pipe."
        line = self._process.stdout.readline()
        match = re.search(r" at (\S+:\d+) \(gRPC", line)
        if not match:
            raise SystemExit(f"The server did not start: {line}{self.log()[-2000:]}")
        self.address = match[1]

    def push(self, number: int, break_it: bool = False) -> None:
        """Copies a version, file by file as a person would; `break_it` cuts its graph in half."""
        target = self.folder / str(number)
        shutil.copytree(self._version, target)
        if break_it:
            graph = target / "saved_model.pb"
            graph.write_bytes(graph.read_bytes()[: graph.stat().st_size // 2])

    def retire(self, number: int) -> None:
        """Removes a version's folder."""
        shutil.rmtree(self.folder / str(number))

    def memory(self) -> float:
        """Returns the resident memory of the server, in MiB."""
        return memory_of(self._process.pid, "VmRSS") / 2**20

    def peak_memory(self) -> float:
        """Returns the most memory that the server ever had resident, in MiB."""
        return memory_of(self._process.pid, "VmHWM") / 2**20

    def cpu_seconds(self) -> float:
        """Returns how long the server's threads have worked."""
        return cpu_seconds_of(self._process.pid)

    def ask(self, batches: Iterable[Sequence[str]]) -> None:
        """Waits for the answers to batches, one after the other."""

        async def ask() -> None:
            async with Connection(self.address) as connection:
                for texts in batches:
                    await connection.predict(predict_request(texts), timeout=600)

        asyncio.run(ask())

    def warm_up(self) -> float:
        """Asks for each pair of buckets, and waits until all are compiled.

        Returns:
            When the server began to rest, by `time.perf_counter`.
        """
        self.ask(warming_batches(self._version))
        while True:
            began, worked = time.perf_counter(), self.cpu_seconds()
            time.sleep(_REST_SECONDS)
            if self.cpu_seconds() - worked < _REST * _REST_SECONDS:
                return began

    def is_running(self) -> bool:
        """Whether its process has not ended."""
        return self._process.poll() is None

    def log(self) -> str:
        """Returns what it has written to standard error."""
        self._log.flush()
        return pathlib.Path(self._log.name).read_text(encoding="utf-8")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._temporary.cleanup()


def predict_request(texts: Sequence[str], signature: str = "", version: int | None = None) -> Any:
    """Returns a `PredictRequest`."""
    request = protos.message("PredictRequest")()
    request.model_spec.name = NAME
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    tensor = request.inputs["source"]
    tensor.dtype = protos.STRING
    tensor.tensor_shape.dim.add(size=len(texts))
    tensor.string_val.extend(text.encode() for text in texts)
    return request


def answers_of(response: Any) -> list[str]:
    """Returns the texts of a `PredictResponse`."""
    return [text.decode() for text in response.outputs["text"].string_val]


def status_request() -> Any:
    """Returns a `GetModelStatusRequest` for the server's model."""
    request = protos.message("GetModelStatusRequest")()
    request.model_spec.name = NAME
    return request


class Connection:
    """An asyncio connection to a server, without retries; use it in an `async with` statement."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self.predict, self.status = (self._method(name) for name in ("Predict", "GetModelStatus"))

    def _method(self, name: str) -> Any:
        _, request, response = protos.METHODS[name]
        return self._channel.unary_unary(
            protos.method_path(name),
            request_serializer=protos.message(request).SerializeToString,
            response_deserializer=protos.message(response).FromString,
        )

    async def versions(self) -> dict[int, str]:
        """Returns the name of each version's state."""
        response = await self.status(status_request(), timeout=30)
        return {
            status.version: protos.STATES[status.state] for status in response.model_version_status
        }

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._channel.close()


async def crowd(
    clients: int, jobs: Iterator[_Job], ask: Callable[[_Job], Awaitable[None]]
) -> float:
    """Lets clients ask at the same time; each asks again when it has its answer.

    Args:
        clients: how many.
        jobs: questions, shared by all clients.
        ask: asks one question.

    Returns:
        How many seconds it took.
    """
    started = time.perf_counter()

    async def client() -> None:
        for job in jobs:
            await ask(job)

    await asyncio.gather(*(client() for _ in range(clients)))
    return time.perf_counter() - started


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Returns the median and the 99th percentile, in milliseconds."""
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return statistics.median(ordered) * 1e3, last * 1e3
