"""Who may ask a server that is open to a network, and how often."""

import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable

import grpc

from serving.errors import RequestRefused, ServeError

_MINUTE = 60.0
# Callers of the last minutes are remembered, not all of the server's life.
_MOST_CALLERS = 10_000


@dataclasses.dataclass(frozen=True)
class Access:
    """What a caller must show, and how much it may ask for.

    Attributes:
        api_keys: the keys that are accepted; empty asks for none.
        requests_per_minute: how many requests a caller may send in a minute; 0 is no limit. A
            caller is a key, or an address where none is asked for.
    """

    api_keys: frozenset[str] = frozenset()
    requests_per_minute: int = 0


#: Anyone may ask, as often as they like.
OPEN = Access()


def of_file(path: str | None, requests_per_minute: int = 0) -> Access:
    """Returns the access that a file of keys and a limit give.

    Args:
        path: a file with a key on each line; blank lines and lines that begin with `#` hold none.
            None asks for no key.
        requests_per_minute: as in `Access`.

    Raises:
        ServeError: the file cannot be read or holds no key, or the limit is negative.
    """
    if requests_per_minute < 0:
        raise ServeError(
            f"The limit of requests a minute must be 0 or more; got {requests_per_minute}."
        )
    if path is None:
        return Access(requests_per_minute=requests_per_minute)
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ServeError(f"The API keys {path} cannot be read: {reason}.") from None
    keys = frozenset(line.strip() for line in lines if line.strip() and line.strip()[0] != "#")
    if not keys:
        raise ServeError(f"The API keys {path} hold no key; write one on each line.")
    return Access(keys, requests_per_minute)


class Gate:
    """Lets requests pass, or refuses them.

    A caller's allowance fills up evenly to `requests_per_minute`, and each request takes one.

    Args:
        access: the keys and the limit.
        clock: seconds, rising.
    """

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    @property
    def needs_key(self) -> bool:
        """Whether a request must have a key."""
        return bool(self._access.api_keys)

    def enter(self, api_key: str, address: str) -> None:
        """Counts a request.

        Args:
            api_key: the key that came with it; "" is none.
            address: where it comes from.

        Raises:
            RequestRefused: PERMISSION_DENIED, the key is missing or unknown; RESOURCE_EXHAUSTED,
                the caller has sent too many.
        """
        if self.needs_key and api_key not in self._access.api_keys:
            problem = "is not known" if api_key else "is missing"
            raise RequestRefused(
                grpc.StatusCode.PERMISSION_DENIED,
                f"The API key {problem}; send one that this server accepts as api_key.",
            )
        allowance = self._access.requests_per_minute
        if not allowance:
            return
        caller = api_key if self.needs_key else address
        with self._lock:
            now = self._clock()
            left, since = self._left.get(caller, (float(allowance), now))
            left = min(float(allowance), left + (now - since) * allowance / _MINUTE)
            if left < 1:
                seconds = (1 - left) * _MINUTE / allowance
                raise RequestRefused(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"This server takes {allowance} requests a minute from each caller; try again "
                    f"in {seconds:.0f} s.",
                )
            if len(self._left) >= _MOST_CALLERS:
                # Those whose allowance is full again are as if they had never called.
                self._left = {
                    name: entry for name, entry in self._left.items() if now - entry[1] < _MINUTE
                }
            self._left[caller] = (left - 1, now)
