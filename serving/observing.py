"""A server's request log, one line of JSON per request, and its Prometheus metrics."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import prometheus_client

from serving.errors import ServeError

if TYPE_CHECKING:
    from serving.model_versions import ModelVersions

#: Has a line of JSON for each request, at level INFO.
REQUESTS = logging.getLogger("verbatim.requests")

#: The header, and the gRPC metadata key, of a request's id.
REQUEST_ID = "x-request-id"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclasses.dataclass
class Request:
    """One request, as far as it is known; the code that answers it fills in the rest.

    `model` stays "" unless the server has that model, so that requests cannot create time series.
    """

    id: str
    model: str = ""
    version: int | None = None
    signature: str = ""
    texts: int | None = None
    code: str = "OK"


def request_id(from_client: str | None) -> str:
    """Returns the id that a client sent, if it is valid, or a new one."""
    if from_client and re.fullmatch(r"[\w.:/+=-]{1,128}", from_client, re.ASCII):
        return from_client
    return uuid.uuid4().hex


def log_requests_to(path: str | os.PathLike[str]) -> logging.Handler:
    """Appends the line of each request to a file, or writes it to standard error if `path` is `-`.

    Returns:
        The handler that does it.

    Raises:
        ServeError: the file cannot be written; one sentence.
    """
    try:
        handler = (
            logging.StreamHandler() if path == "-" else logging.FileHandler(path, encoding="utf-8")
        )
    except OSError as error:
        raise ServeError(f"The request log {path} cannot be written: {error.strerror}.") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    REQUESTS.addHandler(handler)
    REQUESTS.setLevel(logging.INFO)
    REQUESTS.propagate = False
    return handler


class Observer:
    """Counts and logs requests.

    Attributes:
        registry: the `prometheus_client.CollectorRegistry` of this server.
    """

    def __init__(self) -> None:
        self.registry = registry = prometheus_client.CollectorRegistry()
        labels = ("protocol", "method", "model", "signature", "code")
        self._requests = prometheus_client.Counter(
            "verbatim_requests", "Requests answered.", labels, registry=registry
        )
        self._seconds = prometheus_client.Histogram(
            "verbatim_request_seconds",
            "Time from a request's arrival to its answer.",
            labels[:4],
            buckets=_SECONDS,
            registry=registry,
        )
        self._texts = prometheus_client.Counter(
            "verbatim_texts", "Texts answered.", ("model", "signature"), registry=registry
        )
        self._running = prometheus_client.Gauge(
            "verbatim_running_requests", "Requests being answered now.", registry=registry
        )
        self._versions = prometheus_client.Gauge(
            "verbatim_model_version_available",
            "1 for each version that answers.",
            ("model", "version"),
            registry=registry,
        )

    @contextlib.contextmanager
    def request(
        self, protocol: str, method: str, id_from_client: str | None = None
    ) -> Iterator[Request]:
        """Observes one request: lends its `Request`, then counts and logs the result."""
        seen = Request(request_id(id_from_client))
        started = time.monotonic()
        self._running.inc()
        try:
            yield seen
        finally:
            seconds = time.monotonic() - started
            self._running.dec()
            labels = (protocol, method, seen.model, seen.signature)
            self._requests.labels(*labels, seen.code).inc()
            self._seconds.labels(*labels).observe(seconds)
            if seen.texts and seen.code == "OK":
                self._texts.labels(seen.model, seen.signature).inc(seen.texts)
            if REQUESTS.isEnabledFor(logging.INFO):
                facts = {"time": round(time.time(), 3), "protocol": protocol, "method": method}
                facts |= {
                    key: value
                    for key, value in dataclasses.asdict(seen).items()
                    if value not in (None, "")
                }
                REQUESTS.info(
                    "%s", json.dumps({**facts, "seconds": round(seconds, 6)}, ensure_ascii=False)
                )

    def metrics(self, models: Mapping[str, ModelVersions]) -> tuple[bytes, str]:
        """Returns the metrics in Prometheus' text format, and its content type.

        Args:
            models: name to `ModelVersions`.
        """
        self._versions.clear()
        for name, model in models.items():
            for state in model.states():
                if state.state == "AVAILABLE":
                    self._versions.labels(name, state.version).set(1)
        text = prometheus_client.generate_latest(self.registry)
        return text, prometheus_client.CONTENT_TYPE_LATEST
