"""Progress of long work, for people.

A library call prints nothing: it logs to `LOGGER`. To see it, install a handler,
as the command line does (`pipeline.commands.progress_display`). A sentence is an ordinary record; a
step of counted work is a record at the level `STEP`, below INFO, with a `Step` as its attribute
`step`, so that log files are not filled with it and a terminal can draw a bar.
"""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterator

LOGGER = logging.getLogger("verbatim.progress")
#: Level of the records that carry a `Step`.
STEP = 15
_SECONDS_BETWEEN_STEPS = 0.1
# How many headings are above the current message.
_depth = 0


@dataclasses.dataclass(frozen=True)
class Step:
    """The state of counted work.

    Attributes:
        description: what is being done, such as `decoding`.
        done: how much of it is done, in `unit`.
        total: how much there is to do, or None if unknown.
        unit: what is counted, in the plural: `texts`, `updates`.
        finished: whether this is the work's last step.
    """

    description: str
    done: int
    total: int | None
    unit: str
    finished: bool = False


def say(sentence: str) -> None:
    """Logs one sentence."""
    LOGGER.info("%s", sentence, extra={"depth": _depth})


def warn(sentence: str) -> None:
    """Logs a warning of one sentence; without a handler it goes to standard error."""
    LOGGER.warning("%s", sentence, extra={"depth": _depth})


@contextlib.contextmanager
def indented() -> Iterator[None]:
    """Marks messages inside the block as details of the last message.

    The records' attribute `depth` is their depth, so that a terminal can indent them.
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


@contextlib.contextmanager
def counted(
    description: str, total: int | None, unit: str, done: int = 0
) -> Iterator[Callable[[int], None]]:
    """Reports the state of counted work while the block runs.

    Args:
        description, total, unit: see `Step`.
        done: how much was done before, such as by a training that is resumed.

    Yields:
        A function that takes how much more is done.
    """
    last = -_SECONDS_BETWEEN_STEPS
    _show(Step(description, done, total, unit))

    def advance(more: int = 1) -> None:
        nonlocal done, last
        done += more
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_STEPS:
            last = now
            _show(Step(description, done, total, unit))

    try:
        yield advance
    finally:
        _show(Step(description, done, total, unit, finished=True))


def _show(step: Step) -> None:
    total = "" if step.total is None else f" of {step.total}"
    LOGGER.log(
        STEP,
        "%s: %d%s %s",
        step.description,
        step.done,
        total,
        step.unit,
        extra={"step": step, "depth": _depth},
    )
