"""The progress of a run's components, read from TFX's messages about them."""

import contextlib
import logging
import re
import time

from pipeline.common import progress
from pipeline.reporting.facts import Stage

_MESSAGE = re.compile(r"Component (\S+) is (running|finished)\.")
# TFX's messages between these two, for a component that is not a resolver.
_EXECUTED = "Going to run a new execution"
_CACHED = re.compile(r"A cached execution \d+ is used")


class ComponentProgress(logging.Handler):
    """Reports which component runs, and records how long each took.

    A component's own messages are indented below its name.

    Attributes:
        number: how many components there are.
        stages: those that have finished.
        current: the id of the one that runs; None between two.
    """

    def __init__(self, number: int) -> None:
        super().__init__(logging.INFO)
        self.number = number
        self.stages: list[Stage] = []
        self.current: str | None = None
        self._started = 0.0
        # Whether the current component's outputs come from the cache; None until it is known and
        # reported.
        self._cached: bool | None = None
        self._indented = contextlib.ExitStack()

    def emit(self, record: logging.LogRecord) -> None:
        """Reads a message of TFX; ignores messages that are not about components."""
        if record.name == progress.LOGGER.name:
            return
        message = record.getMessage()
        if match := _MESSAGE.search(message):
            component, state = match.groups()
            if state == "running":
                self.current, self._started = component, time.monotonic()
                self._cached = None
            else:
                self._finish(component)
        elif self.current and self._cached is None:
            if message.startswith(_EXECUTED):
                self._say(cached=False)
            elif _CACHED.match(message):
                self._say(cached=True)

    def _say(self, cached: bool) -> None:
        """Reports which component it is; the component's own messages follow below."""
        self._cached = cached
        note = " (cached)" if cached else ""
        progress.say(f"[{len(self.stages) + 1}/{self.number}] {self.current}{note}")
        self._indented.enter_context(progress.indented())

    def _finish(self, component: str) -> None:
        if self._cached is None:
            # A resolver is neither executed nor cached.
            self._say(cached=False)
        self._indented.close()
        seconds = round(time.monotonic() - self._started, 1)
        self.stages.append({"name": component, "seconds": seconds, "cached": bool(self._cached)})
        self.current = None

    def close(self) -> None:
        """Ends the indentation of a component that failed."""
        self._indented.close()
        super().close()
