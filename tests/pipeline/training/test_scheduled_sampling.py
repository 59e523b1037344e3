"""Schedules of scheduled sampling: the paper's curves, told by their half-life."""

import math
import types

import keras
import pytest

from pipeline.recipes.sections import TrainingConfig
from pipeline.training.scheduled_sampling import (
    ScheduledSampling,
    gold_probability,
    inverse_sigmoid_constant,
)
from tests.keras_models import recurrent_oracles

STEPS = (0, 1, 7, 50, 100, 333, 5000)


@pytest.mark.parametrize("half_life", [1, 3, 50, 1000])
def test_schedules_are_those_of_the_paper(half_life):
    k = inverse_sigmoid_constant(half_life)
    assert k >= 1 and k * math.log(k) == pytest.approx(half_life)
    for step in STEPS:
        linear = recurrent_oracles.linear_decay(step, 1.0, 1 / (2 * half_life), 0.1)
        assert gold_probability(step, "linear", half_life, 0.1) == pytest.approx(linear)
        exponential = recurrent_oracles.exponential_decay(step, 0.5 ** (1 / half_life))
        assert gold_probability(step, "exponential", half_life) == pytest.approx(exponential)
        inverse = recurrent_oracles.inverse_sigmoid_decay(step, k)
        assert gold_probability(step, "inverse_sigmoid", half_life) == pytest.approx(inverse)
        assert gold_probability(step, "none", half_life) == 1.0


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse_sigmoid"])
def test_schedules_fall_to_one_half_and_to_the_floor(schedule):
    assert gold_probability(40, schedule, 40) == pytest.approx(0.5)
    curve = [gold_probability(step, schedule, 40, 0.25) for step in range(400)]
    assert curve == sorted(curve, reverse=True) and curve[0] > 0.9 and curve[-1] == 0.25
    assert gold_probability(10**9, schedule, 40) == 0.0


def test_an_unknown_schedule():
    with pytest.raises(
        ValueError, match="must be one of none, linear, exponential, inverse_sigmoid; got 'step'"
    ):
        gold_probability(1, "step", 10)


def test_the_callback_sets_the_probability_before_each_update():
    config = TrainingConfig(
        scheduled_sampling="linear", scheduled_sampling_half_life=2, scheduled_sampling_floor=0.3
    )
    callback = ScheduledSampling(config)
    callback.set_model(types.SimpleNamespace(gold_probability=keras.Variable(1.0)))
    seen = []
    for batch in (0, 1, 0, 1):  # two epochs of two updates
        callback.on_train_batch_begin(batch)
        seen.append(float(callback.model.gold_probability))
    assert seen == pytest.approx([1.0, 0.75, 0.5, 0.3])
