"""The phases of a segmenting encoder's training: when it imitates, and which part learns."""

from collections.abc import Mapping
from typing import Any

import keras

from pipeline.recipes.sections import SegmentationConfig


class SegmentationPhases(keras.callbacks.Callback):
    """Sets the shares of a model's `policy` before each update.

    Args:
        config: the recipe's segmentation section. For `warm_up_updates` its `warm_up` is imitated;
            after that translation and segmentation learn together. With `alternate_updates` above
            0 they take turns: that many updates the one, then the other.
        accumulated_batches: how many batches make an update.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("step",)

    def __init__(self, config: SegmentationConfig, accumulated_batches: int = 1) -> None:
        super().__init__()
        self.config = config
        self.accumulated_batches = accumulated_batches
        self.step = 0

    def shares(self, step: int) -> tuple[float, float, float]:
        """Returns imitation, translation share and policy share at an update, numbered from 0."""
        warm_up = self.config.warm_up_updates if self.config.warm_up != "none" else 0
        if step < warm_up:
            return 1.0, 1.0, 1.0
        if not self.config.alternate_updates:
            return 0.0, 1.0, 1.0
        translates = (step - warm_up) // self.config.alternate_updates % 2 == 0
        return 0.0, float(translates), float(not translates)

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        policy = self.model.policy
        shares = self.shares(self.step // self.accumulated_batches)
        for weight, value in zip(
            (policy.imitation, policy.translation_share, policy.policy_share), shares
        ):
            weight.assign(value)
        self.step += 1
