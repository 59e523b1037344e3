"""LibreTranslate's API on a `Registry` of models, so that programs of translators can ask it.

    POST /translate   {"q": "Delete the page?", "source": "en", "target": "fr", "format": "text"}
                      {"translatedText": "Supprimer la page ?"}
    GET  /languages   [{"code": "en", "name": "English", "targets": ["fr"]}, ...]
    GET  /health      {"status": "ok"}

`q` is a text, or a list of texts. A body is JSON or a form. Blank lines keep their place. Each
other line is asked by itself. A model translates between the languages of its recipe
(`data.source_language`, `data.target_language`). Of several models for the same languages the first
by name answers. `/detect`, `/suggest` and `/translate_file` are refused.
"""

import dataclasses
import json
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias, TypedDict

import babel
import grpc
from aiohttp import web
from tensorflow_serving.apis import predict_pb2

from serving import html_text, tensor_lists
from serving.access import Gate
from serving.batching import GivenUp
from serving.errors import RequestRefused, ServeError, invalid
from serving.json_fields import text_field
from serving.limits import Limits
from serving.model_versions import ModelVersions
from serving.observing import Request
from serving.page import Answer
from serving.registry import Registry
from serving.servable import DEFAULT_SIGNATURE, Servable

_FORMATS = ("text", "html")
_MOST_ALTERNATIVES = 16
# Of codes of different languages; see `_distance`.
_OTHER = 3
# How much of a refused line its refusal shows.
_MOST_SHOWN = 40
_FIRST_TEXT = re.compile(r"^source\[0\]|^The (?:\w+ )?text 0\b")
_MISSING = {
    "/detect": "This server detects no languages; send the code of the text's language as source.",
    "/suggest": "This server takes no suggestions.",
    "/translate_file": "This server translates no files here; use `verbatim translate`.",
}


#: The codes of a source and a target language.
LanguagePair: TypeAlias = tuple[str, str]


class Language(TypedDict):
    """A language, and those that it is translated into."""

    code: str
    name: str
    targets: list[str]


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request to translate.

    Attributes:
        texts: the texts.
        listed: whether they came as a list.
        source, target: codes of languages; `source` may be "auto".
        html: whether they are HTML.
        alternatives: how many more answers are asked for.
    """

    texts: list[str]
    listed: bool
    source: str
    target: str
    html: bool = False
    alternatives: int = 0


def add_paths(
    application: web.Application,
    registry: Registry,
    limits: Limits,
    gate: Gate,
    answer: Answer,
    given_up: Callable[[web.Request], GivenUp],
    echoes: Collection[LanguagePair] = (),
) -> None:
    """Adds the paths of LibreTranslate's API.

    Args:
        application: the application.
        registry: the models.
        limits: the limits of a request. A text longer than them is refused; more texts than a batch
            are asked in several batches.
        gate: who may ask, and how often.
        answer: function that runs the work of a request in a thread; see `serving.page.Answer`.
        given_up: of a request; returns the function that says whether its client has gone.
        echoes: pairs of languages whose texts come back as they are where no model has the pair.
    """
    echoed = {(_normal(source), _normal(target)) for source, target in echoes}

    def translate(request: web.Request, body: bytes, seen: Request) -> dict[str, Any]:
        fields = _fields(request.content_type, body)
        gate.enter(_field(fields, "api_key", ""), request.remote or "")
        asked = read(fields)
        try:
            model, source = find_model(registry, asked.source, asked.target)
        except RequestRefused:
            if (_normal(asked.source), _normal(asked.target)) not in echoed:
                raise
            return _response(asked, asked.source, [[text] for text in asked.texts])
        seen.model, seen.texts = model.name, len(asked.texts)
        with model.use() as servable:
            seen.version = servable.version
            answers = _translate(servable, asked, limits, given_up(request))
        return _response(asked, source, answers)

    def list_languages(request: web.Request, body: bytes, seen: Request) -> list[Language]:
        return languages(registry)

    def health(request: web.Request, body: bytes, seen: Request) -> dict[str, str]:
        return {"status": "ok"}

    def missing(request: web.Request, body: bytes, seen: Request) -> None:
        raise RequestRefused(grpc.StatusCode.UNIMPLEMENTED, _MISSING[request.path])

    def add(method: str, path: str, work: Callable[..., Any]) -> None:
        name = "libre_translate_" + path.strip("/")

        async def respond(request: web.Request) -> web.Response:
            return await answer(request, name, work)

        application.router.add_route(method, path, respond)

    add("POST", "/translate", translate)
    add("GET", "/languages", list_languages)
    add("GET", "/health", health)
    for path in _MISSING:
        add("POST", path, missing)


def pairs(registry: Registry) -> Iterator[tuple[str, str, ModelVersions]]:
    """Yields the source and target language of each model that takes plain texts, and the model."""
    for _, model in sorted(registry.models.items()):
        try:
            with model.use() as servable:
                found = servable.languages
                takes = set(servable.signature_defs[DEFAULT_SIGNATURE].inputs)
        except (RequestRefused, KeyError):
            continue
        if found and takes == {"source"}:
            yield *found, model


def languages(registry: Registry) -> list[Language]:
    """Returns all languages of the models: sources with what they are translated into, and targets.

    A target that is nobody's source has no targets of its own. The codes have hyphens, as those of
    LibreTranslate's own server: Weblate searches for them so spelled.
    """
    targets: dict[str, list[str]] = {}
    for source, target, _ in pairs(registry):
        source, target = (code.replace("_", "-") for code in (source, target))
        into = targets.setdefault(source, [])
        targets.setdefault(target, [])
        if target not in into:
            into.append(target)
    return [
        {"code": code, "name": language_name(code), "targets": sorted(targets[code])}
        for code in sorted(targets)
    ]


def language_name(code: str) -> str:
    """Returns a language's English name; the code itself if it has none."""
    try:
        return babel.Locale.parse(code.replace("-", "_")).english_name or code
    except (ValueError, babel.UnknownLocaleError):
        return code


