"""The weights of a training's best epoch."""

import keras


class BestWeights(keras.callbacks.EarlyStopping):
    """Gives the model the weights of its best epoch by eval loss when the training has ended.

    Args:
        epochs: how many the training has.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("wait", "best", "best_epoch", "best_weights")

    def __init__(self, epochs: int) -> None:
        super().__init__("val_loss", patience=epochs, restore_best_weights=True)
