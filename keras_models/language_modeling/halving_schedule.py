"""The learning rate of a language model's training."""

import math


class HalvingSchedule:
    """Halves the learning rate after a worse epoch, and ends after epochs without gain.

    See section 5.2 of Merity et al. 2016.

    Args:
        learning_rate: of the first epoch.
        patience: epochs without a new best after which training ends.

    Attributes:
        learning_rate: of the next epoch.
        best: lowest perplexity.
        improved: whether the last epoch was the best.
        stopped: whether training should end.
        state: all that it remembers, a dict, for a checkpoint; it can be set.
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
        """Records the perplexity before the first epoch, which later ones must beat."""
        self.best = self._last = validation_perplexity

    def update(self, validation_perplexity):
        """Records an epoch; a perplexity that is not a number counts as worse."""
        if not validation_perplexity <= self._last:
            self.learning_rate /= 2
        self._last = validation_perplexity if not math.isnan(validation_perplexity) else math.inf
        self.improved = validation_perplexity < self.best
        self._without_gain = 0 if self.improved else self._without_gain + 1
        self.best = min(self.best, self._last)
        self.stopped = self._without_gain >= self.patience