def find_model(registry: Registry, source: str, target: str) -> tuple[ModelVersions, str]:
    """Returns the model for two languages, and its source language.

    A code that no model has is taken for its language alone: `pt-BR` for `pt`. A code without a
    country also stands for the only one that the models have: `pt` for `pt-BR`.

    Raises:
        RequestRefused: INVALID_ARGUMENT, there is none, or a code could be several languages.
    """
    known = list(pairs(registry))
    fitting: dict[tuple[int, int], list[tuple[str, str, ModelVersions]]] = {}
    for of_source, of_target, model in known:
        distances = _distance(target, of_target), _distance(source, of_source, "auto")
        if _OTHER not in distances:
            fitting.setdefault(distances, []).append((of_source, of_target, model))
    if not fitting:
        raise invalid(
            f"No model translates from {source} to {target}; this server has "
            f"{_offered(known) or 'no languages'}."
        )
    nearest = fitting[min(fitting)]
    if source.lower() == "auto" and len({of_source for of_source, _, _ in nearest}) > 1:
        raise invalid(
            "Several languages are translated into "
            f"{target}; send the code of the text's language as source, not auto."
        )
    if len({(_normal(one), _normal(other)) for one, other, _ in nearest}) > 1:
        raise invalid(
            f"From {source} to {target} could be {_offered(nearest)}; send the whole codes."
        )
    of_source, _, model = nearest[0]
    return model, of_source


def _distance(asked: str, offered: str, any_code: str | None = None) -> int:
    """Returns how far a code is from one that a model has; `_OTHER` if it is another language."""
    asked, offered = _normal(asked), _normal(offered)
    if asked in (offered, any_code):
        return 0
    if offered == asked.partition("-")[0]:
        return 1
    return 2 if asked == offered.partition("-")[0] else _OTHER


def _offered(known: Sequence[tuple[str, str, ModelVersions]]) -> str:
    return ", ".join(dict.fromkeys(f"{one} to {other}" for one, other, _ in known))


def read_pair(text: str) -> LanguagePair:
    """Returns the pair of languages of an option, such as `en,de`.

    Raises:
        ServeError: it names no two languages.
    """
    codes = [code.strip() for code in text.split(",")]
    if len(codes) != 2 or not all(codes):
        raise ServeError(f"A pair of languages is two codes such as en,de; got {text!r}.")
    return codes[0], codes[1]


def _normal(code: str) -> str:
    return code.replace("_", "-").lower()


def _fields(content_type: str, body: bytes) -> dict[str, Any]:
    """Returns the fields of a body: JSON or a form.

    Raises:
        RequestRefused: INVALID_ARGUMENT, it is neither.
    """
    try:
        text = body.decode("utf-8")
        if content_type == "application/x-www-form-urlencoded":
            listed = urllib.parse.parse_qs(text, keep_blank_values=True, errors="strict")
            return {
                name: values if len(values) > 1 else values[0] for name, values in listed.items()
            }
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise invalid("The body is neither JSON nor a form of UTF-8.") from None
    if not isinstance(fields, dict):
        raise invalid("The body must be an object with q, source and target.")
    return fields


