"""When a segmenting encoder imitates, and whether translation and segmentation learn together or in
turn.
"""

import keras


class SegmentationPhases(keras.callbacks.Callback):
    """Sets the shares of a model's `policy` before each update.

    Args:
        config: the recipe's segmentation section. For `warm_up_updates` its `warm_up` is imitated;
            after that translation and segmentation learn together, or, with `alternate_updates`
            above 0, so many updates the one, then so many the other.
        accumulated_batches: how many batches make an update.
    """

    remembered = ("step",)  # by a checkpoint

    def __init__(self, config, accumulated_batches=1):
        super().__init__()
        self.config = config
        self.accumulated_batches = accumulated_batches
        self.step = 0

    def shares(self, step):
        """Returns imitation, translation share and policy share at an update, numbered from 0."""
        warm_up = self.config.warm_up_updates if self.config.warm_up != "none" else 0
        if step < warm_up:
            return 1.0, 1.0, 1.0
        if not self.config.alternate_updates:
            return 0.0, 1.0, 1.0
        translates = (step - warm_up) // self.config.alternate_updates % 2 == 0
        return 0.0, float(translates), float(not translates)

    def on_train_batch_begin(self, batch, logs=None):
        policy = self.model.policy
        shares = self.shares(self.step // self.accumulated_batches)
        for weight, value in zip(
            (policy.imitation, policy.translation_share, policy.policy_share), shares
        ):
            weight.assign(value)
        self.step += 1
