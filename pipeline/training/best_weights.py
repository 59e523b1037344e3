"""The weights of a training's best epoch."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf


class BestWeights(keras.callbacks.EarlyStopping):
    """Gives the model the weights of its best epoch by eval loss when the training has ended.

    Args:
        epochs: how many the training has.
        eval_batches: if given, the weights that the training begins with are a candidate, too: a
            model that goes on from another one is never worse than that.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("wait", "best", "best_epoch", "best_weights")

    def __init__(self, epochs: int, eval_batches: tf.data.Dataset | None = None) -> None:
        super().__init__("val_loss", patience=epochs, restore_best_weights=True)
        self._eval_batches = eval_batches

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        super().on_train_begin(logs)
        if self._eval_batches is not None:
            measured = self.model.evaluate(self._eval_batches, verbose=0, return_dict=True)
            self.best, self.best_epoch = measured["loss"], -1
            self.best_weights = self.model.get_weights()
