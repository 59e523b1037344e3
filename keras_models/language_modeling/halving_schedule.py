"""The learning rate of a language model's training."""

import math


class HalvingSchedule:
    """Halves the learning rate after an epoch that is worse than the one before.

    It stops the training when no epoch has improved on the best one for a while. See section 5.2 of
    Merity et al. 2016.

    Args:
        learning_rate: learning rate of the first epoch.
        patience: number of epochs without a new best after which training stops.

    Attributes:
        learning_rate: learning rate of the next epoch.
        best: lowest perplexity so far.
        improved: whether the last epoch is the best so far.
        stopped: whether training should stop.
        state: dict of the schedule's state, for a checkpoint. Assign it to restore the schedule.
    """

    def __init__(self, learning_rate, patience=3):
        self.learning_rate = learning_rate
        self.patience = patience
        self.best = math.inf
        self.improved = False
        self.stopped = False
        self._last = math.inf
        self._without_gain = 0

    @property
    def state(self):
        return dict(vars(self))

    @state.setter
    def state(self, state):
        vars(self).update(state)

    def begin_with(self, validation_perplexity):
        """Records the perplexity before the first epoch, as the best so far."""
        self.best = self._last = validation_perplexity

    def update(self, validation_perplexity):
        """Records the perplexity of an epoch. NaN counts as worse."""
        if not validation_perplexity <= self._last:
            self.learning_rate /= 2
        self._last = validation_perplexity if not math.isnan(validation_perplexity) else math.inf
        self.improved = validation_perplexity < self.best
        self._without_gain = 0 if self.improved else self._without_gain + 1
        self.best = min(self.best, self._last)
        self.stopped = self._without_gain >= self.patience
