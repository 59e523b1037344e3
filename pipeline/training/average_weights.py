"""Averages of weights over updates or epochs, which are measured and kept in their place."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from keras_models import variables
from pipeline.recipes.sections import TrainingConfig


def mean_of(weights: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Returns the mean of several models' weights.

    The states of random generators, which are whole numbers, are the last model's.
    """
    means = []
    for values in zip(*weights, strict=True):
        if np.issubdtype(values[-1].dtype, np.integer):
            means.append(values[-1])
        else:
            mean = np.mean([value.astype("float64") for value in values], axis=0)
            means.append(mean.astype(values[-1].dtype))
    return means


class AverageWeights(keras.callbacks.Callback):
    """Puts an average into the model while an epoch is measured; see `TrainedWeights`.

    It must come before all callbacks that look at the model's weights or measures.
    """

    def __init__(self) -> None:
        super().__init__()
        self._trained: list[NDArray[Any]] | None = None

    def average(self) -> list[NDArray[Any]] | None:
        """Returns the average of the trainable weights, or None if there is none yet."""
        raise NotImplementedError

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        average = self.average()
        if average is not None and self._trained is None:
            self._trained = variables.values_of(self.model.trainable_variables)
            variables.assign(self.model.trainable_variables, average)

    def give_back(self) -> None:
        """Gives the model the weights back that it trains with."""
        if self._trained is not None:
            variables.assign(self.model.trainable_variables, self._trained)
            self._trained = None


class MovingAverage(AverageWeights):
    """The exponential moving average of the weights after each update.

        average_n = (1 - d) / (1 - d^n) sum_{i=1..n} d^(n-i) weights_i

    It is corrected as Adam's moments are (Kingma and Ba 2014, section 3): first weights, which no
    update has seen, have no share in it.

    Args:
        decay: d.
        accumulated_batches: how many batches make an update.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("batches", "sums")

    def __init__(self, decay: float, accumulated_batches: int = 1) -> None:
        super().__init__()
        self._decay = decay
        self._accumulated_batches = accumulated_batches
        self._sums: list[tf.Variable] = []
        self._loaded: list[NDArray[Any]] | None = None
        self.batches = 0

    @property
    def sums(self) -> list[NDArray[Any]]:
        """(1 - d) sum_i d^(n-i) weights_i, by variable."""
        return [value.numpy() for value in self._sums]

    @sums.setter
    def sums(self, values: Sequence[NDArray[Any]]) -> None:
        for variable, value in zip(self._made(), values, strict=True):
            variable.assign(value)

    def _made(self) -> list[tf.Variable]:
        if not self._sums:
            self._sums = [
                tf.Variable(tf.zeros(weight.shape, tf.float32), trainable=False)
                for weight in self.model.trainable_variables
            ]

            @tf.function
            def step() -> None:
                for total, weight in zip(self._sums, self.model.trainable_variables, strict=True):
                    value = tf.cast(tf.convert_to_tensor(weight), tf.float32)
                    total.assign_add((1 - self._decay) * (value - total))

            self._step = step
        return self._sums

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.batches += 1
        if self.batches % self._accumulated_batches == 0:
            self._made()
            self._step()

    def average(self) -> list[NDArray[Any]] | None:
        updates = self.batches // self._accumulated_batches
        if not updates:
            return None
        share = 1 - self._decay**updates
        return [value / np.float32(share) for value in self.sums]


class MeanOfEpochs(AverageWeights):
    """The mean of the weights at the ends of the last epochs.

    Args:
        epochs: how many.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("last",)

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self._epochs = epochs
        self.last: list[list[NDArray[Any]]] = []

    def average(self) -> list[NDArray[Any]] | None:
        return mean_of(self.last) if self.last else None

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self._trained is None:
            own = variables.values_of(self.model.trainable_variables)
            self.last = [*self.last, own][-self._epochs :]
        super().on_test_begin(logs)


class TrainedWeights(keras.callbacks.Callback):
    """Ends what `AverageWeights` began; after all that look at the weights, before `Checkpointing`.

    Args:
        average: the training's `AverageWeights`.
    """

    def __init__(self, average: AverageWeights) -> None:
        super().__init__()
        self._average = average

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._average.give_back()


def make_average(config: TrainingConfig) -> AverageWeights | None:
    """Returns the average that is measured at each epoch's end, or None for the weights alone."""
    if config.average == "moving":
        return MovingAverage(config.average_decay, config.accumulated_batches)
    if config.average == "last":
        return MeanOfEpochs(config.average_epochs)
    return None
