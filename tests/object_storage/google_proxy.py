"""A proxy that lets the Google clients of TensorFlow and Beam talk to fake-gcs-server.

It speaks TLS, writes down each request, and changes what would stand between the two: TensorFlow
sends `Transfer-Encoding: identity`, which Go refuses; addresses in answers must begin with `https`.
Beam's client deletes and copies by batches, which it does the parts of.
"""

import contextlib
import dataclasses
import email.parser
import http.client
import http.server
import re
import ssl
import threading
from collections.abc import Iterator
from typing import ClassVar

#: A token that the proxy refuses, as Google does one that has expired.
EXPIRED_TOKEN = "expired"
#: What a bucket's name begins with that can be read, but not written.
READ_ONLY = "read-only"
# The headers of one connection.
_HOP = frozenset({"transfer-encoding", "connection", "keep-alive", "content-length", "te"})
_BUCKET = re.compile(r"/(?:(?:[a-z]+/)*storage/v1/b/)?(?P<bucket>[^/?]+)")


@dataclasses.dataclass(frozen=True)
class Request:
    """One request of a client.

    Attributes:
        kind: `read`, `look`, `list`, `write`, `copy`, `delete` or `batch`.
        method: of HTTP.
        path: with its query.
        status: what was answered.
    """

    kind: str
    method: str
    path: str
    status: int


def kind_of(method: str, path: str) -> str:
    """Returns what a request does: see `Request.kind`."""
    if path.startswith("/batch"):
        return "batch"
    if method == "DELETE":
        return "delete"
    if re.search(r"/o/[^/?]+/(?:rewriteTo|copyTo)/", path):
        return "copy"
    if path.startswith(("/upload", "/resumable")) or method in ("PUT", "POST", "PATCH"):
        return "write"
    if re.match(r"/storage/v1/b/[^/]+/o(?:\?|$)", path):
        return "list"
    if re.match(r"/storage/v1/b/", path) and "alt=media" not in path:
        return "look"
    return "read"


class GoogleProxy:
    """Listens at an address of this machine, and passes on what it is asked.

    Attributes:
        requests: all so far, in their order.
    """

    def __init__(self, host: str, port: int, emulator_port: int, tls: ssl.SSLContext) -> None:
        """Starts to listen.

        Args:
            host: the address to listen at.
            port: clients want 443.
            emulator_port: where fake-gcs-server listens.
            tls: the certificate and its key.
        """
        self.requests: list[Request] = []
        self._lock = threading.Lock()

        class Handler(_Handler):
            proxy = self
            emulator = emulator_port

        self._server = _Server((host, port), Handler)
        self._server.tls = tls
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def note(self, request: Request) -> None:
        """Writes a request down."""
        with self._lock:
            self.requests.append(request)

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    tls: ssl.SSLContext
    request_queue_size = 128

    def finish_request(self, request, client_address):
        """Shakes hands in the connection's own thread: a slow client keeps nobody waiting."""
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as own:
            super().finish_request(own, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ClassVar[GoogleProxy]
    emulator: ClassVar[int]

    def log_message(self, *_: object) -> None:
        """Keeps still."""

    def _pass_on(self) -> None:
        content = self._content()
        if self.headers.get("Authorization", "").endswith(EXPIRED_TOKEN):
            status, headers, answer = 401, {}, b'{"error": {"code": 401, "message": "expired"}}'
        elif self.path.startswith("/batch/storage/v1"):
            status, headers, answer = self._batch(content)
        else:
            sent = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            status, headers, answer = self._ask(self.command, self.path, content, sent)
        self.proxy.note(Request(kind_of(self.command, self.path), self.command, self.path, status))
        self.send_response(status)
        for key, value in headers.items():
            if key.lower() not in _HOP:
                self.send_header(key, value.replace("http://", "https://", 1))
        length = len(answer)
        if self.command == "HEAD":
            length = int({k.lower(): v for k, v in headers.items()}.get("content-length", 0))
        if status != 304:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

    def _content(self) -> bytes:
        """Reads what the request carries."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            blocks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                blocks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(blocks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _ask(
        self, method: str, path: str, content: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Asks the emulator; returns (status, headers, content)."""
        bucket = _BUCKET.match(path)
        if bucket and bucket["bucket"].startswith(READ_ONLY) and method not in ("GET", "HEAD"):
            return 403, {}, b'{"error": {"code": 403, "message": "no storage.objects.create"}}'
        connection = http.client.HTTPConnection("127.0.0.1", self.emulator, timeout=120)
        try:
            connection.request(method, path, body=content or None, headers=headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def _batch(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
        """Does the parts of a batch one after the other."""
        kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = email.parser.BytesParser().parsebytes(kind + content).get_payload()
        answers = []
        for part in parts:
            inner = part.get_payload(decode=True)
            head, _, body = inner.replace(b"\r\n", b"\n").partition(b"\n\n")
            line, *headers = head.decode().strip().split("\n")
            method, address, *_ = line.split()
            path = re.sub(r"^https?://[^/]+", "", address)
            fields = dict(header.split(": ", 1) for header in headers if ": " in header)
            fields = {k: v for k, v in fields.items() if k.lower() not in _HOP}
            fields["Host"] = "www.googleapis.com"
            status, _, answer = self._ask(method, path, body.strip(), fields)
            self.proxy.note(Request(kind_of(method, path), method, path, status))
            number = str(part["Content-ID"]).strip("<>")
            reason = http.client.responses.get(status, "")
            answers.append(
                f"--batch_answer\r\nContent-Type: application/http\r\n"
                f"Content-ID: <response-{number}>\r\n\r\nHTTP/1.1 {status} {reason}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
                + answer
                + b"\r\n"
            )
        joined = b"".join(answers) + b"--batch_answer--\r\n"
        return 200, {"Content-Type": "multipart/mixed; boundary=batch_answer"}, joined


def written(requests: Iterator[Request] | list[Request]) -> list[str]:
    """Returns the paths of requests that wrote, copied or removed something."""
    return [one.path for one in requests if one.kind in ("write", "copy", "delete")]
