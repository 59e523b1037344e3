"""The learning rate of a training, update by update, and its end by updates or by the clock."""

import math
import time
from collections.abc import Mapping
from typing import Any

import keras

from pipeline.recipes.sections import TrainingConfig
from pipeline.training.best_weights import BestWeights

#: What an epoch that is no better does to the learning rate.
_FACTORS = {"halving": 0.5, "quartering": 0.25}


def learning_rate_at(progress: float, step: int, config: TrainingConfig) -> float:
    """Returns the learning rate of an update: a linear warm-up, then `training.schedule`.

        rate = learning_rate * min(1, step / warmup_steps) * decay

    where decay is

        cosine: f + (1 - f) (1 + cos(pi progress)) / 2
        inverse_square_root: min(1, sqrt(warmup_steps / step)) (Vaswani et al. 2017, equation 3, at
            the scale of `learning_rate`)
        constant, halving, quartering: 1

    Args:
        progress: share of the training done, 0 to 1.
        step: update number, from 1.
        config: the recipe's training section; f is `final_learning_rate_share`.
    """
    warmup = max(config.warmup_steps, 1)
    decay = 1.0
    if config.schedule == "cosine":
        floor = config.final_learning_rate_share
        decay = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    elif config.schedule == "inverse_square_root":
        decay = min(1.0, math.sqrt(warmup / step))
    return config.learning_rate * min(1.0, step / warmup) * decay


class Schedule(keras.callbacks.Callback):
    """Sets the learning rate by progress, and ends the training when its limit is reached.

    Progress is the largest of the shares of the epochs, of `max_updates` and of `max_seconds`. So
    on a slow machine the rate still falls to its end instead of being cut off in the middle.

    Args:
        config: the recipe's training section.
        steps_per_epoch: batches of an epoch.
        best: says whether an epoch was better; it is called before.

    Attributes:
        batches: how many were trained on.
        started: see `Checkpointing`.
    """

    # By a checkpoint.
    remembered = ("step", "batches", "factor")

    def __init__(
        self, config: TrainingConfig, steps_per_epoch: int, best: BestWeights | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.steps_per_epoch = steps_per_epoch
        self._best = best
        self.step = 0
        self.batches = 0
        self.factor = 1.0
        self.started = 0.0

    @property
    def updates(self) -> int:
        """How many updates there were."""
        return self.batches // self.config.accumulated_batches

    @property
    def planned_updates(self) -> int:
        """How many updates the whole training has, unless its time or its patience ends it."""
        of_epochs = self.steps_per_epoch * self.config.epochs // self.config.accumulated_batches
        return min(of_epochs, self.config.max_updates or of_epochs)

    def _progress(self) -> float:
        share = self.step / (self.steps_per_epoch * self.config.epochs)
        if self.config.max_updates:
            batches = self.config.max_updates * self.config.accumulated_batches
            share = max(share, self.step / batches)
        if self.config.max_seconds:
            share = max(share, (time.monotonic() - self.started) / self.config.max_seconds)
        return share

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.started = time.monotonic()

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.step += 1
        limit = self.config.max_updates * self.config.accumulated_batches
        if limit and self.batches + 1 >= limit:
            # The batch that begins is still trained on; workers hear of it together with that.
            self.model.stop_training = True
        update = -(-self.step // self.config.accumulated_batches)
        self.model.optimizer.learning_rate.assign(
            self.factor * learning_rate_at(self._progress(), update, self.config)
        )

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        # Not the optimizer's number: Keras begins one step more an epoch, which finds no batch.
        self.batches += 1
        if self.config.max_seconds and time.monotonic() - self.started > self.config.max_seconds:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._best and not self._best.improved:
            self.factor *= _FACTORS.get(self.config.schedule, 1.0)
