"""The embedded server: TensorFlow Serving's gRPC protocol in one Python process.

It is for laptops, tests and continuous integration. In production, mount the same model folder into
TensorFlow Serving; `serving/deploy/README.md` lists the differences. The server answers
`PredictionService.Predict` and `GetModelMetadata`, `ModelService.GetModelStatus` and
`HandleReloadConfigRequest`, gRPC's health and reflection services, and the REST paths. `serve` is
the whole of the command line's server; `ModelServer` is a server within a program.
"""

import concurrent.futures
import contextlib
import errno
import logging
import os
import signal
import socket
import threading
import types
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import serving.lean_tensorflow  # noqa: F401  (before whatever imports TensorFlow)

# isort: split
import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from serving import grpc_services, observing, service_names, tls
from serving.errors import ServeError
from serving.model_config import ModelConfig
from serving.model_versions import ModelVersions
from serving.registry import Path, Registry, configs_of_folders
from serving.rest_server import RestServer
from serving.server_settings import DEFAULT_SETTINGS, ServerSettings
from serving.unreadable_messages import RefuseUnreadable

__all__ = ["ModelServer", "ServeError", "ServerSettings", "serve"]

logger = logging.getLogger(__name__)

# A model folder, one of its versions, such folders by name, or the config of each model.
Models = Path | Mapping[str, Path] | list[ModelConfig]

_SERVICES = service_names.service_names()
# The longest time until a signal is noticed.
_SIGNAL_SECONDS = 0.5


def _why_not_bound(host: str, port: int, uses_tls: bool) -> str:
    """Returns why gRPC could not listen at an address; gRPC itself gives no reason."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        return (
            f"The host {host} is not known; use 127.0.0.1 for this machine only, or 0.0.0.0 for "
            "all its networks."
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {port} is already in use; choose another with --port."
        if error.errno == errno.EACCES:
            return f"Port {port} needs administrator rights; choose one above 1023 with --port."
        return f"The server cannot listen at {host}:{port}: {error.strerror}."
    if uses_tls:
        return tls.NOT_ACCEPTED
    return f"The server cannot listen at {host}:{port}; choose another with --port."


class ModelServer:
    """A gRPC server for one model folder or several, with TensorFlow Serving's protocol.

    The object binds the port; `start` loads the models and answers requests:

        with ModelServer("models/localization_en_fr", ServerSettings(port=0)) as server:
            print(server.address)

    An empty model name in a request means the only model; TensorFlow Serving requires the name.

    Args:
        models: a model folder `models/NAME` that holds numbered versions, one such version (it
            alone is then served), a dict of model name to such a folder, or a list of
            `serving.model_config.ModelConfig`.
        settings: how it listens and answers.
        name: the model's name; by default the folder's. For a single folder only.

    Attributes:
        port, rest_port: the ports that it listens at.
        address, rest_address: `host:port`; None without REST.
        registry: the `serving.registry.Registry` of its models.

    Raises:
        ServeError: a folder has no model, the port is taken, or the TLS files are not valid; one
            sentence.
    """

    def __init__(
        self, models: Models, settings: ServerSettings = DEFAULT_SETTINGS, name: str | None = None
    ) -> None:
        configs = models if isinstance(models, list) else configs_of_folders(models, name)
        self.registry = Registry(configs, settings.batching, self._show_health)
        self.observer = observing.Observer()
        self._poll_seconds = settings.poll_seconds
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="verbatim-versions", daemon=True)
        self._started = False
        self._health = health.HealthServicer()
        self.uses_tls = settings.tls is not None
        credentials = settings.tls.grpc_credentials() if settings.tls else None
        self._grpc = self._make_grpc(settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.port = self._listen(f"{host}:{settings.port}", credentials)
        if not self.port:
            raise ServeError(_why_not_bound(settings.host, settings.port, self.uses_tls))
        self.address = f"{host}:{self.port}"
        self._rest: RestServer | None = None
        self.rest_port: int | None = None
        self.rest_address: str | None = None
        if settings.rest_port is not None:
            try:
                self._rest = RestServer(
                    self.registry,
                    settings.limits,
                    self.observer,
                    settings.host,
                    settings.rest_port,
                    access=settings.access,
                    files=settings.files,
                    echoes=settings.echoes,
                    grpc_port=self.port,
                    max_workers=settings.max_workers,
                    ssl_context=settings.tls.ssl_context() if settings.tls else None,
                )
            except ServeError:
                self._grpc.stop(0).wait()
                raise
            self.rest_port = self._rest.port
            self.rest_address = f"{host}:{self.rest_port}"

    def _make_grpc(self, settings: ServerSettings) -> grpc.Server:
        """Returns a gRPC server with all services, which does not listen yet."""
        workers, limits = settings.max_workers, settings.limits
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="verbatim-serve"),
            interceptors=[RefuseUnreadable(self.observer)],
            maximum_concurrent_rpcs=workers + settings.max_waiting,
            options=[
                # Without this, Linux lets a second server share the port, and requests go to
                # either.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", max(4 << 20, limits.request_bytes())),
            ],
        )
        prediction = grpc_services.PredictionService(self.registry, limits, self.observer)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(prediction, server)
        models_service = grpc_services.ModelService(self.registry, self.observer)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(models_service, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection(
            (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        return server

    def start(self) -> "ModelServer":
        """Loads the latest version of each model, then answers requests; returns itself.

        Raises:
            ServeError: a model has no version that can be loaded.
        """
        self.registry.load_first()
        self._grpc.start()
        if self._rest:
            self._rest.start()
        self._poller.start()
        self._started = True
        self._show_health()
        return self

    def stop(self, grace_seconds: float = 10.0) -> None:
        """Stops accepting requests, lets the running ones end, and frees the port.

        Args:
            grace_seconds: how long running requests may take before they are cancelled.
        """
        self._stopping.set()
        self._health.enter_graceful_shutdown()
        stopped = self._grpc.stop(grace_seconds)
        if self._rest:
            self._rest.stop(grace_seconds)
        stopped.wait()
        self.registry.stop_warming_up(grace_seconds)
        if self._started:
            # Loading a version cannot be interrupted; the thread is a daemon and ends after it.
            self._poller.join(timeout=grace_seconds)

    def __enter__(self) -> "ModelServer":
        try:
            return self.start()
        except BaseException:
            self.stop(0)
            raise

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _listen(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Returns the bound port; 0 if there is none, whatever gRPC's version does then."""
        try:
            port: int = (
                self._grpc.add_insecure_port(address)
                if credentials is None
                else self._grpc.add_secure_port(address, credentials)
            )
        except RuntimeError:
            return 0
        return port

    @property
    def models(self) -> dict[str, ModelVersions]:
        """Model name to `ModelVersions`."""
        return self.registry.models

    def _poll(self) -> None:
        while not self._stopping.wait(self._poll_seconds):
            self.registry.poll()

    def _show_health(self, ended: Iterable[str] = ()) -> None:
        """Tells gRPC's health service which models are served, and which no longer are.

        It ignores this once the server stops.
        """
        states = health_pb2.HealthCheckResponse
        for service in ended:
            self._health.set(service, states.NOT_SERVING)
        for service in ("", *_SERVICES, *self.models):
            self._health.set(service, states.SERVING)


