"""The embedded server: TensorFlow Serving's gRPC protocol in one Python process.

It is for a laptop, tests and continuous integration; in production the same model folder is mounted into
TensorFlow Serving, and clients notice no difference. It answers `PredictionService.Predict` and
`GetModelMetadata`, and `ModelService.GetModelStatus`. See `serve` for the one call that a command line needs
and `ModelServer` for a server within a program.
"""

import concurrent.futures
import contextlib
import errno
import functools
import logging
import os
import pathlib
import signal
import socket
import threading

import grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from serving.versions import MODEL_FILE, Limits, ModelVersions, RequestRefused, ServeError

__all__ = ["ModelServer", "ServeError", "serve"]

logger = logging.getLogger(__name__)

# A gRPC status travels in an HTTP/2 header of 8 KiB; texts quoted from a request may be longer.
_MAX_SENTENCE = 500


def _answering(method):
    """Makes a service method end in an answer or a gRPC status, never in a traceback."""

    @functools.wraps(method)
    def wrapper(self, request, context):
        try:
            return method(self, request, context)
        except RequestRefused as refused:
            code, sentence = refused.code, refused.sentence
        except Exception:
            logger.exception("A %s request failed.", method.__name__)
            code, sentence = grpc.StatusCode.INTERNAL, "The server failed on this request; its log says why."
        # TensorFlow may quote bytes that are no text; as they are, gRPC could not send them.
        sentence = sentence.encode("utf-8", "backslashreplace").decode("utf-8")
        if len(sentence) > _MAX_SENTENCE:
            sentence = sentence[: _MAX_SENTENCE - 1] + "…"
        return context.abort(code, sentence)

    return wrapper


def _not_offered(name):
    def method(self, request, context):
        raise RequestRefused(grpc.StatusCode.UNIMPLEMENTED, f"This server does not offer {name}; use Predict.")

    method.__name__ = name
    return _answering(method)


class _Models:
    """Finds the model that a request means."""

    def __init__(self, models):
        self._models = models

    def find(self, spec):
        """Returns the `ModelVersions` and the version asked for (None: the latest) of a `ModelSpec`.

        Raises:
            RequestRefused: no such model, or a version label.
        """
        name = spec.name
        if not name:
            if len(self._models) > 1:
                raise RequestRefused(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"ModelSpec has no name specified; this server has {', '.join(sorted(self._models))}.",
                )
            name = next(iter(self._models))
        which = spec.WhichOneof("version_choice")
        version = spec.version.value if which == "version" else None
        if name not in self._models:
            asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RequestRefused(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {asked}; this server has {', '.join(sorted(self._models))}.",
            )
        if which == "version_label":
            raise RequestRefused(
                grpc.StatusCode.INVALID_ARGUMENT, f"Unrecognized servable version label: {spec.version_label}."
            )
        return self._models[name], version


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, models, limits):
        self._models = models
        self._limits = limits

    @_answering
    def Predict(self, request, context):
        if not context.is_active():  # the client gave up while the request waited for a thread
            raise RequestRefused(grpc.StatusCode.CANCELLED, "The client did not wait for the answer.")
        model, version = self._models.find(request.model_spec)
        with model.use(version) as servable:
            response = servable.predict(request, self._limits)
        response.model_spec.name = model.name
        return response

    @_answering
    def GetModelMetadata(self, request, context):
        if not request.metadata_field:
            raise RequestRefused(
                grpc.StatusCode.INVALID_ARGUMENT,
                "GetModelMetadataRequest must specify at least one metadata_field: signature_def.",
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise RequestRefused(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"Metadata field {field} is not supported; signature_def is the only one.",
                )
        model, version = self._models.find(request.model_spec)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        with model.use(version) as servable:
            for name, signature in servable.signature_defs.items():
                signatures.signature_def[name].CopyFrom(signature)
            response.model_spec.version.value = servable.version
        response.model_spec.name = model.name
        response.metadata["signature_def"].Pack(signatures)
        return response

    Classify = _not_offered("Classify")
    Regress = _not_offered("Regress")
    MultiInference = _not_offered("MultiInference")


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, models):
        self._models = models

    @_answering
    def GetModelStatus(self, request, context):
        model, version = self._models.find(request.model_spec)
        states = [state for state in model.states() if version in (None, state.version)]
        if not states:
            raise RequestRefused(grpc.StatusCode.NOT_FOUND, f"Could not find version {version} of model {model.name}.")
        response = get_model_status_pb2.GetModelStatusResponse()
        for state in states:
            status = response.model_version_status.add(version=state.version, state=state.state)
            if state.error:
                status.status.error_code = grpc.StatusCode.UNKNOWN.value[0]
                status.status.error_message = state.error
        return response

    HandleReloadConfigRequest = _not_offered("HandleReloadConfigRequest")


