"""Scheduled sampling: the probability of feeding the gold token, update by update.

After Bengio et al. 2015.
"""

import math
from collections.abc import Mapping
from typing import Any

import keras

from pipeline.recipes.sections import TrainingConfig

SCHEDULES = ("none", "linear", "exponential", "inverse_sigmoid")


def gold_probability(step: int, schedule: str, half_life: float, floor: float = 0.0) -> float:
    """Returns the probability of feeding the gold token at an update (section 2.4).

        linear:           1 - c i
        exponential:      k^i
        inverse_sigmoid:  k / (k + exp(i / k))

    and never below the floor. The speed of all three is said in one way, by the update at which the
    probability is one half: c = 1 / (2 half_life), k = 2^(-1 / half_life), and k ln k = half_life.

    Args:
        step: i, number of the update, from 0.
        schedule: one of `SCHEDULES`; `"none"` always feeds the gold token.
        half_life: number of updates, at least 1.
        floor: the least probability.

    Raises:
        ValueError: an unknown schedule.

    References:
        Bengio, Vinyals, Jaitly, Shazeer 2015, "Scheduled Sampling for Sequence Prediction with
        Recurrent Neural Networks", https://arxiv.org/abs/1506.03099
    """
    if schedule == "none":
        return 1.0
    if schedule == "linear":
        probability = 1.0 - step / (2.0 * half_life)
    elif schedule == "exponential":
        probability = 0.5 ** (step / half_life)
    elif schedule == "inverse_sigmoid":
        k = inverse_sigmoid_constant(half_life)
        scaled = k * math.exp(-step / k)
        probability = scaled / (scaled + 1.0)
    else:
        raise ValueError(f"The schedule must be one of {', '.join(SCHEDULES)}; got {schedule!r}.")
    return max(floor, probability)


def inverse_sigmoid_constant(half_life: float) -> float:
    """Returns the k of k ln k = half_life, by Newton's method.

    k / (k + exp(i / k)) is one half where i = k ln k.
    """
    k = max(math.e, half_life)
    for _ in range(50):
        k = (half_life + k) / (math.log(k) + 1.0)
    return k


class ScheduledSampling(keras.callbacks.Callback):
    """Sets a model's `gold_probability` before each update.

    Args:
        config: the recipe's training section.
    """

    # By a checkpoint, under the name of this class.
    remembered = ("step",)

    def __init__(self, config: TrainingConfig) -> None:
        super().__init__()
        self.config = config
        self.step = 0

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        config = self.config
        probability = gold_probability(
            self.step // config.accumulated_batches,
            config.scheduled_sampling,
            config.scheduled_sampling_half_life,
            config.scheduled_sampling_floor,
        )
        self.model.gold_probability.assign(probability)
        self.step += 1
