"""Writes checkpoints in the loop of a training, and resumes from one."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import keras
from numpy.typing import NDArray

from keras_models import variables
from pipeline.training.checkpoints import Checkpoints


class TrainingState(TypedDict):
    """The content of a checkpoint of a sequence-to-sequence training.

    Attributes:
        epoch, batch: how many epochs are done, and batches of the one after.
        stopped: whether an epoch's end was the training's, although not all epochs are done.
        seconds: how long the training has taken.
        variables: values of the model's and the optimizer's variables.
        metrics: those of the mean of the epoch's losses.
        callbacks: by the name of a callback's class, its `remembered` attributes.
    """

    epoch: int
    batch: int
    stopped: bool
    seconds: float
    variables: list[NDArray[Any]]
    metrics: list[NDArray[Any]]
    callbacks: dict[str, dict[str, Any]]


def load_state(checkpoints: Checkpoints, digest: str) -> TrainingState | None:
    """Returns the state in the newest checkpoint of a training; see `Checkpoints.load`."""
    return cast(TrainingState | None, checkpoints.load(digest))


class Checkpointing(keras.callbacks.Callback):
    """Writes checkpoints, and begins where the last one was written.

    It must be the last of the callbacks.

    Args:
        checkpoints: the training's.
        state: what they loaded, or None.
        callbacks: the others; of each, the attributes named by its `remembered` are in a
            checkpoint. Their `started` is set so that the time of earlier processes counts.
        steps_per_epoch: batches of an epoch.

    Attributes:
        started: when the training began, by `time.monotonic`, or would have begun without the time
            in which it stood still.
        epoch, batch, stopped: see `TrainingState`; at first those of the checkpoint.
        steps_per_epoch: see above.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        state: TrainingState | None,
        callbacks: Sequence[keras.callbacks.Callback],
        steps_per_epoch: int,
    ) -> None:
        super().__init__()
        self._checkpoints = checkpoints
        self._state = state
        self._others = {
            type(callback).__name__: callback
            for callback in callbacks
            if hasattr(callback, "remembered")
        }
        self.steps_per_epoch = steps_per_epoch
        self.epoch, self.batch, self.stopped = 0, 0, False
        if state:
            self.epoch, self.batch, self.stopped = state["epoch"], state["batch"], state["stopped"]
        self.started = 0.0

    def _variables(self) -> list[keras.Variable]:
        return [*self.model.variables, *self.model.optimizer.variables]

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.started = time.monotonic()
        if not self._state:
            return
        self.started -= self._state["seconds"]
        variables.assign(self._variables(), self._state["variables"])
        for name, callback in self._others.items():
            for attribute, value in self._state["callbacks"][name].items():
                setattr(callback, attribute, value)
            if hasattr(callback, "started"):
                callback.started = self.started

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.epoch = epoch
        if self._state and self.batch:
            # Keras has just begun the mean of the epoch's losses anew.
            variables.assign(self.model.metrics_variables, self._state["metrics"])
        self._state = None

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.batch += 1
        # What follows the last batch belongs to the epoch's end.
        inside = self.batch < self.steps_per_epoch and not self.model.stop_training
        if inside and self._checkpoints.due():
            self._save()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.epoch, self.batch, self.stopped = epoch + 1, 0, self.model.stop_training
        if self._checkpoints.due(at_epoch_end=True):
            self._save()

    @property
    def seconds(self) -> float:
        """How long the training has taken, without interruptions."""
        return time.monotonic() - self.started

    def _save(self) -> None:
        state: TrainingState = {
            "epoch": self.epoch,
            "batch": self.batch,
            "stopped": self.stopped,
            "seconds": self.seconds,
            "variables": variables.values_of(self._variables()),
            "metrics": variables.values_of(self.model.metrics_variables),
            "callbacks": {
                name: {attribute: getattr(callback, attribute) for attribute in callback.remembered}
                for name, callback in self._others.items()
            },
        }
        self._checkpoints.save(cast(dict[str, Any], state))
