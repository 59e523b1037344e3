"""The learning rate of a training, update by update, and its end by the clock."""

import math
import time
from collections.abc import Mapping
from typing import Any

import keras

from pipeline.recipes.sections import TrainingConfig


def learning_rate_at(progress: float, step: int, config: TrainingConfig) -> float:
    """Returns a linear warm-up over steps times a half cosine over progress.

        rate = learning_rate * min(1, step / warmup_steps)
                             * (f + (1 - f) (1 + cos(pi progress)) / 2)

    Args:
        progress: share of the training done, 0 to 1.
        step: update number, from 1.
        config: the recipe's training section; f is `final_learning_rate_share`.
    """
    floor = config.final_learning_rate_share
    decay = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return config.learning_rate * min(1.0, step / max(config.warmup_steps, 1)) * decay


class Schedule(keras.callbacks.Callback):
    """Sets the learning rate by progress, and ends the training when its time is used up.

    Progress is the larger of the share of the epochs and the share of `max_seconds`. So on a slow
    machine the rate still falls to its end instead of being cut off in the middle.

    Args:
        config: the recipe's training section.
        steps_per_epoch: batches of an epoch.

    Attributes:
        batches: how many were trained on.
        started: see `Checkpointing`.
    """

    # By a checkpoint.
    remembered = ("step", "batches")

    def __init__(self, config: TrainingConfig, steps_per_epoch: int) -> None:
        super().__init__()
        self.config = config
        self.steps_per_epoch = steps_per_epoch
        self.step = 0
        self.batches = 0
        self.started = 0.0

    @property
    def updates(self) -> int:
        """How many updates there were."""
        return self.batches // self.config.accumulated_batches

    @property
    def planned_updates(self) -> int:
        """How many updates all epochs have."""
        return self.steps_per_epoch * self.config.epochs // self.config.accumulated_batches

    def _progress(self) -> float:
        share = self.step / (self.steps_per_epoch * self.config.epochs)
        if self.config.max_seconds:
            share = max(share, (time.monotonic() - self.started) / self.config.max_seconds)
        return share

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.started = time.monotonic()

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.step += 1
        update = -(-self.step // self.config.accumulated_batches)
        self.model.optimizer.learning_rate.assign(
            learning_rate_at(self._progress(), update, self.config)
        )

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        # Not the optimizer's number: Keras begins one step more an epoch, which finds no batch.
        self.batches += 1
        if self.config.max_seconds and time.monotonic() - self.started > self.config.max_seconds:
            self.model.stop_training = True