def _open_models(models, name):
    """Returns name to `ModelVersions` for a folder, or a mapping of names to folders."""
    if not isinstance(models, dict):
        base, _ = _split_version(models)
        models = {name or base.name: models}
    elif not models:
        raise ServeError("There is no model to serve.")
    return {name: ModelVersions(name, *_split_version(folder)) for name, folder in models.items()}


def _split_version(folder):
    """Returns the model folder and, where `folder` is one of its versions, that version; else None."""
    folder = pathlib.Path(os.path.abspath(folder))  # so that `models/demo/.` has a name, too
    if not (folder / MODEL_FILE).is_file():
        return folder, None
    if not (folder.name.isascii() and folder.name.isdecimal()):
        raise ServeError(
            f"The folder {folder} holds a SavedModel but is not named by a version number; move it to {folder}/1."
        )
    return folder.parent, int(folder.name)


def _read_tls(key, certificate):
    """Returns gRPC server credentials, or None without TLS.

    Raises:
        ServeError: one of the two files is missing or cannot be read.
    """
    if key is None and certificate is None:
        return None
    if key is None or certificate is None:
        raise ServeError("TLS needs both a key and a certificate.")
    contents = []
    for path in (key, certificate):
        try:
            contents.append(pathlib.Path(path).read_bytes())
        except OSError as error:
            raise ServeError(f"The TLS file {path} cannot be read: {error.strerror}.") from None
        if b"-----BEGIN " not in contents[-1]:
            raise ServeError(f"The TLS file {path} is not in PEM format.")
    return grpc.ssl_server_credentials([tuple(contents)])