def _field(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    """Returns a field; its default also where it is null."""
    if default is not None and fields.get(name) is None:
        return default
    return text_field(fields, name)


def read(fields: dict[str, Any]) -> Asked:
    """Reads the fields of a request to translate.

    Raises:
        RequestRefused: INVALID_ARGUMENT, a field is missing or of another type.
    """
    query: Any = fields.get("q")
    listed = isinstance(query, list)
    texts: list[Any] = query if listed else [query]
    if not all(isinstance(text, str) for text in texts):
        raise invalid("q must be a text or a list of texts." if "q" in fields else "q is missing.")
    source, target = _field(fields, "source"), _field(fields, "target")
    kind = _field(fields, "format", "text")
    if kind not in _FORMATS:
        raise invalid(f"format must be text or html; got {kind!r}.")
    number = str(fields.get("alternatives") or 0)
    if not (number.isascii() and number.isdecimal() and int(number) <= _MOST_ALTERNATIVES):
        raise invalid(f"alternatives must be a whole number from 0 to {_MOST_ALTERNATIVES}.")
    return Asked(texts, listed, source, target, kind == "html", int(number))


def _translate(
    servable: Servable, asked: Asked, limits: Limits, given_up: GivenUp
) -> list[list[str]]:
    """Returns for each text its answers, the best first."""
    # A text's lines are asked by themselves; what is around and between them stays.
    cut = [_lines(html_text.read(text) if asked.html else text) for text in asked.texts]
    lines = [line for text in cut for line in text if line.content]
    best = 1 + asked.alternatives
    answers = iter(_ask(servable, [line.content for line in lines], best, limits, given_up))
    of_line = {id(line): next(answers) for line in lines}

    def joined(text: list["_Line"], place: int) -> str:
        found = "".join(line.around(of_line.get(id(line)), place) for line in text)
        return html_text.write(found) if asked.html else found

    return [list(dict.fromkeys(joined(text, place) for place in range(best))) for text in cut]


@dataclasses.dataclass(frozen=True)
class _Line:
    before: str
    content: str
    after: str

    def around(self, answers: Sequence[str] | None, place: int) -> str:
        if not answers:
            return self.before + self.after
        return self.before + answers[min(place, len(answers) - 1)] + self.after


def _lines(text: str) -> list[_Line]:
    lines = []
    for line in text.splitlines(keepends=True):
        content = line.strip()
        before, _, after = line.partition(content) if content else (line, "", "")
        lines.append(_Line(before, content, after))
    return lines


def _ask(
    servable: Servable, texts: Sequence[str], best: int, limits: Limits, given_up: GivenUp
) -> list[list[str]]:
    """Returns each text's answers, at most `best`."""
    name = "n_best" if best > 1 and "n_best" in servable.signature_defs else DEFAULT_SIGNATURE
    # Texts of one length share a batch, so that none is padded much.
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    found: list[list[str]] = [[] for _ in texts]
    for start in range(0, len(order), limits.max_batch_size):
        places = order[start : start + limits.max_batch_size]
        message = predict_pb2.PredictRequest()
        message.model_spec.signature_name = name
        try:
            tensor_lists.fill(message.inputs["source"], [texts[place] for place in places])
        except UnicodeEncodeError:
            raise invalid("q holds half a surrogate pair, which is no text.") from None
        message.output_filter.append("text")
        try:
            response = servable.predict(message, limits, given_up)
        except RequestRefused as refused:
            if refused.code != grpc.StatusCode.INVALID_ARGUMENT:
                raise
            if len(texts) == 1:
                raise invalid(_of_line(refused.sentence, texts[0])) from None
            for text in texts:  # one of them is refused by itself, and named
                _ask(servable, [text], 1, limits, given_up)
            raise
        axes = 2 if name == "n_best" else 1
        for place, answer in zip(
            places, tensor_lists.read(response.outputs["text"], axes, len(places)) or []
        ):
            found[place] = answer[:best] if axes == 2 else [answer]
    return found


def _of_line(sentence: str, line: str) -> str:
    """Returns a refusal that names the line, where the model counts the texts of its batch."""
    shown = line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + "…"
    return f'{_FIRST_TEXT.sub("A line", sentence)} The line is "{shown}".'


def _response(asked: Asked, source: str, answers: list[list[str]]) -> dict[str, Any]:
    """Returns the response: of lists, or of the one text."""

    def of_texts(values: list[Any]) -> Any:
        return values if asked.listed else values[0]

    response: dict[str, Any] = {"translatedText": of_texts([answer[0] for answer in answers])}
    if asked.alternatives:
        response["alternatives"] = of_texts([answer[1:] for answer in answers])
    if asked.source.lower() == "auto":
        # The only language that a model translates into the target.
        detected = {"language": source, "confidence": 100}
        response["detectedLanguage"] = of_texts([detected] * len(answers))
    return response
