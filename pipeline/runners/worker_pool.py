"""The pool that starts the Python workers of an engine, on each of its machines.

An engine asks for a worker at each job, some for each stage of it, and a new Python takes ten
seconds to import TensorFlow and TFX. So one process imports them, and each worker is a fork of it.
"""

import contextlib
import importlib
import logging
import multiprocessing.connection
import signal
import threading
from concurrent import futures
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from pipeline.runners.engine_error import EngineError

#: What the steps of a run import.
MODULES = (
    "apache_beam.runners.worker.sdk_worker",
    "components.evaluator.executor",
    "components.lexicon.executor",
    "components.parallel_text_example_gen.executor",
    "components.subwords.executor",
    "components.text_example_gen.executor",
    "components.text_transform.executor",
    "components.vocabulary.executor",
    "tfx.components.statistics_gen.executor",
)
# How many requests for workers are answered at the same time.
_ANSWERED_AT_ONCE = 8
# Beam's own: milliseconds that a worker holds data back (-1: it does not), and entries that it
# remembers of what the engine keeps.
_HELD_BACK, _REMEMBERED = -1, 0
# How large the messages are in which a worker sends its elements. An engine reads up to 100 of them
# ahead of what it has worked off, for each stage: of Beam's own 10 MB, more than its heap holds.
_MESSAGE_BYTES = 512 * 1024
# How often a worker is started for which its engine would otherwise wait without end, and the exit
# statuses after which it is not started again: it has ended by itself, or was told to.
_STARTS = 3
_ENDED = (0, -signal.SIGTERM, -signal.SIGINT)

_LOGGER = logging.getLogger(__name__)


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Beam's protocol for pools, for engines of several processes that share a machine.

    Two TaskManagers give their workers the same names. Beam's own pool then stops the worker of one
    when the other has done its work. Here workers are not stopped: each ends when its engine closes
    the connection to it.

    An engine waits without end for a worker that dies before it has connected. So another one of
    the same name takes its place.
    """

    def __init__(self, modules: tuple[str, ...] = MODULES) -> None:
        """Takes the names of the modules that workers find imported."""
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(modules))
        self._modules = modules
        self._lock = threading.Lock()
        self.workers: list[Any] = []

    def why_no_worker_starts(self) -> str:
        """Imports the modules for all workers; returns why one cannot be imported, or nothing."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_import, args=(self._modules, theirs))
        process.start()
        theirs.close()
        try:
            return ours.recv()
        except EOFError:
            process.join()
            return f"Python ended with {process.exitcode}"

    def StartWorker(self, start_worker_request: Any, unused_context: Any) -> Any:
        """Starts a worker; what the engine is told is empty, or why there is none."""
        endpoint, name = start_worker_request.control_endpoint.url, start_worker_request.worker_id
        try:
            started = self._start(endpoint, name)
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
        watch = threading.Thread(target=self._replace, args=(endpoint, name, *started), daemon=True)
        watch.name = f"worker {name}"
        watch.start()
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, stop_worker_request: Any, unused_context: Any) -> Any:
        """Stops nothing: see the class."""
        return beam_fn_api_pb2.StopWorkerResponse()

    def _start(self, endpoint: str, name: str) -> tuple[Any, Any]:
        """Starts a worker; returns it, and where it says that it has been asked to do something."""
        ours, theirs = self._context.Pipe(duplex=False)
        worker = self._context.Process(target=work, args=(endpoint, name, theirs), daemon=True)
        with theirs, self._lock:
            worker.start()
            self.workers.append(worker)
        _LOGGER.info("Worker %s is process %d", name, worker.pid)
        return worker, ours

    def _replace(self, endpoint: str, name: str, worker: Any, connection: Any) -> None:
        """Starts a worker anew as long as it dies before it has been asked to do anything."""
        for starts_left in reversed(range(_STARTS)):
            multiprocessing.connection.wait([worker.sentinel])
            # `start` asks for the exit status of each; of two who ask at once, one is told a wrong
            # one.
            with self._lock:
                worker.join()
                self.workers.remove(worker)
            if worker.exitcode in _ENDED or _has_heard(connection):
                return
            then = "it is started again" if starts_left else "that was its last start"
            words = "Worker %s (process %d) ended with %d before it was given work: %s"
            _LOGGER.warning(words, name, worker.pid, worker.exitcode, then)
            if starts_left:
                worker, connection = self._start(endpoint, name)


def work(endpoint: str, name: str, connection: Any) -> None:
    """Is a worker, until its engine closes the connection.

    Args:
        endpoint: where the engine tells it what to do.
        name: the engine's name for it.
        connection: where it says that the engine has told it something, or is no longer there.
    """
    from apache_beam.runners.worker import sdk_worker

    class Harness(sdk_worker.SdkHarness):
        def _request_process_bundle(self, request: Any) -> None:
            _say_heard(connection)
            super()._request_process_bundle(request)

    limit_messages()
    harness = Harness(
        endpoint,
        worker_id=name,
        state_cache_size=_REMEMBERED,
        data_buffer_time_limit_ms=_HELD_BACK,
    )
    try:
        harness.run()
    finally:
        _say_heard(connection)


def _say_heard(connection: Any) -> None:
    """Says, once, that the engine has found its worker; the pool may be gone."""
    if connection.closed:
        return
    with contextlib.suppress(OSError):
        connection.send(True)
    connection.close()


def _has_heard(connection: Any) -> bool:
    """Returns whether a worker that has ended said that its engine had found it."""
    try:
        with connection:
            return connection.recv()
    except EOFError:
        return False


def limit_messages() -> None:
    """Has this process send its elements in messages of `_MESSAGE_BYTES`.

    Both what a stage sends at once and what has been waiting and is sent together are limited. Beam
    has no option for either.
    """
    from apache_beam.runners.worker import data_plane

    class Limited(data_plane.SizeBasedBufferingClosableOutputStream):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{"size_flush_threshold": _MESSAGE_BYTES, **options})

    data_plane.SizeBasedBufferingClosableOutputStream = Limited
    data_plane._DEFAULT_SIZE_FLUSH_THRESHOLD = _MESSAGE_BYTES


def _import(modules: tuple[str, ...], connection: Any) -> None:
    """Imports modules, in a fork; sends what went wrong."""
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception as error:  # Whatever a module raises is the answer.
        connection.send(f"{type(error).__name__}: {error}")
    else:
        connection.send("")


def start(port: int, modules: tuple[str, ...] = MODULES) -> Any:
    """Starts a pool; returns its server, which ends with the process.

    Args:
        port: where it listens.
        modules: what workers find imported.

    Raises:
        EngineError: one of the modules cannot be imported, or the port is taken.
    """
    pool = WorkerPool(modules)
    if why := pool.why_no_worker_starts():
        raise EngineError(f"Workers cannot start: {why.rstrip('.')}.")
    server = grpc.server(
        futures.ThreadPoolExecutor(_ANSWERED_AT_ONCE),
        options=[
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.max_ping_strikes", 0),
            ("grpc.so_reuseport", 0),
        ],
    )
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        server.add_insecure_port(f"[::]:{port}")
    except RuntimeError:
        raise EngineError(f"Port {port} is taken: give another one as --port.") from None
    server.start()
    return server
