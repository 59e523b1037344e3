"""What a server tells those who run it:
a line of JSON for each request, and numbers for Prometheus.
"""

import contextlib
import dataclasses
import json
import logging
import re
import time
import uuid

import prometheus_client

from serving.errors import ServeError

#: Has a line of JSON for each request, at level INFO.
REQUESTS = logging.getLogger("verbatim.requests")

#: The header, and the gRPC metadata key, of a request's id.
REQUEST_ID = "x-request-id"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclasses.dataclass
class Request:
    """One request as far as it is known; who answers it fills in the rest.

    `model` stays "" unless the server has it, so that requests cannot make new series of numbers.
    """

    id: str
    model: str = ""
    version: int | None = None
    signature: str = ""
    texts: int | None = None
    code: str = "OK"


def request_id(given):
    """Returns the id that a client gave, if it is one, or a new one."""
    return (
        given if given and re.fullmatch(r"[\w.:/+=-]{1,128}", given, re.ASCII) else uuid.uuid4().hex
    )


def log_requests_to(path):
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

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        options = {"namespace": "verbatim", "registry": self.registry}
        labels = ("protocol", "method", "model", "signature", "code")
        self._requests = prometheus_client.Counter(
            "requests", "Requests answered.", labels, **options
        )
        self._seconds = prometheus_client.Histogram(
            "request_seconds",
            "Time from a request's arrival to its answer.",
            labels[:4],
            buckets=_SECONDS,
            **options,
        )
        self._texts = prometheus_client.Counter(
            "texts", "Texts answered.", ("model", "signature"), **options
        )
        self._running = prometheus_client.Gauge(
            "running_requests", "Requests being answered now.", **options
        )
        self._versions = prometheus_client.Gauge(
            "model_version_available",
            "1 for each version that answers.",
            ("model", "version"),
            **options,
        )

    @contextlib.contextmanager
    def request(self, protocol, method, given_id=None):
        """Observes one request: lends its `Request`, and says at the end how it went."""
        seen = Request(request_id(given_id))
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

    def metrics(self, models):
        """Returns the numbers in Prometheus' text format, and its content type.

        Args:
            models: dict from name to `ModelVersions`.
        """
        self._versions.clear()
        for name, model in models.items():
            for state in model.states():
                if state.state == "AVAILABLE":
                    self._versions.labels(name, state.version).set(1)
        return prometheus_client.generate_latest(
            self.registry
        ), prometheus_client.CONTENT_TYPE_LATEST
