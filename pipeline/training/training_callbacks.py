"""What accompanies a training, update by update:
learning rate and end, the curve, the best weights, checkpoints.
"""

import math
import time

import keras

from keras_models import variables


def learning_rate_at(progress, step, config):
    """Linear warm-up over steps times a half cosine over progress.

        rate = learning_rate * min(1, step / warmup_steps) * (f + (1 - f) (1 + cos(pi progress)) /
        2)

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

    Progress is the larger of the share of the epochs and the share of `max_seconds`, so that on a
    slow machine the rate still falls to its end instead of being cut off in the middle.

    Args:
        config: the recipe's training section.
        steps_per_epoch: batches of an epoch.
    """

    remembered = ("step", "batches")  # by a checkpoint

    def __init__(self, config, steps_per_epoch):
        super().__init__()
        self.config = config
        self.steps_per_epoch = steps_per_epoch
        self.step = 0
        self.batches = 0
        self.started = None

    @property
    def updates(self):
        """How many updates there were."""
        return self.batches // self.config.accumulated_batches

    def _progress(self):
        share = self.step / (self.steps_per_epoch * self.config.epochs)
        if self.config.max_seconds:
            share = max(share, (time.monotonic() - self.started) / self.config.max_seconds)
        return share

    def on_train_begin(self, logs=None):
        self.started = time.monotonic()

    def on_train_batch_begin(self, batch, logs=None):
        self.step += 1
        update = -(-self.step // self.config.accumulated_batches)
        self.model.optimizer.learning_rate.assign(
            learning_rate_at(self._progress(), update, self.config)
        )

    def on_train_batch_end(self, batch, logs=None):
        # Not the optimizer's number: Keras begins one step more an epoch, which finds no batch.
        self.batches += 1
        if self.config.max_seconds and time.monotonic() - self.started > self.config.max_seconds:
            self.model.stop_training = True


class Progress(keras.callbacks.Callback):
    """Says on standard output how the training goes, and keeps the curve.

    Args:
        label: what is trained; None says nothing.
        epochs: how many.
    """

    remembered = ("curve",)  # by a checkpoint

    def __init__(self, label, epochs):
        super().__init__()
        self.label = label
        self.epochs = epochs
        self.curve = []

    def on_train_begin(self, logs=None):
        self.started = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        point = {
            "epoch": epoch + 1,
            "seconds": round(time.monotonic() - self.started, 1),
            "loss": float(logs["loss"]),
            "eval_loss": float(logs["val_loss"]),
        }
        # A loss that is not finite ends the training (TerminateOnNaN); JSON has no word for it, and
        # a curve no point.
        if math.isfinite(point["loss"]) and math.isfinite(point["eval_loss"]):
            self.curve.append(point)
        if self.label is not None:
            print(
                f"  {self.label}: epoch {point['epoch']}/{self.epochs}  loss {point['loss']:.3f}  "
                f"eval loss {point['eval_loss']:.3f}  {point['seconds']:.0f} s",
                flush=True,
            )


class BestWeights(keras.callbacks.EarlyStopping):
    """Gives the model the weights of its best epoch by eval loss when the training has ended."""

    remembered = ("wait", "best", "best_epoch", "best_weights")  # by a checkpoint

    def __init__(self, epochs):
        super().__init__("val_loss", patience=epochs, restore_best_weights=True)


class Checkpointing(keras.callbacks.Callback):
    """Writes checkpoints, and begins where the last one was written.

    It must be the last of the callbacks.

    Args:
        kept: a `checkpoints.Checkpoints`.
        state: what it loaded, or None.
        callbacks: the others; of each, the attributes named by its `remembered` are in a
            checkpoint. Their `started` is set so that the time of earlier processes counts.
        steps_per_epoch: updates of an epoch.

    Attributes:
        started: when the training began, by `time.monotonic`, or would have begun without the time
            in which it stood still.
        epoch, batch: how many epochs are done, and updates of the one after; at first those of the
            checkpoint.
        stopped: whether an epoch's end was the training's, although not all epochs are done.
        steps_per_epoch: see above.
    """

    def __init__(self, kept, state, callbacks, steps_per_epoch):
        super().__init__()
        self._kept = kept
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
        self.started = None

    def _variables(self):
        return [*self.model.variables, *self.model.optimizer.variables]

    def on_train_begin(self, logs=None):
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

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        if self._state and self.batch:
            # Keras has just begun the mean of the epoch's losses anew.
            variables.assign(self.model.metrics_variables, self._state["metrics"])
        self._state = None

    def on_train_batch_end(self, batch, logs=None):
        self.batch += 1
        # What follows the last batch belongs to the epoch's end.
        if self.batch < self.steps_per_epoch and not self.model.stop_training and self._kept.due():
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        self.epoch, self.batch, self.stopped = epoch + 1, 0, self.model.stop_training
        if self._kept.due(at_epoch_end=True):
            self._save()

    @property
    def seconds(self):
        """How long the training has taken, without the time in which it stood still."""
        return time.monotonic() - self.started

    def _save(self):
        self._kept.save(
            {
                "epoch": self.epoch,
                "batch": self.batch,
                "stopped": self.stopped,
                "seconds": self.seconds,
                "variables": variables.values_of(self._variables()),
                "metrics": variables.values_of(self.model.metrics_variables),
                "callbacks": {
                    name: {
                        attribute: getattr(callback, attribute) for attribute in callback.remembered
                    }
                    for name, callback in self._others.items()
                },
            }
        )


class OneTraining(keras.callbacks.CallbackList):
    """Callbacks of a training whose epochs are a call of `fit` each: it begins once and ends once."""

    def on_train_begin(self, logs=None):
        """Nothing: see `begin`."""

    def on_train_end(self, logs=None):
        """Nothing: see `end`."""

    def begin(self):
        super().on_train_begin()

    def end(self):
        super().on_train_end()
