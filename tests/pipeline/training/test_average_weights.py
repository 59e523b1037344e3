"""Averages of weights: against their sums in NumPy, and as what a training keeps."""

import keras
import numpy as np
import pytest

from pipeline.recipes.sections import TrainingConfig
from pipeline.training import average_weights
from pipeline.training.best_weights import BestWeights
from pipeline.training.selection import Selection

BLEU = Selection("bleu", lower_is_better=False)


class Model:
    """Two weights, a random generator's state, and the epoch's end that Keras would call."""

    def __init__(self):
        self.trainable_variables = [keras.Variable(np.zeros((2, 3))), keras.Variable(0.0)]
        self.state = keras.Variable(7, dtype="uint32")
        self.stop_training = False

    def get_weights(self):
        return [variable.numpy() for variable in (*self.trainable_variables, self.state)]

    def set_weights(self, values):
        for variable, value in zip((*self.trainable_variables, self.state), values, strict=True):
            variable.assign(value)


def drawn(count):
    generator = np.random.default_rng(3)
    return [
        [generator.standard_normal((2, 3)).astype("float32"), np.float32(generator.normal())]
        for _ in range(count)
    ]


def set_trained(model, values):
    for variable, value in zip(model.trainable_variables, values, strict=True):
        variable.assign(value)


def trained(model):
    return [variable.numpy() for variable in model.trainable_variables]


def assert_close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulated", [1, 2])
def test_the_moving_average_weighs_each_update_by_its_age(accumulated):
    decay, model = 0.7, Model()
    callback = average_weights.MovingAverage(decay, accumulated)
    callback.set_model(model)
    assert callback.average() is None
    history = drawn(6)
    for number, values in enumerate(history):
        set_trained(model, values)
        callback.on_train_batch_end(number)
    seen = history[accumulated - 1 :: accumulated]
    shares = np.array([decay**age for age in reversed(range(len(seen)))])
    wanted = [
        sum(share * values[place].astype("float64") for share, values in zip(shares, seen))
        / shares.sum()
        for place in range(2)
    ]
    assert_close(callback.average(), wanted)
    # In a checkpoint and back.
    other = average_weights.MovingAverage(decay, accumulated)
    other.set_model(model)
    for name in callback.remembered:
        setattr(other, name, getattr(callback, name))
    assert_close(other.average(), wanted)


def test_an_average_is_measured_and_the_training_goes_on_with_its_own_weights():
    model = Model()
    callback = average_weights.MeanOfEpochs(2)
    end = average_weights.TrainedWeights(callback)
    callback.set_model(model)
    history = drawn(4)
    for epoch, values in enumerate(history):
        set_trained(model, values)
        callback.on_test_begin()
        # A measure by callbacks begins a test of its own.
        callback.on_test_begin()
        assert_close(
            trained(model), [np.mean(v, 0) for v in zip(*history[max(0, epoch - 1) : epoch + 1])]
        )
        end.on_epoch_end(epoch)
        assert_close(trained(model), values)


def test_the_mean_is_the_mean_and_a_state_is_the_last():
    history = [[*values, np.uint32(number)] for number, values in enumerate(drawn(3))]
    *mean, state = average_weights.mean_of(history)
    assert_close(mean, [np.mean(values, 0) for values in list(zip(*history))[:2]])
    assert state == 2 and mean[0].dtype == np.float32


@pytest.mark.parametrize("measured, kept", [(40.0, "mean"), (29.0, "best")])
def test_the_mean_of_the_best_epochs_is_kept_if_it_is_better(measured, kept):
    model, history = Model(), drawn(4)
    best = BestWeights(BLEU, 10, lambda: {"val_bleu": measured}, averaged=2)
    best.set_model(model)
    best.on_train_begin()
    for epoch, (values, bleu) in enumerate(zip(history, (10.0, 30.0, 20.0, float("nan")))):
        set_trained(model, values)
        best.on_epoch_end(epoch, {"val_bleu": bleu})
    best.on_train_end()
    wanted = history[1] if kept == "best" else [np.mean(v, 0) for v in zip(*history[1:3])]
    assert_close(trained(model), wanted)


