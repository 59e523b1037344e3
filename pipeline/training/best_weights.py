"""The weights that a training keeps, and its end when no epoch gets better."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
from numpy.typing import NDArray

from pipeline.training.average_weights import mean_of
from pipeline.training.selection import Selection

#: A function that measures the model on the eval split, and gives what callbacks find in `logs`.
Measure = Callable[[], Mapping[str, Any]]


class BestWeights(keras.callbacks.Callback):
    """Gives the model the weights of its best epoch when the training has ended.

    If the selection keeps the last epoch, those are its weights, and not the best one's; an epoch
    whose eval loss is no number, because the training diverged, is not kept.

    It comes before the callbacks that ask whether an epoch was better. An epoch whose measure is no
    number is never better.

    Args:
        selection: what makes an epoch better than another.
        patience: after how many epochs without a better one the training ends.
        measure: measures the model; needed for the other two.
        first_too: whether the weights that the training begins with are a candidate: a model that
            goes on from another one is then never worse than that.
        averaged: the mean of the weights of this many best epochs is a last candidate; 0 for none.

    Attributes:
        improved: whether the last epoch was better than all before it.
        wait: how many epochs ago the best one was.
        best: its measure; None before there is one.
        best_weights: its weights, or the last epoch's; those of the first epoch until one has a
            measure.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("wait", "best", "best_weights", "_ranked")

    def __init__(
        self,
        selection: Selection,
        patience: int,
        measure: Measure | None = None,
        first_too: bool = False,
        averaged: int = 0,
    ) -> None:
        super().__init__()
        self._selection = selection
        self._patience = patience
        self._measure = measure
        self._first_too = first_too
        self._averaged = averaged
        self.improved = False
        self.wait = 0
        self.best: float | None = None
        self.best_weights: list[NDArray[Any]] | None = None
        # The best epochs, the best one first: value and weights.
        self._ranked: list[tuple[float, list[NDArray[Any]]]] = []

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self._first_too and self._measure and not self._selection.last_epoch:
            self.best = self._selection.of(self._measure())
            self.best_weights = self.model.get_weights()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        value = self._selection.of(logs)
        self.improved = self._selection.is_better(value, self.best)
        self.wait = 0 if self.improved else self.wait + 1
        if self.improved:
            self.best = value
        if self.improved or self.best_weights is None or self._selection.keeps_last(logs):
            self.best_weights = self.model.get_weights()
        if self.wait >= self._patience:
            self.model.stop_training = True
        if self._averaged and self._selection.is_better(value, None):
            self._ranked.append((value, self.model.get_weights()))
            sign = 1 if self._selection.lower_is_better else -1
            self._ranked = sorted(self._ranked, key=lambda entry: sign * entry[0])
            self._ranked = self._ranked[: self._averaged]

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        if self.best_weights is None:
            return
        self.model.set_weights(self.best_weights)
        if len(self._ranked) < 2 or not self._measure:
            return
        self.model.set_weights(mean_of([weights for _, weights in self._ranked]))
        if not self._selection.is_better(self._selection.of(self._measure()), self.best):
            self.model.set_weights(self.best_weights)
