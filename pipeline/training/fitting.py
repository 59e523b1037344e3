"""The epochs of a training, from where its checkpoint says to their end."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from pipeline.training.checkpointing import Checkpointing


class OneTraining(keras.callbacks.CallbackList):
    """Callbacks of a training whose epochs are a call of `fit` each: they begin and end once."""

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Does nothing: see `begin`."""

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Does nothing: see `end`."""

    def begin(self) -> None:
        super().on_train_begin()

    def end(self) -> None:
        super().on_train_end()


@dataclasses.dataclass(frozen=True)
class Fitting:
    """A compiled model and all that its epochs need.

    Attributes:
        model: the model.
        batches_of: function of an epoch's number, and of the first batch's, to its batches.
        eval_batches: the batches of the eval split.
        epochs: how many there are.
        callbacks: Keras callbacks.
        checkpointing: the last callback; it says where the training begins.
    """

    model: keras.Model
    batches_of: Callable[[int, int], tf.data.Dataset]
    eval_batches: tf.data.Dataset
    epochs: int
    callbacks: list[keras.callbacks.Callback]
    checkpointing: Checkpointing

    def callback_list(self) -> OneTraining:
        """Returns all callbacks as one."""
        return OneTraining(
            [*self.callbacks, self.checkpointing],
            add_history=True,
            model=self.model,
            verbose=0,
            epochs=self.epochs,
        )

    def run(self) -> None:
        """Trains in this process alone."""
        checkpointing, model = self.checkpointing, self.model
        skipped, stopped = checkpointing.batch, checkpointing.stopped
        callbacks = self.callback_list()
        callbacks.begin()
        # Each epoch is a fit of its own: how often Keras begins the batches anew within one, and so
        # which order comes next, is its own affair.
        for epoch in range(checkpointing.epoch, self.epochs):
            if stopped:
                break
            batches = self.batches_of(epoch, skipped)
            # Without their number Keras asks for a batch too many, and random generators may or may
            # not move on before its end is found.
            batches = batches.apply(
                tf.data.experimental.assert_cardinality(checkpointing.steps_per_epoch - skipped)
            )
            model.fit(
                batches,
                validation_data=self.eval_batches,
                callbacks=callbacks,
                initial_epoch=epoch,
                epochs=epoch + 1,
                verbose=0,
            )
            skipped, stopped = 0, model.stop_training
        callbacks.end()