@contextlib.contextmanager
def _stop_signals(event: threading.Event) -> Iterator[None]:
    """Sets the event at SIGTERM or SIGINT; a second signal ends the process as usual."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may change signal handlers.
        yield
        return
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def handle(number: int, frame: types.FrameType | None) -> None:
        restore()
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


def _whereabouts(server: ModelServer) -> Iterator[str]:
    """Yields the lines that tell which models a server serves, and at which addresses."""
    models = ", ".join(f"{model.name} version {model.version}" for model in server.models.values())
    protocol = "gRPC, TLS" if server.uses_tls else "gRPC"
    yield f"Serving {models} at {server.address} ({protocol})"
    if server.rest_address:
        scheme = "https" if server.uses_tls else "http"
        for name in server.models:
            path = urllib.parse.quote(name, safe="")
            yield f"REST at {scheme}://{server.rest_address}/v1/models/{path}"
        yield f"Web page at {scheme}://{server.rest_address}/"


def serve(
    models: Models,
    settings: ServerSettings = DEFAULT_SETTINGS,
    name: str | None = None,
    *,
    grace_seconds: float = 10.0,
    stop_event: threading.Event | None = None,
    request_log: str | os.PathLike[str] | None = None,
    announce: Callable[[str], object] = logger.info,
) -> None:
    """Serves until SIGTERM or SIGINT, then lets running requests end.

    Args:
        models, settings, name: as for `ModelServer`.
        grace_seconds: how long running requests may take after the signal.
        stop_event: an event that ends the server as a signal does; for use in programs.
        request_log: file that gets a line of JSON for each request, "-" for standard error; None is
            no log.
        announce: called with each of these lines once the server answers:
            `Serving NAME version V at HOST:PORT (gRPC)`, and with a REST port the addresses of each
            model's REST paths and of the web page. By default they are logged.

    Raises:
        ServeError: the server cannot start; one sentence.
    """
    stopped = stop_event or threading.Event()
    if request_log:
        observing.log_requests_to(request_log)
    with _stop_signals(stopped):
        server = ModelServer(models, settings, name)
        try:
            server.start()
            for line in _whereabouts(server):
                announce(line)
            # A signal that another thread receives, or that arrives just before the wait, does not
            # end a wait without a timeout.
            while not stopped.wait(_SIGNAL_SECONDS):
                pass
        finally:
            server.stop(grace_seconds)
