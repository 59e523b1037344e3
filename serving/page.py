"""The web page of the embedded server:
type a text, see the answer and where each of its words came from.

The page is the files of `web/`, as they are. It asks for answers at TensorFlow Serving's REST paths
like every other client; what is added for it lies at `/` and below `/web/`, where TensorFlow
Serving has nothing (its paths begin with `/v1/` and `/monitoring/`). `/web/models` lists what can
be asked:

    {"models": [{"name": "localization_en_fr", "labels": {"stable": "7"}, "versions": [
        {"version": "7", "signatures": {"n_best": {"inputs": ["source"], "outputs": ["text", ...]},
        ...}}]}]}

Versions are those that answer, the latest first. They are strings, as in TensorFlow Serving's JSON:
JavaScript's numbers are too small.
"""

import contextlib
import functools
import pathlib

from aiohttp import web

from serving.errors import RequestRefused

_DIRECTORY = pathlib.Path(__file__).parent / "web"
_FILES = {
    "/": ("index.html", "text/html"),
    "/web/page.js": ("page.js", "text/javascript"),
    "/web/base.css": ("base.css", "text/css"),
    "/web/style.css": ("style.css", "text/css"),
    "/web/icon.svg": ("icon.svg", "image/svg+xml"),
}
# Of every response, so that no path of the server gives another page something to run, to embed or
# to read. A page of another site can make a browser send a predict request, but it cannot read the
# answer, since no response has an Access-Control-Allow header; and the request changes nothing in
# the server: it has no cookies or sessions, and models are changed by gRPC alone. What this does
# not stop is a site that lets its own name point to this machine (DNS rebinding); where that
# matters, serve with TLS, whose certificate has another name.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; trusted-types 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_page(application, registry, answer):
    """Adds the page, its files and the list of models to an application, and the headers that
    protect them to all of its responses.

    Args:
        application: the `aiohttp.web.Application`.
        registry: the `Registry` of models.
        answer: coroutine function of a request, its method's name for logs, and a function
            `work(request, body, seen)` whose JSON value it answers with.
    """
    for path, (name, content_type) in _FILES.items():
        content = (_DIRECTORY / name).read_bytes()
        application.router.add_get(path, functools.partial(_file, content, content_type))

    async def get_models(request):
        return await answer(
            request, "web_models", lambda request, body, seen: {"models": _models(registry)}
        )

    application.router.add_get("/web/models", get_models)
    application.on_response_prepare.append(_protect)


async def _file(content, content_type, request):
    # Asked for each time: a page of one release must not meet another's script.
    headers = {"Cache-Control": "no-cache"}
    return web.Response(body=content, content_type=content_type, charset="utf-8", headers=headers)


async def _protect(request, response):
    response.headers.update(_HEADERS)


def _models(registry):
    """Returns what the page can ask for:
    the models by name, and of each its labels and the versions that answer.
    """
    return [
        {
            "name": name,
            "labels": {label: str(version) for label, version in sorted(model.labels.items())},
            "versions": list(_versions(model)),
        }
        for name, model in sorted(registry.models.items())
    ]


def _versions(model):
    for state in model.states():
        # One that has been retired in the meantime is not there any more.
        with contextlib.suppress(RequestRefused), model.use(state.version) as servable:
            signatures = servable.signature_defs
            yield {
                "version": str(state.version),
                "signatures": {
                    name: {
                        "inputs": sorted(signatures[name].inputs),
                        "outputs": sorted(signatures[name].outputs),
                    }
                    for name in sorted(signatures)
                },
            }
