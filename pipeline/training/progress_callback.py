"""Reports the progress of a training, and records the curve of its losses."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras

from pipeline.common import progress
from pipeline.training.schedule import Schedule
from pipeline.training.selection import Selection
from pipeline.training.trainer_outputs import CurvePoint


class Progress(keras.callbacks.Callback):
    """Reports the progress of a training, and keeps the curve.

    Args:
        label: what is trained; None says nothing.
        schedule: the training's `Schedule`, a callback before this one.
        selection: what makes an epoch better than another.

    Attributes:
        curve: the epochs so far whose losses are finite.
        started: see `Checkpointing`.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("curve",)

    def __init__(
        self, label: str | None, schedule: Schedule, selection: Selection | None = None
    ) -> None:
        super().__init__()
        self._selection = selection or Selection()
        self.label = label
        self.curve: list[CurvePoint] = []
        self.started = 0.0
        self._schedule = schedule
        self._advance: Callable[[int], None] | None = None
        self._counted_updates = 0

    @contextlib.contextmanager
    def counted(self, done: int) -> Iterator[None]:
        """Counts the updates of the training that the block runs.

        Args:
            done: updates before, of a training that is resumed.
        """
        if self.label is None:
            yield
            return
        self._counted_updates = done
        total = self._schedule.planned_updates
        with progress.counted(f"training {self.label}", total, "updates", done) as advance:
            self._advance = advance
            yield

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.started = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        updates = self._schedule.updates
        if self._advance and updates > self._counted_updates:
            self._advance(updates - self._counted_updates)
            self._counted_updates = updates

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        logs = logs or {}
        point: CurvePoint = {
            "epoch": epoch + 1,
            "seconds": round(time.monotonic() - self.started, 1),
            "loss": float(logs["loss"]),
            "eval_loss": float(logs["val_loss"]),
        }
        measured = ""
        if self._selection.name != "loss":
            value = self._selection.of(logs)
            measured = f"  {self._selection.name} {value:.3f}"
            if math.isfinite(value):
                point["selected"] = value
        # A loss that is not finite ends the training (TerminateOnNaN); JSON has no word for it, and
        # a curve no point.
        if math.isfinite(point["loss"]) and math.isfinite(point["eval_loss"]):
            self.curve.append(point)
        if self.label is not None:
            progress.say(
                f"{self.label}: epoch {point['epoch']}/{self._schedule.config.epochs}  "
                f"loss {point['loss']:.3f}  eval loss {point['eval_loss']:.3f}{measured}  "
                f"{point['seconds']:.0f} s"
            )