def _why_not_bound(host, port, tls):
    """Returns the sentence for an address that gRPC could not listen at; gRPC itself gives no reason."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        return f"The host {host} is not known; use 127.0.0.1 for this machine alone or 0.0.0.0 for all its networks."
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {port} is already in use; choose another with --port."
        if error.errno == errno.EACCES:
            return f"Port {port} is reserved for the administrator; choose one above 1023 with --port."
        return f"The server cannot listen at {host}:{port}: {error.strerror}."
    if tls:
        return "The TLS key and certificate are not accepted; they must be PEM files that belong together."
    return f"The server cannot listen at {host}:{port}; choose another with --port."


class ModelServer:
    """A gRPC server for one model folder or several, with TensorFlow Serving's protocol.

    The port is bound when the object is made, the models are loaded and the server answers from `start` on:

        with ModelServer("models/localization_en_fr", port=0) as server:
            print(server.address)

    An empty model name in a request means the only model; TensorFlow Serving needs the name.

    Args:
        models: a model folder `models/NAME` that holds numbered versions, one such version (it alone is then
            served), or a dict of model name to such a folder.
        port: 0 chooses a free one.
        host: the address to listen at; `0.0.0.0` is every network of the machine.
        name: the model's name; by default the folder's. Not used when `models` is a dict.
        poll_seconds: how often the folders are looked at for new versions.
        max_batch_size: the most texts in a request.
        max_text_bytes: the most UTF-8 bytes in a text.
        max_workers: how many requests run at the same time; more wait.
        tls_key: PEM file of the server's private key, with `tls_certificate`; None is no TLS.
        tls_certificate: PEM file of the server's certificate chain.

    Attributes:
        port: the port that is listened at.
        address: `host:port`.
        models: model name to `ModelVersions`.

    Raises:
        ServeError: a folder has no model, the port is taken, or the TLS files are no good; one sentence.
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
    ):
        if not 0 <= port <= 65535:
            raise ServeError(f"A port is a number from 0 to 65535; got {port}.")
        self.models = _open_models(models, name)
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="verbatim-versions", daemon=True)
        self._started = False
        credentials = _read_tls(tls_key, tls_certificate)
        self.uses_tls = credentials is not None
        self._grpc = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers, thread_name_prefix="verbatim-serve"),
            options=[
                # Without this, Linux lets a second server share the port, and requests go to either.
                ("grpc.so_reuseport", 0),
                # Room for a full batch of full texts on both inputs of `score`, and for what surrounds them.
                ("grpc.max_receive_message_length", max(4 << 20, 2 * max_batch_size * (max_text_bytes + 64))),
            ],
        )
        found = _Models(self.models)
        prediction = _PredictionService(found, Limits(max_batch_size, max_text_bytes))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(prediction, self._grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(found), self._grpc)
        self._health = self._add_health_service()
        bracketed = f"[{host}]" if ":" in host else host
        self.port = self._listen(f"{bracketed}:{port}", credentials)
        if not self.port:
            raise ServeError(_why_not_bound(host, port, self.uses_tls))
        self.address = f"{bracketed}:{self.port}"

    def start(self):
        """Loads the latest version of each model, then answers requests; returns itself.

        Raises:
            ServeError: a model has no version that can be loaded.
        """
        for model in self.models.values():
            model.load_first()
        self._grpc.start()
        self._poller.start()
        self._started = True
        self._set_health(True)
        return self

    def stop(self, grace_seconds=10.0):
        """Takes no new requests, lets the running ones end, and frees the port.

        Args:
            grace_seconds: how long running requests may take; then they are broken off.
        """
        self._stopping.set()
        self._set_health(False)
        self._grpc.stop(grace_seconds).wait()
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

    def _poll(self):
        while not self._stopping.wait(self._poll_seconds):
            for model in self.models.values():
                try:
                    model.poll()
                except Exception:  # the next poll may well succeed
                    logger.exception("Looking for new versions of %s failed.", model.name)

    def _add_health_service(self):
        """Adds gRPC's own health service, for probes, if the optional `grpcio-health-checking` is installed."""
        try:
            from grpc_health.v1 import health, health_pb2_grpc
        except ImportError:
            return None
        servicer = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(servicer, self._grpc)
        return servicer

    def _set_health(self, serving):
        if self._health is None:
            return
        from grpc_health.v1 import health_pb2

        states = health_pb2.HealthCheckResponse
        for service in ("", *self.models):
            self._health.set(service, states.SERVING if serving else states.NOT_SERVING)


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


def serve(model_directory, port=8500, host="127.0.0.1", name=None, *, grace_seconds=10.0, stop_event=None, **options):
    """Serves until SIGTERM or SIGINT, then lets running requests end.

    Once the server answers, it prints one line: `Serving NAME version V at HOST:PORT (gRPC)`.

    Args:
        model_directory: `models/NAME`, one of its version folders, or a dict of names to such folders.
        port: 0 chooses a free one; the printed line names it.
        host: the address to listen at.
        name: the model's name; by default the folder's.
        grace_seconds: how long running requests may take after the signal.
        stop_event: a `threading.Event` that ends the server as a signal does; for programs.
        **options: more arguments of `ModelServer`: poll_seconds, max_batch_size, max_text_bytes, max_workers,
            tls_key, tls_certificate.

    Raises:
        ServeError: the server cannot start; one sentence.
    """
    stopped = stop_event or threading.Event()
    with _stop_signals(stopped):
        server = ModelServer(model_directory, port, host, name, **options)
        try:
            server.start()
            models = ", ".join(f"{model.name} version {model.version}" for model in server.models.values())
            protocol = "gRPC, TLS" if server.uses_tls else "gRPC"
            print(f"Serving {models} at {server.address} ({protocol})", flush=True)
            stopped.wait()
        finally:
            server.stop(grace_seconds)
