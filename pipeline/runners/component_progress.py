"""The progress of a run's components, out of TFX's own messages about them."""

import contextlib
import logging
import re
import time

from pipeline.common import progress
from pipeline.reporting.facts import Stage

_MESSAGE = re.compile(r"Component (\S+) is (running|finished)\.")


class ComponentProgress(logging.Handler):
    """Says which component runs, and keeps how long each took.

    What a component says itself stands indented below its name.

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
        self._indented = contextlib.ExitStack()

    def emit(self, record: logging.LogRecord) -> None:
        """Reads a message of TFX's; other messages say nothing of components."""
        match = _MESSAGE.search(record.getMessage())
        if not match or record.name == progress.LOGGER.name:
            return
        component, state = match.groups()
        self._indented.close()
        if state == "running":
            self.current, self._started = component, time.monotonic()
            progress.say(f"[{len(self.stages) + 1}/{self.number}] {component}")
            self._indented.enter_context(progress.indented())
        else:
            seconds = round(time.monotonic() - self._started, 1)
            self.stages.append({"name": component, "seconds": seconds})
            self.current = None

    def close(self) -> None:
        """Ends the indentation of a component that failed."""
        self._indented.close()
        super().close()
