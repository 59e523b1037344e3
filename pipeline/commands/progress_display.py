"""Progress on the terminal: what `pipeline.common.progress` logs, as lines and bars."""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from pipeline.common import progress

if TYPE_CHECKING:
    import rich.progress

_INDENT = "  "
# How often long work prints a line where a bar cannot be drawn.
_SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def shown_on(stream: TextIO) -> Iterator[None]:
    """Shows progress on a stream while the block runs; warnings go to standard error."""
    display = ProgressDisplay(stream)
    level = progress.LOGGER.level
    progress.LOGGER.addHandler(display)
    progress.LOGGER.setLevel(progress.STEP)
    root, others = logging.getLogger(), _of_others()
    # Without a handler there, third parties add one at their first record; it repeats our lines.
    if not root.handlers:
        root.addHandler(others)
    try:
        yield
    finally:
        root.removeHandler(others)
        progress.LOGGER.setLevel(level)
        progress.LOGGER.removeHandler(display)
        display.close()


def _of_others() -> logging.Handler:
    """Returns a handler of others' warnings, as Python prints them where nothing is set up."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: record.name != progress.LOGGER.name)
    return handler


class ProgressDisplay(logging.Handler):
    """Prints sentences, and draws counted work as bars with the time left.

    A stream that is not a terminal gets a plain line every few seconds instead of a bar.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(progress.STEP)
        self._stream = stream
        self._bars = _Bars(stream) if stream.isatty() else None
        self._lines = _Lines()

    def emit(self, record: logging.LogRecord) -> None:
        """Shows a record; like every handler, it reports its own errors and continues."""
        try:
            self._show(record)
        except Exception:
            self.handleError(record)

    def _show(self, record: logging.LogRecord) -> None:
        step: progress.Step | None = getattr(record, "step", None)
        indent = _INDENT * getattr(record, "depth", 0)
        if record.levelno >= logging.WARNING:
            self._print(f"verbatim: {record.getMessage()}", sys.stderr)
        elif step is None:
            self._print(indent + record.getMessage(), self._stream)
        elif self._bars and self._bars.can_draw():
            self._bars.show(step, indent)
        elif line := self._lines.line_of(step):
            self._print(indent + line, self._stream)

    def _print(self, line: str, stream: TextIO) -> None:
        if self._bars and self._bars.drawn:
            self._bars.print_above(line)
        else:
            print(line, file=stream, flush=True)

    def close(self) -> None:
        """Removes the remaining bars."""
        if self._bars:
            self._bars.stop()
        super().close()


class _Lines:
    """Chooses the steps that get a line of their own."""

    def __init__(self) -> None:
        # By description: when the work began, and when its last line was due.
        self._begun: dict[str, float] = {}
        self._last_line: dict[str, float] = {}
        # By description: when the first step was done, and how much it did. The time before it, in
        # which XLA may have compiled, must not count in the estimate of the time left.
        self._first: dict[str, tuple[float, int]] = {}

    def line_of(self, step: progress.Step) -> str | None:
        """Returns the line for a step, or None if it is too early for one."""
        now = time.monotonic()
        name = step.description
        if name not in self._begun:
            self._begun[name] = now
        elif name not in self._first:
            self._first[name] = (now, step.done)
        last = self._last_line.get(name)
        if step.finished:
            for times in (self._begun, self._last_line, self._first):
                times.pop(name, None)
            # Work that ended before its first line needs no last one.
            return None if last is None else _sentence(step)
        if now - (self._begun[name] if last is None else last) < _SECONDS_BETWEEN_LINES:
            return None
        self._last_line[name] = now
        return _sentence(step) + self._time_left(step, now)

    def _time_left(self, step: progress.Step, now: float) -> str:
        since, before = self._first.get(step.description, (now, step.done))
        if step.total is None or step.done == before:
            return ""
        seconds = (now - since) / (step.done - before) * (step.total - step.done)
        return f", {_duration(seconds)} left"


def _sentence(step: progress.Step) -> str:
    return f"{step.description}: {_count(step)}"


def _count(step: progress.Step) -> str:
    total = "" if step.total is None else f" of {step.total}"
    return f"{step.done}{total} {step.unit}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Bars:
    """The bars of counted work, drawn by rich below the sentences."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._progress: rich.progress.Progress | None = None
        self._tasks: dict[str, rich.progress.TaskID] = {}

    @property
    def drawn(self) -> bool:
        """Whether a bar is shown now."""
        return bool(self._tasks)

    def can_draw(self) -> bool:
        """Whether the terminal can move its cursor, which `TERM=dumb` cannot."""
        console = self._made().console
        return console.is_terminal and not console.is_dumb_terminal

    def show(self, step: progress.Step, indent: str) -> None:
        """Draws a step; removes the bar when its work is done."""
        bars = self._made()
        if step.finished:
            if step.description in self._tasks:
                bars.remove_task(self._tasks.pop(step.description))
            if not self._tasks:
                bars.stop()
            return
        if step.description not in self._tasks:
            self._tasks[step.description] = bars.add_task(
                indent + step.description, total=step.total, completed=step.done, count=""
            )
            bars.start()
        task = self._tasks[step.description]
        bars.update(task, total=step.total, completed=step.done, count=_count(step))

    def print_above(self, line: str) -> None:
        """Prints a permanent line above the bars."""
        self._made().console.print(line, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Removes the bars."""
        self._tasks.clear()
        if self._progress:
            self._progress.stop()

    def _made(self) -> "rich.progress.Progress":
        # Imported where the first bar is drawn: most commands draw none.
        import rich.console
        import rich.progress

        if self._progress is None:
            self._progress = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}", markup=False),
                rich.progress.BarColumn(),
                rich.progress.TextColumn("{task.fields[count]}", markup=False),
                rich.progress.TimeRemainingColumn(),
                console=rich.console.Console(file=self._stream),
                transient=True,
            )
        return self._progress
