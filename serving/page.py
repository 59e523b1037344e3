"""The web page of the embedded server: an answer, and where each of its words came from.

The page is the files of `web/`, unchanged. It asks for answers at TensorFlow Serving's REST paths
like every other client. Its own paths are `/` and those below `/web/`, where TensorFlow
Serving has nothing (its paths begin with `/v1/` and `/monitoring/`). `/web/models` lists what can
be asked:

    {"models": [{"name": "localization_en_fr", "labels": {"stable": "7"}, "versions": [
        {"version": "7", "has_card": true, "signatures": {
            "n_best": {"inputs": ["source"], "outputs": ["text", ...]}, ...}}]}],
     "grpc_port": 8500, "needs_key": false,
     "files": {"suffixes": [".txt", ".po", ...], "max_bytes": 4194304}}

`files` is null where none are translated. `serving.page_actions` has the page's other paths.

Versions are those that answer, the latest first. They are strings, as in TensorFlow Serving's JSON:
JavaScript's numbers are too small.
"""

import contextlib
import functools
import pathlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypedDict

from aiohttp import web

from serving.errors import RequestRefused
from serving.model_versions import ModelVersions
from serving.observing import Request
from serving.registry import Registry

# A function that answers a request in a thread, from it, its body, and the `Request` that is
# observed.
Work = Callable[[web.Request, bytes, Request], Any]
# Of a request and the name of its method for logs; it responds with the JSON that the work returns.
Answer = Callable[[web.Request, str, Work], Awaitable[web.Response]]


class SignatureEntry(TypedDict):
    """Names of inputs and outputs."""

    inputs: list[str]
    outputs: list[str]


class VersionEntry(TypedDict):
    """A version that answers."""

    version: str
    has_card: bool
    signatures: dict[str, SignatureEntry]


class ModelEntry(TypedDict):
    """The signatures of one model's versions."""

    name: str
    labels: dict[str, str]
    versions: list[VersionEntry]


class FilesEntry(TypedDict):
    """The files that the server translates."""

    suffixes: list[str]
    max_bytes: int


class ServerEntry(TypedDict):
    """What the page tells of the server; `files` is None where it translates none."""

    grpc_port: int
    needs_key: bool
    files: FilesEntry | None


class ModelList(ServerEntry):
    """The JSON at `/web/models`."""

    models: list[ModelEntry]


_DIRECTORY = pathlib.Path(__file__).parent / "web"
_FILES = {
    "/": ("index.html", "text/html"),
    "/web/page.js": ("page.js", "text/javascript"),
    "/web/answer.js": ("answer.js", "text/javascript"),
    "/web/calls.js": ("calls.js", "text/javascript"),
    "/web/card.js": ("card.js", "text/javascript"),
    "/web/elements.js": ("elements.js", "text/javascript"),
    "/web/files.js": ("files.js", "text/javascript"),
    "/web/server.js": ("server.js", "text/javascript"),
    "/web/ways.js": ("ways.js", "text/javascript"),
    "/web/base.css": ("base.css", "text/css"),
    "/web/style.css": ("style.css", "text/css"),
    "/web/icon.svg": ("icon.svg", "image/svg+xml"),
}
# Headers of every response, so that no path of the server gives another page something to run, to
# embed or to read. A page of another site can make a browser send a predict request, but it cannot
# read the answer: no response has an Access-Control-Allow header. Nor does the request change
# anything in the server, which has no cookies or sessions; only gRPC changes models. This does not
# stop a site that lets its own name point to this machine (DNS rebinding); where that matters,
# serve with TLS, whose certificate has another name.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_page(
    application: web.Application, registry: Registry, about: ServerEntry, answer: Answer
) -> None:
    """Adds the page, its files, the list of models, and the headers that protect all responses.

    Args:
        application: the application.
        registry: the models.
        about: what the page tells of the server.
        answer: function that runs the work of a request in a thread; see `Answer`.
    """
    for path, (name, content_type) in _FILES.items():
        content = (_DIRECTORY / name).read_bytes()
        application.router.add_get(path, functools.partial(_file, content, content_type))

    def list_models(request: web.Request, body: bytes, seen: Request) -> ModelList:
        return {"models": _models(registry), **about}

    async def get_models(request: web.Request) -> web.Response:
        return await answer(request, "web_models", list_models)

    application.router.add_get("/web/models", get_models)
    application.on_response_prepare.append(_protect)


async def _file(content: bytes, content_type: str, request: web.Request) -> web.Response:
    # Never cached: a page of one release must not load another's script.
    headers = {"Cache-Control": "no-cache"}
    return web.Response(body=content, content_type=content_type, charset="utf-8", headers=headers)


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def _models(registry: Registry) -> list[ModelEntry]:
    """Returns what the page can ask for: models with their labels and the versions that answer."""
    return [
        {
            "name": name,
            "labels": {label: str(version) for label, version in sorted(model.labels.items())},
            "versions": list(_versions(model)),
        }
        for name, model in sorted(registry.models.items())
    ]


def card_path(model: ModelVersions, version: int) -> pathlib.Path:
    """Returns where the pipeline puts a version's model card."""
    return model.base / f"model_card_{version}.md"


def _versions(model: ModelVersions) -> Iterator[VersionEntry]:
    for state in model.states():
        # A version may have been retired in the meantime.
        with contextlib.suppress(RequestRefused), model.use(state.version) as servable:
            signatures = servable.signature_defs
            yield {
                "version": str(state.version),
                "has_card": card_path(model, state.version).is_file(),
                "signatures": {
                    name: {
                        "inputs": sorted(signatures[name].inputs),
                        "outputs": sorted(signatures[name].outputs),
                    }
                    for name in sorted(signatures)
                },
            }
