"""The embedded server: TensorFlow Serving's gRPC protocol in one Python process.

It is for a laptop, tests and continuous integration; in production the same model folder is mounted
into TensorFlow Serving, and clients notice no difference. It answers `PredictionService.Predict`
and `GetModelMetadata`, `ModelService.GetModelStatus` and `HandleReloadConfigRequest`, gRPC's health
and reflection services, and the REST paths. See `serve` for the one call that a command line needs
and `ModelServer` for a server within a program.
"""

import concurrent.futures
import contextlib
import errno
import logging
import signal
import socket
import threading

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

from serving import grpc_services, observing, protos, rest, tls
from serving.errors import ServeError
from serving.registry import Registry, configs_of_folders
from serving.servable import Limits
from serving.unreadable_messages import RefuseUnreadable

__all__ = ["ModelServer", "ServeError", "serve"]

logger = logging.getLogger(__name__)

_SERVICES = protos.service_names()
# How long a signal may go unnoticed.
_SIGNAL_SECONDS = 0.5


def _why_not_bound(host, port, uses_tls):
    """Returns the sentence for an address that gRPC could not listen at;
    gRPC itself gives no reason.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        return (
            f"The host {host} is not known; use 127.0.0.1 for this machine alone or 0.0.0.0 "
            "for all its networks."
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {port} is already in use; choose another with --port."
        if error.errno == errno.EACCES:
            return (
                f"Port {port} is reserved for the administrator; choose one above 1023 with --port."
            )
        return f"The server cannot listen at {host}:{port}: {error.strerror}."
    if uses_tls:
        return tls.NOT_ACCEPTED
    return f"The server cannot listen at {host}:{port}; choose another with --port."


class ModelServer:
    """A gRPC server for one model folder or several, with TensorFlow Serving's protocol.

    The port is bound when the object is made, the models are loaded and the server answers from
    `start` on:

        with ModelServer("models/localization_en_fr", port=0) as server:
            print(server.address)

    An empty model name in a request means the only model; TensorFlow Serving needs the name.

    Args:
        models: a model folder `models/NAME` that holds numbered versions, one such version (it
            alone is then served), a dict of model name to such a folder, or a list of
            `serving.model_config.ModelConfig`.
        port: 0 chooses a free one.
        host: the address to listen at; `0.0.0.0` is every network of the machine.
        name: the model's name; by default the folder's. For a single folder only.
        poll_seconds: how often the folders are looked at for new versions.
        max_batch_size: the most texts in a request.
        max_text_bytes: the most UTF-8 bytes in a text.
        max_workers: how many requests are answered at the same time, for gRPC and for REST; more
            wait. With `batching` these are the requests that can come together, so give it many.
        max_waiting: how many gRPC requests wait; more are told RESOURCE_EXHAUSTED.
        batching: a `serving.batching.Batching`; None answers each request by itself.
        tls_key: PEM file of the server's private key, with `tls_certificate`; None is no TLS.
        tls_certificate: PEM file of the server's certificate chain.
        tls_client_ca: PEM file of who signs clients' certificates; where given, clients must show
            one.
        rest_port: the port of the REST paths, Prometheus' numbers and the web page; 0 chooses a
            free one, None is no REST.

    Attributes:
        port, rest_port: the ports that are listened at.
        address, rest_address: `host:port`.
        registry: the `serving.registry.Registry` of its models.

    Raises:
        ServeError: a folder has no model, the port is taken, or the TLS files are no good; one
            sentence.
    """

    def __init__(
        self,
        models,
        port=8500,
        host="127.0.0.1",
        name=None,
        *,
        poll_seconds=2.0,
        max_batch_size=Limits.max_batch_size,
        max_text_bytes=Limits.max_text_bytes,
        max_workers=8,
        tls_key=None,
        tls_certificate=None,
        tls_client_ca=None,
        rest_port=None,
        batching=None,
        max_waiting=256,
    ):
        for number in (port, rest_port or 0):
            if not 0 <= number <= 65535:
                raise ServeError(f"A port is a number from 0 to 65535; got {number}.")
        configs = models if isinstance(models, list) else configs_of_folders(models, name)
        self.registry = Registry(configs, batching, self._show_health)
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="verbatim-versions", daemon=True)
        self._started = False
        encryption = tls.of_files(tls_key, tls_certificate, tls_client_ca)
        credentials = encryption and encryption.grpc_credentials()
        self.uses_tls = encryption is not None
        limits = Limits(max_batch_size, max_text_bytes)
        self.observer = observing.Observer()
        self._grpc = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers, thread_name_prefix="verbatim-serve"),
            interceptors=[RefuseUnreadable(self.observer)],
            maximum_concurrent_rpcs=max_workers + max_waiting,
            options=[
                # Without this, Linux lets a second server share the port, and requests go to
                # either.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", max(4 << 20, limits.request_bytes())),
            ],
        )
        prediction = grpc_services.PredictionService(self.registry, limits, self.observer)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(prediction, self._grpc)
        models_service = grpc_services.ModelService(self.registry, self.observer)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(models_service, self._grpc)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        reflection.enable_server_reflection(
            (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._grpc
        )
        bracketed = f"[{host}]" if ":" in host else host
        self.port = self._listen(f"{bracketed}:{port}", credentials)
        if not self.port:
            raise ServeError(_why_not_bound(host, port, self.uses_tls))
        self.address = f"{bracketed}:{self.port}"
        self._rest = None
        self.rest_port = self.rest_address = None
        if rest_port is not None:
            try:
                context = encryption and encryption.ssl_context()
                self._rest = rest.RestServer(
                    self.registry,
                    limits,
                    self.observer,
                    host,
                    rest_port,
                    max_workers,
                    ssl_context=context,
                )
            except ServeError:
                self._grpc.stop(0).wait()
                raise
            self.rest_port = self._rest.port
            self.rest_address = f"{bracketed}:{self.rest_port}"

    def start(self):
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

    def stop(self, grace_seconds=10.0):
        """Takes no new requests, lets the running ones end, and frees the port.

        Args:
            grace_seconds: how long running requests may take; then they are broken off.
        """
        self._stopping.set()
        self._health.enter_graceful_shutdown()
        stopped = self._grpc.stop(grace_seconds)
        if self._rest:
            self._rest.stop(grace_seconds)
        stopped.wait()
        if self._started:
            # Loading a version cannot be broken off; the thread is a daemon and ends after it.
            self._poller.join(timeout=grace_seconds)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop(0)
            raise

    def __exit__(self, *exception):
        self.stop()

    def _listen(self, address, credentials):
        """Returns the bound port; 0 if there is none. gRPC's versions differ in how they say so."""
        try:
            if credentials is None:
                return self._grpc.add_insecure_port(address)
            return self._grpc.add_secure_port(address, credentials)
        except RuntimeError:
            return 0

    @property
    def models(self):
        """Dict from model name to `ModelVersions`."""
        return self.registry.models

    def _poll(self):
        while not self._stopping.wait(self._poll_seconds):
            self.registry.poll()

    def _show_health(self, ended=()):
        """Tells gRPC's health service what is served, and which models no longer are;
        it takes nothing more once the server stops.
        """
        states = health_pb2.HealthCheckResponse
        for service in ended:
            self._health.set(service, states.NOT_SERVING)
        for service in ("", *_SERVICES, *self.models):
            self._health.set(service, states.SERVING)


