"""Whether an engine can do a run's work: asked before the run begins.

Without these checks a job whose workers cannot start waits without end.
"""

import os
import pathlib
import socket
import threading
import uuid
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.portability.api import (
    beam_fn_api_pb2,
    beam_fn_api_pb2_grpc,
    beam_job_api_pb2,
    beam_job_api_pb2_grpc,
    endpoints_pb2,
)

from pipeline.common import progress
from pipeline.runners.engine import Engine
from pipeline.runners.engine_error import EngineError

# In seconds: to answer, to start a worker, and to do a step of no size.
_ANSWER = 10
_START = 60
_STEP = 300
_UNSEEN = "The workers do not see the folder"


def check(
    engine: Engine,
    folder: pathlib.Path | None,
    start_within: int = _START,
    step_within: int = _STEP,
) -> None:
    """Checks that job server, workers and folder work together.

    Args:
        engine: the engine.
        folder: where the work writes, which exists; None for an address in the network.
        start_within: how many seconds a worker has to start.
        step_within: how many seconds the engine has for a job of one step.

    Raises:
        EngineError: says which of them does not.
    """
    progress.say(f"Asking {engine.name} at {engine.master} for a job of one step")
    _check_job_server(engine)
    _check_workers(engine, start_within)
    _check_step(engine, folder, step_within)


def _check_job_server(engine: Engine) -> None:
    with _channel(engine.master, f"The job server of {engine.name} at {engine.master}") as channel:
        try:
            beam_job_api_pb2_grpc.JobServiceStub(channel).DescribePipelineOptions(
                beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=_ANSWER
            )
        except grpc.RpcError as error:
            raise EngineError(
                f"The program at {engine.master} is not a job server of Beam "
                f"({error.code().name}): give the address of a job server as --master."
            ) from None


def _channel(address: str, what: str) -> grpc.Channel:
    channel = grpc.insecure_channel(address)
    try:
        grpc.channel_ready_future(channel).result(timeout=_ANSWER)
    except grpc.FutureTimeoutError:
        channel.close()
        raise EngineError(
            f"{what} does not answer within {_ANSWER} seconds: start it, or correct the address."
        ) from None
    return channel


class _Control(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """What a worker connects to; it is sent home at once."""

    def __init__(self) -> None:
        self.connected = threading.Event()

    def Control(self, request_iterator: Any, context: Any) -> Iterator[Any]:
        self.connected.set()
        return iter(())


def _check_workers(engine: Engine, start_within: int) -> None:
    """Starts a worker, which must connect to this process.

    Each machine of the engine has a pool at this address, and this one too: why none starts is then
    known in a moment.
    """
    what = f"The pool of workers at {engine.workers}"
    with _channel(engine.workers, what) as channel:
        pool = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
        control = _Control()
        server = grpc.server(futures.ThreadPoolExecutor(2))
        beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(control, server)
        host = _own_host(engine.workers)
        port = server.add_insecure_port(f"{host}:0")
        server.start()
        worker = f"check-{uuid.uuid4().hex}"
        try:
            started = pool.StartWorker(
                beam_fn_api_pb2.StartWorkerRequest(
                    worker_id=worker,
                    control_endpoint=endpoints_pb2.ApiServiceDescriptor(url=f"{host}:{port}"),
                ),
                timeout=start_within,
            )
            if started.error:
                last = started.error.strip().splitlines()[-1].rstrip(".")
                raise EngineError(f"{what} cannot start a worker: {last}.")
            if not control.connected.wait(start_within):
                raise EngineError(
                    f"{what} started a worker that did not connect within {start_within} seconds: "
                    "start the pool with `verbatim workers`; the pool's log says why workers end."
                )
        except grpc.RpcError as error:
            raise EngineError(
                f"The program at {engine.workers} is not a pool of workers "
                f"({error.code().name}): start a pool there with `verbatim workers`."
            ) from None
        finally:
            server.stop(grace=5)


def _own_host(address: str) -> str:
    """Returns the address of this machine that another reaches."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_ANSWER) as connection:
        own: str = connection.getsockname()[0]
    return f"[{own}]" if ":" in own else own


def see(path: str) -> None:
    """Checks, in a worker, that a file is there, if it has a name.

    Raises:
        RuntimeError: it is not.
    """
    if path and not os.path.isfile(path):
        raise RuntimeError(f"{_UNSEEN} {os.path.dirname(path)} .")


def _check_step(engine: Engine, folder: pathlib.Path | None, step_within: int) -> None:
    """Has the engine look for a file in the folder, with as many workers as the work has."""
    name = engine.name.capitalize()
    file = folder / f".engine-{uuid.uuid4().hex}" if folder else None
    if file:
        file.touch()
    try:
        pipeline = beam.Pipeline(argv=engine.beam_args(step_within))
        # What is exchanged between all workers needs all slots at once, as the run does.
        _ = pipeline | beam.Create([str(file or "")]) | beam.Reshuffle() | beam.Map(see)
        result = pipeline.run()
        if result.wait_until_finish(duration=step_within * 1000) != "DONE":
            result.cancel()
            lacking = f"{engine.slots} free slots" if engine.name == "flink" else "a free core"
            raise EngineError(
                f"{name} did not end a job of one step within {step_within} "
                f"seconds: it lacks {lacking}, or its machines do not reach {engine.workers}. "
                f"Cancel that job in the web page of {name}, where it waits."
            )
    except (RuntimeError, grpc.RpcError, grpc.FutureTimeoutError) as error:
        if isinstance(error, EngineError):
            raise
        words = str(error)
        if _UNSEEN in words:
            raise EngineError(
                f"{_UNSEEN} {folder}: give an --output that all machines of {engine.name} share."
            ) from None
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        cause = next((line for line in lines if "Caused by" in line or "Error:" in line), "")
        raise EngineError(
            f"{name} failed in a job of one step: "
            f"{(cause or (lines or [type(error).__name__])[0])[:500].rstrip('.')}."
        ) from None
    finally:
        if file:
            file.unlink(missing_ok=True)
