"""TensorFlow Serving's REST paths: which model, version and method a request names."""

import dataclasses
import re
import urllib.parse
from typing import Literal

from tensorflow_serving.apis import model_pb2

from serving.errors import invalid
from serving.version_folders import MAX_VERSION

Method = Literal["predict", "classify", "regress", "status", "metadata"]

_CHOICE = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
# As TensorFlow Serving has them. A name has no slash and no colon as it stands; `%2F` and `%3A`
# are decoded only once the path has been cut.
_POST = re.compile(
    rf"/v1/models/(?P<name>[^/:]+){_CHOICE}:(?P<method>classify|regress|predict)",
    re.IGNORECASE | re.ASCII,
)
_GET = re.compile(
    rf"/v1/models(?:/(?P<name>[^/:]+))?{_CHOICE}(?P<metadata>/metadata)?",
    re.IGNORECASE | re.ASCII,
)


@dataclasses.dataclass(frozen=True)
class RestPath:
    """The method and the model that a path names.

    Attributes:
        method: the method.
        spec: the `ModelSpec` that it names.
    """

    method: Method
    spec: model_pb2.ModelSpec


def read(http_method: str, path: str) -> RestPath:
    """Reads a path that begins with `/v1/`.

    Args:
        http_method: such as `GET`.
        path: the path as it was sent, percent signs and all, without its query.

    Raises:
        RequestRefused: INVALID_ARGUMENT, there is no such path.
    """
    pattern = {"POST": _POST, "GET": _GET}.get(http_method)
    match = pattern.fullmatch(path) if pattern else None
    method = match.groupdict().get("method") if match else None
    # Letters of either case match, but a method's name must be in lower case.
    if match is None or (method is not None and not method.islower()):
        raise invalid(
            f"Malformed request: {http_method} {path}; models are at /v1/models/NAME and "
            "/v1/models/NAME/metadata (GET), and answer at /v1/models/NAME:predict (POST)."
        )
    if match["name"] is None:
        raise invalid("Missing model name in request: ask for /v1/models/NAME.")
    spec = model_pb2.ModelSpec(name=_decoded(match["name"]))
    if match["version"]:
        # Not more digits than `int` reads.
        if len(match["version"]) > 100 or int(match["version"]) > MAX_VERSION:
            raise invalid(f"Failed to convert version: {match['version'][:100]} to numeric.")
        spec.version.value = int(match["version"])
    if match["label"]:
        spec.version_label = _decoded(match["label"])
    if http_method == "POST":
        return RestPath(method, spec)  # type: ignore[arg-type]  # the pattern names them
    return RestPath("metadata" if match["metadata"] else "status", spec)


def _decoded(name: str) -> str:
    return urllib.parse.unquote(name, encoding="utf-8", errors="replace")