@contextlib.contextmanager
def _stop_signals(event):
    """Sets the event at SIGTERM or SIGINT; a second signal ends the process as it does by default."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change signal handlers
        return
    before = {}

    def restore():
        while before:
            signal.signal(*before.popitem())

    def handle(number, frame):
        restore()
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


def serve(
    models,
    port=8500,
    host="127.0.0.1",
    name=None,
    *,
    grace_seconds=10.0,
    stop_event=None,
    request_log=None,
    **options,
):
    """Serves until SIGTERM or SIGINT, then lets running requests end.

    Once the server answers, it prints a line: `Serving NAME version V at HOST:PORT (gRPC)`; with a
    REST port also the addresses of the REST paths and of the web page.

    Args:
        models: as for `ModelServer`.
        port: 0 chooses a free one; the printed line names it.
        host: the address to listen at.
        name: the model's name; by default the folder's.
        grace_seconds: how long running requests may take after the signal.
        stop_event: a `threading.Event` that ends the server as a signal does; for programs.
        request_log: file that gets a line of JSON for each request, "-" for standard error; None is
            no log.
        **options: more arguments of `ModelServer`: rest_port, poll_seconds, max_batch_size,
            max_text_bytes, max_workers, max_waiting, batching, tls_key, tls_certificate,
            tls_client_ca.

    Raises:
        ServeError: the server cannot start; one sentence.
    """
    stopped = stop_event or threading.Event()
    if request_log:
        observing.log_requests_to(request_log)
    with _stop_signals(stopped):
        server = ModelServer(models, port, host, name, **options)
        try:
            server.start()
            models = ", ".join(
                f"{model.name} version {model.version}" for model in server.models.values()
            )
            protocol = "gRPC, TLS" if server.uses_tls else "gRPC"
            print(f"Serving {models} at {server.address} ({protocol})", flush=True)
            if server.rest_address:
                scheme = "https" if server.uses_tls else "http"
                print(f"REST at {scheme}://{server.rest_address}/v1/models", flush=True)
                print(f"Web page at {scheme}://{server.rest_address}/", flush=True)
            # A signal that another thread takes, or that comes just before the wait, does not wake
            # a wait without an end.
            while not stopped.wait(_SIGNAL_SECONDS):
                pass
        finally:
            server.stop(grace_seconds)
