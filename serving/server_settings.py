"""The settings of an embedded server."""

import dataclasses

from serving.access import OPEN, Access
from serving.batching import Batching
from serving.errors import ServeError
from serving.file_translator import FileTranslator
from serving.limits import Limits
from serving.tls import ServerTls


@dataclasses.dataclass(frozen=True)
class ServerSettings:
    """The ports, limits and batching of a server.

    Attributes:
        port: the port of gRPC; 0 chooses a free one.
        host: the address to listen at; `0.0.0.0` is every network of the machine.
        rest_port: the port of the REST paths, Prometheus' metrics and the web page; 0 chooses a
            free one, None is no REST.
        tls: the files of its TLS; None is no TLS.
        poll_seconds: how often the model folders are checked for new versions.
        limits: how much one request may ask for.
        access: who may use LibreTranslate's API and have files translated, and how often.
        files: translates the files that the web page sends; None refuses them.
        echoes: pairs of languages whose texts LibreTranslate's API gives back as they are where no
            model has the pair. Weblate tests a new service with English and German.
        batching: how requests that arrive together are batched; None answers each by itself.
        max_workers: how many requests are answered at the same time, for gRPC and for REST; more
            wait. With `batching` these are the requests that can come together, so set it high.
        max_waiting: how many gRPC requests wait; further ones are refused with RESOURCE_EXHAUSTED.

    Raises:
        ServeError: a port is out of its range.
    """

    port: int = 8500
    host: str = "127.0.0.1"
    rest_port: int | None = None
    tls: ServerTls | None = None
    poll_seconds: float = 2.0
    limits: Limits = Limits()
    access: Access = OPEN
    files: FileTranslator | None = None
    echoes: tuple[tuple[str, str], ...] = ()
    batching: Batching | None = None
    max_workers: int = 8
    max_waiting: int = 256

    def __post_init__(self) -> None:
        for number in (self.port, self.rest_port or 0):
            if not 0 <= number <= 65535:
                raise ServeError(f"A port is a number from 0 to 65535; got {number}.")


DEFAULT_SETTINGS = ServerSettings()
