"""Logs the progress of a version's warm-up."""

import logging
import time
from collections.abc import Callable

# How often a long warm-up logs a line.
_SECONDS_BETWEEN_LINES = 10.0


def progress_of(name: str, version: int, logger: logging.Logger) -> Callable[[int, int], None]:
    """Returns a function of how many requests have been run and how many there are.

    It logs the beginning, the end, and some lines in between.
    """
    last = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == 0:
            logger.info("Warming up %s version %d: %d requests.", name, version, total)
        elif done == total:
            logger.info("%s version %d: %d warm-up requests done.", name, version, total)
        elif now - last < _SECONDS_BETWEEN_LINES:
            return
        else:
            logger.info("Warming up %s version %d: %d of %d requests.", name, version, done, total)
        last = now

    return advance
