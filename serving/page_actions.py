"""What the web page asks besides predictions: terms, files, and a model's card.

    POST /web/terms      {"text": "Open the homepage.", "glossary": "homepage = page d'accueil"}
                         {"text": (with the markup of its terms), "terms": {"homepage": ...}}
    POST /web/translate  {"model": "translation", "version": "/versions/7", "name": "django.po",
                          "content": (base64), "glossary": "", "api_key": ""}
                         {"name": "django.fr.po", "content": (base64), "translated": 12, "blank": 0,
                          "translated_before": 3, "refused": [{"line": 7, "reason": "..."}]}
    GET  /web/card?model=translation&version=/versions/7
                         {"card": (Markdown)}

A version is the end of its REST path; empty is the latest. A glossary has a term on each line:
`phrase = translation`, or both with a tab between them.
"""

import base64
import binascii
import json
import os
import urllib.parse
from collections.abc import Callable
from typing import Any

import grpc
from aiohttp import web

from serving import rest_paths
from serving.access import Gate
from serving.batching import GivenUp
from serving.errors import RequestError, RequestRefused, invalid
from serving.file_translator import FileTranslator, SourceFile, note_of
from serving.glossary import Glossary
from serving.json_fields import text_field
from serving.limits import Limits
from serving.model_versions import ModelVersions
from serving.observing import Request
from serving.page import Answer, card_path
from serving.registry import Registry
from serving.servable_model import ServableModel
from serving.verbatim_error import VerbatimError

#: The path that takes files, whose bodies may be larger than others.
TRANSLATE_PATH = "/web/translate"
_MOST_GLOSSARY_CHARACTERS = 1 << 16


def add_actions(
    application: web.Application,
    registry: Registry,
    limits: Limits,
    gate: Gate,
    files: FileTranslator | None,
    answer: Answer,
    given_up: Callable[[web.Request], GivenUp],
) -> None:
    """Adds the paths.

    Args:
        application: the application.
        registry: the models.
        limits: the limits of a text and of a file.
        gate: who may have files translated, and how often.
        files: translates files; None refuses them.
        answer: function that runs the work of a request in a thread; see `serving.page.Answer`.
        given_up: of a request; returns the function that says whether its client has gone.
    """

    def mark(request: web.Request, body: bytes, seen: Request) -> dict[str, Any]:
        fields = _fields(body)
        text = _field(fields, "text")
        if len(text) > limits.max_text_bytes:
            raise invalid(f"The text has more than {limits.max_text_bytes} bytes; shorten it.")
        glossary = read_glossary(_field(fields, "glossary"))
        if glossary is None:
            return {"text": text, "terms": {}}
        return {"text": glossary.mark(text), "terms": glossary.terms}

    def translate(request: web.Request, body: bytes, seen: Request) -> dict[str, Any]:
        if files is None:
            raise RequestRefused(
                grpc.StatusCode.UNIMPLEMENTED,
                "This server translates no files; use `verbatim translate`.",
            )
        fields = _fields(body)
        gate.enter(_field(fields, "api_key", ""), request.remote or "")
        name, content = _file(fields, files, limits)
        glossary = read_glossary(_field(fields, "glossary", ""))
        model, version = _model(registry, _field(fields, "model"), _field(fields, "version", ""))
        seen.model = model.name
        with model.use(version) as servable:
            seen.version = servable.version
            if takes := _not_source(servable.signature_defs):
                raise invalid(f"The model {model.name} translates no files: it takes {takes}.")
            language = servable.languages[1] if servable.languages else ""
            note = note_of(model.name, servable.version)
            file = SourceFile(name, content, language, note, glossary)
            asked = ServableModel(model.name, servable, limits, given_up(request))
            try:
                translated = files.translate(asked, file)
            except RequestError as error:
                raise RequestRefused(error.code, str(error)) from None
            except VerbatimError as error:
                raise invalid(str(error)) from None
        stem, suffix = os.path.splitext(name)
        return {
            "name": f"{stem}.{language or 'translated'}{suffix}",
            "content": base64.b64encode(translated.content).decode("ascii"),
            "translated": translated.translated,
            "blank": translated.blank,
            "translated_before": translated.translated_before,
            "refused": [{"line": line, "reason": why} for line, why in translated.refused],
        }

    def card(request: web.Request, body: bytes, seen: Request) -> dict[str, str]:
        asked = request.query
        model, number = _model(registry, asked.get("model", ""), asked.get("version", ""))
        seen.model = model.name
        with model.use(number) as servable:
            seen.version = servable.version
        path = card_path(model, servable.version)
        try:
            return {"card": path.read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError):
            raise RequestRefused(
                grpc.StatusCode.NOT_FOUND,
                f"There is no model card beside version {servable.version} of {model.name}.",
            ) from None

    def add(method: str, path: str, work: Callable[..., Any]) -> None:
        async def respond(request: web.Request) -> web.Response:
            return await answer(request, path.strip("/").replace("/", "_"), work)

        application.router.add_route(method, path, respond)

    add("POST", "/web/terms", mark)
    add("POST", TRANSLATE_PATH, translate)
    add("GET", "/web/card", card)


def read_glossary(text: str) -> Glossary | None:
    """Returns the glossary of lines with a term each; None if all lines are blank.

    Raises:
        RequestRefused: INVALID_ARGUMENT, it is too long, or a line is no term that can be used.
    """
    if len(text) > _MOST_GLOSSARY_CHARACTERS:
        raise invalid(
            f"The glossary has more than {_MOST_GLOSSARY_CHARACTERS} characters; leave out terms "
            "that the texts do not need."
        )
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        separator = next((one for one in ("\t", " = ", "=") if one in line), None)
        if separator is None:
            raise invalid(
                f"Line {number} of the glossary has no translation; write phrase = translation."
            )
        phrase, _, translation = line.partition(separator)
        pairs.append((phrase, translation))
    try:
        return Glossary(pairs) if pairs else None
    except RequestError as error:
        raise invalid(str(error)) from None


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise invalid("The body is not JSON.") from None
    if not isinstance(fields, dict):
        raise invalid("The body must be a JSON object.")
    return fields


def _field(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    if default is not None and name not in fields:
        return default
    return text_field(fields, name)


def _file(fields: dict[str, Any], files: FileTranslator, limits: Limits) -> tuple[str, bytes]:
    """Returns name and content of the file in a request."""
    name = _field(fields, "name").replace("\\", "/").rpartition("/")[2]
    if os.path.splitext(name)[1].lower() not in files.suffixes:
        known = ", ".join(files.suffixes)
        raise invalid(f"{name} has no known suffix; rename it so that it ends in one of {known}.")
    try:
        content = base64.b64decode(_field(fields, "content"), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("content must be the file in base64.") from None
    if len(content) > limits.max_file_bytes:
        raise RequestRefused(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"{name} has more than {limits.max_file_bytes:,} bytes; split it, or use `verbatim "
            "translate`.",
        )
    return name, content


def _model(registry: Registry, name: str, version: str) -> tuple[ModelVersions, int | None]:
    path = f"/v1/models/{urllib.parse.quote(name, safe='')}{version}"
    return registry.find(rest_paths.read("GET", path).spec)


def _not_source(signatures: Any) -> str:
    """Returns what the default signature takes if that is not a text alone; else ""."""
    default = signatures.get("serving_default")
    if default is None:
        return "no texts"
    inputs = sorted(default.inputs)
    has_answers = {"text", "source_tokens"} <= set(default.outputs)
    return (
        "" if inputs == ["source"] and has_answers else f"{', '.join(inputs)} and is no translator"
    )
