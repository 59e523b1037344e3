"""TensorFlow Serving's REST paths on a `Registry` of models, and the web page.

The paths are predict, status, metadata, and Prometheus' metrics; `/healthz` and `/metrics` are the
usual names. LibreTranslate's paths are those of `serving.libre_translate`.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import ssl
import threading
from collections.abc import Collection, Coroutine
from typing import Any, TypedDict, TypeVar

import grpc
from aiohttp import web
from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, model_pb2

from serving import (
    grpc_services,
    json_tensors,
    libre_translate,
    page,
    page_actions,
    rest_paths,
)
from serving.access import OPEN, Access, Gate
from serving.batching import GivenUp
from serving.errors import RequestRefused, ServeError, cancelled
from serving.file_translator import FileTranslator
from serving.limits import Limits
from serving.observing import REQUEST_ID, Observer, Request
from serving.registry import Registry
from serving.servable import DEFAULT_SIGNATURE

T = TypeVar("T")

# As TensorFlow Serving has them; all others are 500.
_HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}
# The option of `MessageToDict` for fields that are not set has had two names.
_WITH_DEFAULTS: dict[str, Any] = {
    name: True
    for name in ("always_print_fields_with_no_presence", "including_default_value_fields")
    if name in inspect.signature(json_format.MessageToDict).parameters
}
_LOADING = "The server is loading its models; try again soon."


class StatusCode(TypedDict):
    """Whether a version could be loaded, in the JSON of a status."""

    error_code: str
    error_message: str


class VersionStatus(TypedDict):
    """The state of one version, in the JSON of a status."""

    version: str
    state: str
    status: StatusCode


class RestServer:
    """An HTTP server in a thread of its own.

    The object binds the port; the server answers once `start` is called.

    Args:
        registry: the `Registry` of models.
        limits: the `Limits` of a request.
        observer: the `Observer` of requests.
        host, port: where to listen; port 0 chooses a free one.
        access: who may use LibreTranslate's API and have files translated, and how often.
        files: translates the files that the web page sends; None refuses them.
        echoes: as in `ServerSettings`.
        grpc_port: the port of gRPC, which the web page names.
        max_workers: how many requests run at the same time; more wait.
        ssl_context: for TLS; None is no TLS.

    Attributes:
        port: the port that is listened at.

    Raises:
        ServeError: the port cannot be used; one sentence.
    """

    def __init__(
        self,
        registry: Registry,
        limits: Limits,
        observer: Observer,
        host: str,
        port: int,
        *,
        access: Access = OPEN,
        files: FileTranslator | None = None,
        echoes: Collection[libre_translate.LanguagePair] = (),
        grpc_port: int = 0,
        max_workers: int = 8,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._observer = observer
        self._ready = False
        self._workers = concurrent.futures.ThreadPoolExecutor(
            max_workers, thread_name_prefix="verbatim-rest"
        )
        # JSON may escape a character in six bytes. A file comes in base64, with a glossary.
        self._body_bytes = limits.request_bytes(spelling=6)
        self._file_body_bytes = 4 * limits.max_file_bytes // 3 + (1 << 20)
        application = web.Application()
        gate = Gate(access)
        application.router.add_route("*", "/{v1:[vV]1}/{path:.*}", self._v1)
        for path in ("/monitoring/prometheus/metrics", "/metrics"):
            application.router.add_get(path, self._get_metrics)
        application.router.add_get("/healthz", self._get_health)
        about: page.ServerEntry = {
            "grpc_port": grpc_port,
            "needs_key": gate.needs_key,
            "files": {"suffixes": list(files.suffixes), "max_bytes": limits.max_file_bytes}
            if files
            else None,
        }
        page.add_page(application, registry, about, self._answer)
        page_actions.add_actions(
            application, registry, limits, gate, files, self._answer, _whether_given_up
        )
        libre_translate.add_paths(
            application, registry, limits, gate, self._answer, _whether_given_up, echoes
        )
        application.router.add_route("*", "/{path:.*}", self._not_found)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="verbatim-http", daemon=True
        )
        self._thread.start()
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)
        try:
            self.port = self._wait(self._listen(host, port, ssl_context))
        except OSError as error:
            self.stop(0)
            raise ServeError(
                f"The REST port {host}:{port} cannot be used: {error.strerror or error}."
            ) from None

    async def _listen(self, host: str, port: int, ssl_context: ssl.SSLContext | None) -> int:
        await self._runner.setup()
        await web.TCPSite(
            self._runner, host, port, ssl_context=ssl_context, reuse_port=False
        ).start()
        bound: int = self._runner.addresses[0][1]
        return bound

    def start(self) -> None:
        """Starts to answer requests; until now they were refused with "try again"."""
        self._ready = True

    def stop(self, grace_seconds: float) -> None:
        """Stops accepting requests, lets the running ones end, and frees the port."""
        self._wait(self._end(grace_seconds))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.shutdown(wait=False)

    async def _end(self, grace_seconds: float) -> None:
        # The runner's own timeout is set when it is made, before the grace is known.
        for site in self._runner.sites:
            await site.stop()
        if self._runner.server:
            # Closes idle connections.
            self._runner.server.pre_shutdown()
            await self._runner.server.shutdown(grace_seconds)
        await self._runner.cleanup()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _v1(self, request: web.Request) -> web.Response:
        try:
            path = rest_paths.read(request.method, request.rel_url.raw_path)
        except RequestRefused as refused:
            return await self._answer(request, "rest_other", functools.partial(_refuse, refused))
        if path.method in ("classify", "regress"):
            missing = RequestRefused(
                grpc.StatusCode.UNIMPLEMENTED,
                f"This server does not offer {path.method}; use predict.",
            )
            return await self._answer(request, "rest_other", functools.partial(_refuse, missing))
        work = {"predict": self._predict, "status": self._status, "metadata": self._metadata}
        # A model that still loads says so.
        return await self._answer(
            request,
            f"rest_{path.method}",
            functools.partial(work[path.method], path.spec),
            while_loading=path.method == "status",
        )

    async def _get_health(self, request: web.Request) -> web.Response:
        if not self._ready:
            return web.Response(status=503, text=f"{_LOADING}\n")
        return web.Response(text="ok\n")

    async def _get_metrics(self, request: web.Request) -> web.Response:
        text, content_type = self._observer.metrics(self._registry.models)
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _not_found(self, request: web.Request) -> web.Response:
        return _error(
            404,
            f"There is nothing at {request.method} {request.path}; models are at /v1/models/NAME.",
        )

    async def _answer(
        self, request: web.Request, method: str, work: page.Work, while_loading: bool = False
    ) -> web.Response:
        """Runs `work` in a thread; its refusal becomes an HTTP status and a sentence."""
        with self._observer.request("http", method, request.headers.get(REQUEST_ID)) as seen:
            try:
                if not (self._ready or while_loading):
                    raise RequestRefused(grpc.StatusCode.UNAVAILABLE, _LOADING)
                takes_file = request.path == page_actions.TRANSLATE_PATH
                size = self._file_body_bytes if takes_file else self._body_bytes
                body = await _read(request, size)
                run = asyncio.get_running_loop().run_in_executor
                value = await run(self._workers, grpc_services.answer, work, request, body, seen)
                response = web.json_response(value)
            except RequestRefused as refused:
                seen.code = refused.code.name
                response = _error(_HTTP_STATUS.get(refused.code, 500), refused.sentence)
        response.headers[REQUEST_ID] = seen.id
        return response

    def _predict(
        self,
        spec: model_pb2.ModelSpec,
        request: web.Request,
        body: bytes,
        seen: Request,
    ) -> json_tensors.Response:
        model, version = self._registry.find(spec)
        seen.model = model.name
        with model.use(version) as servable:
            seen.version = servable.version
            message, by_rows = json_tensors.read_request(
                json_tensors.parse(body), servable.signature_defs, DEFAULT_SIGNATURE
            )
            seen.signature = message.model_spec.signature_name
            seen.texts = grpc_services.count_texts(message)
            response = servable.predict(
                message, self._limits, functools.partial(_given_up, request)
            )
            return json_tensors.write_response(response, by_rows)

    def _status(
        self, spec: model_pb2.ModelSpec, request: web.Request, body: bytes, seen: Request
    ) -> dict[str, list[VersionStatus]]:
        response = grpc_services.status(self._registry, spec)
        seen.model = spec.name
        return {
            "model_version_status": [
                {
                    "version": str(entry.version),
                    "state": type(entry).State.Name(entry.state),
                    "status": {
                        "error_code": "OK" if not entry.status.error_code else "UNKNOWN",
                        "error_message": entry.status.error_message,
                    },
                }
                for entry in response.model_version_status
            ]
        }

    def _metadata(
        self, spec: model_pb2.ModelSpec, request: web.Request, body: bytes, seen: Request
    ) -> json_tensors.Json:
        response = grpc_services.metadata(self._registry, spec)
        seen.model = response.model_spec.name
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return {
            "model_spec": {
                "name": response.model_spec.name,
                "signature_name": "",
                "version": str(response.model_spec.version.value),
            },
            "metadata": {
                "signature_def": json_format.MessageToDict(
                    signatures, preserving_proto_field_name=True, **_WITH_DEFAULTS
                )
            },
        }


async def _read(request: web.Request, most_bytes: int) -> bytes:
    """Returns the body of a request, which may have so many bytes."""
    try:
        return await request.clone(client_max_size=most_bytes).read()
    except web.HTTPRequestEntityTooLarge:
        raise RequestRefused(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "The request is larger than the server takes; send fewer or shorter texts.",
        ) from None


def _refuse(refused: RequestRefused, request: web.Request, body: bytes, seen: Request) -> None:
    raise refused


def _given_up(request: web.Request) -> RequestRefused | None:
    """Returns the refusal of a request whose connection was closed; None while it is open."""
    transport = request.transport
    return cancelled() if transport is None or transport.is_closing() else None


def _whether_given_up(request: web.Request) -> GivenUp:
    return functools.partial(_given_up, request)


def _error(status: int, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