def test_patience_counts_epochs_without_a_better_one():
    model = Model()
    best = BestWeights(BLEU, 2)
    best.set_model(model)
    best.on_train_begin()
    stops = []
    for epoch, bleu in enumerate((10.0, 12.0, 11.0, 13.0, 13.0, 12.9)):
        best.on_epoch_end(epoch, {"val_bleu": bleu})
        stops.append(model.stop_training)
    assert stops == [False] * 5 + [True]


def test_the_last_epochs_weights_are_kept_where_a_recipe_says_so():
    """Also those of an epoch that was no better, or had no measure."""
    model, history = Model(), drawn(3)
    last = BestWeights(Selection("bleu", False, last_epoch=True), 10, lambda: {"val_bleu": 50.0})
    last.set_model(model)
    last.on_train_begin()
    improved = []
    for epoch, (values, bleu) in enumerate(zip(history, (12.0, 11.0, float("nan")))):
        set_trained(model, values)
        last.on_epoch_end(epoch, {"val_bleu": bleu})
        improved.append(last.improved)
    set_trained(model, history[0])
    last.on_train_end()
    assert_close(trained(model), history[2])
    assert improved == [True, False, False]


def test_an_epoch_that_diverged_is_not_kept_for_being_the_last():
    model, history = Model(), drawn(2)
    last = BestWeights(Selection(last_epoch=True), 10)
    last.set_model(model)
    last.on_train_begin()
    for epoch, (values, loss) in enumerate(zip(history, (2.0, float("nan")))):
        set_trained(model, values)
        last.on_epoch_end(epoch, {"val_loss": loss})
    last.on_train_end()
    assert_close(trained(model), history[0])


def test_a_training_that_keeps_its_last_epoch_may_be_worse_than_where_it_began():
    model, history = Model(), drawn(2)
    set_trained(model, history[0])
    selection = Selection(last_epoch=True)
    last = BestWeights(selection, 10, lambda: {"val_loss": 1.0}, first_too=True)
    last.set_model(model)
    last.on_train_begin()
    set_trained(model, history[1])
    last.on_epoch_end(0, {"val_loss": 2.0})
    last.on_train_end()
    assert_close(trained(model), history[1])


def test_an_epoch_without_a_measure_is_never_the_best():
    """Such as BLEU of outputs that are all empty."""
    model, history = Model(), drawn(3)
    best = BestWeights(BLEU, 10)
    best.set_model(model)
    best.on_train_begin()
    for epoch, (values, bleu) in enumerate(zip(history, (float("nan"), 12.0, 11.0))):
        set_trained(model, values)
        best.on_epoch_end(epoch, {"val_bleu": bleu})
    best.on_train_end()
    assert_close(trained(model), history[1])
    assert best.best == 12.0 and best.wait == 1


def test_a_recipe_names_its_average():
    kinds = {"none": None, "moving": average_weights.MovingAverage, "best": None}
    kinds["last"] = average_weights.MeanOfEpochs
    for name, kind in kinds.items():
        made = average_weights.make_average(TrainingConfig(average=name))
        assert made is None if kind is None else isinstance(made, kind)


def test_a_selection_knows_its_direction():
    loss, ter = Selection(), Selection.of_training(TrainingConfig(select_by="ter"))
    bleu = Selection.of_training(TrainingConfig(select_by="bleu"))
    assert (loss.mode, ter.mode, bleu.mode) == ("min", "min", "max")
    assert bleu.is_better(2.0, 1.0) and not bleu.is_better(1.0, 1.0) and ter.is_better(1.0, 2.0)
    assert loss.is_better(5.0, None) and not loss.is_better(float("nan"), None)
    assert np.isnan(loss.of({})) and bleu.of({"val_bleu": 3}) == 3.0


@pytest.mark.parametrize(("keep", "measure"), [("best", 2.0), ("last", 3.0)])
def test_a_training_is_compared_by_the_epoch_that_it_keeps(keep, measure):
    selection = Selection.of_training(TrainingConfig(keep=keep))
    curve = [{"eval_loss": value} for value in (4.0, 2.0, 3.0)]
    assert selection.of_curve(curve) == measure
    assert np.isnan(selection.of_curve([]))
