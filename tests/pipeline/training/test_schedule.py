"""The learning rate of a training, and its end by updates or by the clock."""

import dataclasses
import math
import types

import pytest

from pipeline.recipes.sections import TrainingConfig
from tests.pipeline.training.tiny_training import Clock


def test_learning_rate_warms_up_and_decays():
    from pipeline.training.schedule import learning_rate_at

    config = TrainingConfig(learning_rate=0.4, warmup_steps=10, final_learning_rate_share=0.1)
    assert learning_rate_at(0.0, 1, config) == pytest.approx(0.04)
    assert learning_rate_at(0.0, 5, config) == pytest.approx(0.2)
    assert (
        learning_rate_at(0.0, 10, config)
        == learning_rate_at(0.0, 1000, config)
        == pytest.approx(0.4)
    )
    assert learning_rate_at(0.5, 100, config) == pytest.approx(0.4 * 0.55)
    assert (
        learning_rate_at(1.0, 100, config)
        == learning_rate_at(1.7, 100, config)
        == pytest.approx(0.04)
    )
    rates = [learning_rate_at(step / 100, step + 10, config) for step in range(101)]
    assert rates == sorted(rates, reverse=True)


def test_learning_rate_without_warmup_or_decay():
    from pipeline.training.schedule import learning_rate_at

    config = TrainingConfig(learning_rate=0.4, warmup_steps=0, final_learning_rate_share=1.0)
    assert [learning_rate_at(progress, 1, config) for progress in (0.0, 0.3, 1.0)] == [
        pytest.approx(0.4)
    ] * 3
    config = TrainingConfig(learning_rate=0.4, warmup_steps=0, final_learning_rate_share=0.0)
    assert learning_rate_at(1.0, 1, config) == pytest.approx(0.0)


def schedule(monkeypatch, best=None, **training):
    """A Schedule of 2 epochs of 10 steps on a fake model, and its clock."""
    import keras

    from pipeline.training import schedule as module

    clock = Clock()
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=clock))
    config = TrainingConfig(
        epochs=2, warmup_steps=0, final_learning_rate_share=0.0, learning_rate=1.0, **training
    )
    callback = module.Schedule(config, 10, best)
    optimizer = types.SimpleNamespace(learning_rate=keras.Variable(0.5))
    callback.set_model(types.SimpleNamespace(optimizer=optimizer, stop_training=False))
    callback.on_train_begin()
    return callback, clock


def rate(callback):
    return float(callback.model.optimizer.learning_rate)


def test_schedule_follows_the_epochs_where_there_is_no_limit(monkeypatch):
    callback, clock = schedule(monkeypatch)
    for step in range(1, 21):
        clock.now += 1e6
        callback.on_train_batch_begin(step % 10)
        assert rate(callback) == pytest.approx((1 + math.cos(math.pi * step / 20)) / 2, abs=1e-6)
        callback.on_train_batch_end(step % 10)
        assert not callback.model.stop_training


def test_schedule_stops_when_the_time_is_used_up(monkeypatch):
    callback, clock = schedule(monkeypatch, max_seconds=10.0)
    rates = []
    for step, seconds in enumerate((1, 4, 9, 10), 1):
        clock.now = 1000.0 + seconds
        callback.on_train_batch_begin(step)
        rates.append(rate(callback))
        callback.on_train_batch_end(step)
        assert not callback.model.stop_training
    # The rate has fallen with the time, not been cut off.
    expected = [(1 + math.cos(math.pi * share)) / 2 for share in (0.1, 0.4, 0.9, 1.0)]
    assert rates == pytest.approx(expected, abs=1e-6)
    clock.now = 1010.5
    callback.on_train_batch_begin(5)
    callback.on_train_batch_end(5)
    assert callback.model.stop_training


def test_schedule_with_time_to_spare_follows_the_epochs(monkeypatch):
    callback, clock = schedule(monkeypatch, max_seconds=1000.0)
    for step in range(1, 11):
        clock.now += 1
        callback.on_train_batch_begin(step)
    assert rate(callback) == pytest.approx(0.5, abs=1e-6)


def test_updates_of_several_batches_have_one_rate(monkeypatch):
    """Warm-up is counted in updates, not in batches."""
    callback, _ = schedule(monkeypatch, accumulated_batches=2)
    assert callback.planned_updates == 10
    callback.config = dataclasses.replace(callback.config, warmup_steps=4)
    decays = [(1 + math.cos(math.pi * step / 20)) / 2 for step in range(1, 6)]
    for step, warm_up in enumerate((1, 1, 2, 2, 3), 1):
        callback.on_train_batch_begin(step)
        assert rate(callback) == pytest.approx(warm_up / 4 * decays[step - 1], abs=1e-6)
        callback.on_train_batch_end(step)
        assert callback.updates == step // 2


@pytest.mark.parametrize(
    "kind, steps, shares",
    [
        ("constant", (1, 2, 4, 400), (0.25, 0.5, 1.0, 1.0)),
        ("halving", (1, 4, 400), (0.25, 1.0, 1.0)),
        ("inverse_square_root", (2, 4, 16, 400), (0.5, 1.0, 0.5, 0.1)),
    ],
)
def test_schedules_after_the_warm_up(kind, steps, shares):
    from pipeline.training.schedule import learning_rate_at

    config = TrainingConfig(learning_rate=0.4, warmup_steps=4, schedule=kind)
    rates = [learning_rate_at(0.9, step, config) / 0.4 for step in steps]
    assert rates == pytest.approx(shares)


@pytest.mark.parametrize("first", [None, 2.5, float("nan")])
@pytest.mark.parametrize("kind, factor", [("halving", 0.5), ("quartering", 0.25), ("constant", 1)])
def test_an_epoch_that_is_no_better_lowers_the_rate(monkeypatch, kind, factor, first):
    """The weights of `training.initialize_from`, where there are some, are to be beaten, too."""
    from pipeline.training.best_weights import BestWeights
    from pipeline.training.selection import Selection

    best = BestWeights(Selection(), 10, lambda: {"val_loss": first}, first_too=first is not None)
    callback, _ = schedule(monkeypatch, best, schedule=kind)
    best.set_model(types.SimpleNamespace(get_weights=list, stop_training=False))
    best.on_train_begin()
    rates = []
    for loss in (3.0, 2.0, 2.5, 2.0, 1.0, float("nan")):
        callback.on_train_batch_begin(0)
        rates.append(rate(callback))
        for each in (best, callback):
            each.on_epoch_end(0, {"val_loss": loss})
    callback.on_train_batch_begin(0)
    rates.append(rate(callback))
    lower = int(first == 2.5)
    powers = [0, *(power + lower for power in (0, 0, 1, 2, 2, 3))]
    assert rates == pytest.approx([factor**power for power in powers])


@pytest.mark.parametrize("accumulated, last", [(1, 5), (2, 10)])
def test_schedule_ends_with_the_last_update(monkeypatch, accumulated, last):
    callback, _ = schedule(monkeypatch, max_updates=5, accumulated_batches=accumulated)
    assert callback.planned_updates == 5
    for step in range(1, last + 1):
        callback.on_train_batch_begin(step)
        # Workers hear of the end together with the last batch, before it.
        assert callback.model.stop_training == (step == last)
        callback.on_train_batch_end(step)
    assert callback.updates == 5 and rate(callback) == pytest.approx(0.0, abs=1e-6)
