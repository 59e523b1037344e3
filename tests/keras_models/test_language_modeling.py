import math

import keras
import numpy as np
import pytest

from keras_models import language_modeling
from keras_models.language_modeling import FitOptions, HalvingSchedule, StreamModel
from keras_models.losses import negative_log_likelihood
from keras_models.models import LanguageModel
from tests.keras_models import sentinel_oracle
from tests.keras_models.backends import TENSORFLOW, numpy, randomize
from tests.keras_models.models.test_language_model import V, make, oracle_weights


def test_rows_are_contiguous_and_lose_nothing():
    inputs, targets = language_modeling.rows_of(np.arange(10, 21), 3)
    np.testing.assert_array_equal(targets, [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19, 20, 0]])
    np.testing.assert_array_equal(inputs, [[3, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 0]])
    with pytest.raises(
        ValueError, match="A stream of 2 words cannot be cut into 3 rows: give more text"
    ):
        language_modeling.rows_of([4, 5], 3)
    stream = np.arange(10, 21)
    rows = language_modeling.Rows(stream, 3)
    assert rows.length == 4
    np.testing.assert_array_equal(rows.inputs(1, 4), inputs[:, 1:4])
    np.testing.assert_array_equal(rows.targets(3, 4), targets[:, 3:4])
    # A corpus may be larger than the memory.
    assert all(np.shares_memory(part, stream) for part in vars(rows).values() if np.size(part) > 3)


@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize("length", [1, 5, 6, 17])
@pytest.mark.parametrize("stride", [1, 2, 5])
def test_every_loss_is_taken_once(length, stride, carry):
    updates = language_modeling.updates_of(length, 5, stride, carry)
    taken = [t for begin, end, losses in updates for t in range(end - losses, end)]
    assert taken == list(range(length))
    for number, (begin, end, _) in enumerate(updates):
        # The LSTM's state is known where a window begins; all windows but a row's first and last
        # are whole.
        assert begin == number * stride and (carry or end - begin <= 5)
        assert carry or end - begin == 5 or number in (0, len(updates) - 1)


def test_the_papers_walk():
    assert language_modeling.updates_of(7, 5, 1, False) == [(0, 5, 5), (1, 6, 1), (2, 7, 1)]
    with pytest.raises(ValueError, match=r"between 1 and the window \(5\)"):
        language_modeling.updates_of(9, 5, 6, False)


def test_learning_rate_halves_when_worse_and_training_stops_without_gain():
    schedule = HalvingSchedule(1.0, patience=3)
    rates, stopped = [], []
    for measured in (100, 90, 95, 94, math.nan, 80, 81, 80.5, 80.0):
        schedule.update(measured)
        rates.append(schedule.learning_rate)
        stopped.append(schedule.stopped)
    # 95 is worse than 90; 94 is better than 95, though no new best; an epoch that is not a number
    # is worse.
    assert rates == [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125]
    assert schedule.best == 80 and stopped == [False] * 4 + [True] + [False] * 3 + [True]


@pytest.mark.parametrize("head", ["pointer_sentinel", "softmax"])
def test_perplexity_of_a_stream_equals_the_oracle(head):
    model = make(head=head, window=4)
    ids = np.random.default_rng(5).integers(1, V, size=37)
    expected = sentinel_oracle.perplexity(
        list(ids), 3, oracle_weights(model), 4, 0.1, 0.3, pointer=model.points
    )
    # Chunks that do not divide the stream, and are longer and shorter than the window.
    for chunk in (4, 7):
        assert language_modeling.perplexity(model, ids, chunk=chunk) == pytest.approx(
            expected, rel=1e-5
        )
    if head == "softmax":
        return
    # Two rows begin two texts.
    log_probs = StreamModel(model, 2).score(ids, chunk=19)
    assert log_probs.shape == (37,)
    halves = [
        sentinel_oracle.perplexity(list(part), start, oracle_weights(model), 4, 0.1, 0.3)
        for part, start in ((ids[:19], 3), (ids[19:], ids[18]))
    ]
    expected = math.exp((19 * math.log(halves[0]) + 18 * math.log(halves[1])) / 37)
    assert language_modeling.perplexity_of(log_probs) == pytest.approx(expected, rel=1e-5)
    assert language_modeling.perplexity_of([-1e9]) == math.inf


def test_carried_states_are_those_of_the_update_before_it():
    """`train_on_batch` leaves in the variables what the model returns; `reset` empties them."""
    model = make(dropout=0.0, zoneout_hidden=0.0, zoneout_cell=0.0)
    words = np.random.default_rng(5).integers(1, V, size=(2, 10))
    expected = numpy(keras.tree.flatten(model(words[:, :3])[1]["states"]))
    walker = StreamModel(model, 2, stride=3)
    walker.compile(
        keras.optimizers.SGD(0.1), loss=negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    labels = words[:, 4:6]
    loss = walker.train_on_batch({"inputs": words[:, :5], "targets": labels}, labels)
    assert np.isfinite(loss)
    for variable, value in zip(walker.carry_variables, expected, strict=True):
        np.testing.assert_allclose(numpy(variable.value), value, rtol=0, atol=1e-5)
    walker.reset()
    assert all((numpy(variable.value) == 0).all() for variable in walker.carry_variables)


def text_of_names(rng, sentences):
    """Each sentence names somebody, one of many, and names them again.

    The second name can be known from the first alone.
    """
    words = []
    for _ in range(sentences):
        name = rng.integers(8, 40)
        words += [4, name, 5, name, 6, 3]
    return np.array(words)


@pytest.mark.slow
def test_the_pointer_learns_what_the_softmax_cannot():
    """By either way of walking along the stream."""
    rng = np.random.default_rng(0)
    train, valid = text_of_names(rng, 120), text_of_names(rng, 20)

    def reached(head, **walk):
        keras.utils.set_random_seed(0)
        model = LanguageModel(
            40,
            head,
            window=8,
            embedding_size=16,
            hidden_size=16,
            recurrent_layers=1,
            dropout=0.0,
            zoneout_cell=0.1,
        )
        options = FitOptions(batch_size=4, learning_rate=0.02, max_epochs=6, **walk)
        seen = []
        history = language_modeling.fit(model, train, valid, options, on_epoch=seen.append)
        assert seen == history and [entry["epoch"] for entry in history] == list(
            range(1, len(history) + 1)
        )
        assert history[-1]["loss"] < history[0]["loss"]
        best = min(entry["perplexity"] for entry in history)
        # The weights are those of the best epoch.
        assert language_modeling.perplexity(model, valid) == pytest.approx(best, rel=1e-4)
        return best

    softmax = reached("softmax", carry=True)
    assert reached("pointer_sentinel", carry=True) < 0.75 * softmax
    assert reached("pointer_sentinel", carry=False, stride=4) < 0.75 * softmax


def test_fit_ends_when_its_time_is_used_up_and_says_when_nothing_is_learnt():
    model = make()
    randomize(model, scale=0.1)
    ids = np.random.default_rng(0).integers(1, V, size=48)
    history = language_modeling.fit(
        model, ids, ids, FitOptions(batch_size=2, max_seconds=0.0, stride=8)
    )
    assert [(entry["epoch"], entry["updates"]) for entry in history] == [(1, 1)]
    with pytest.raises(
        ValueError, match="A validation stream of 2 words cannot be cut into 3 rows"
    ):
        language_modeling.fit(
            model, ids, ids[:2], FitOptions(batch_size=2, evaluation_batch_size=3)
        )
    with pytest.raises(ValueError, match="optimizer must be one of adam, sgd; got 'lion'"):
        FitOptions(optimizer="lion").make_optimizer()
    assert numpy(FitOptions(optimizer="sgd").make_optimizer().learning_rate) == 1


def test_a_training_goes_on_from_each_of_its_states():
    ids = np.random.default_rng(0).integers(1, V, size=48)
    options = FitOptions(batch_size=2, stride=8, learning_rate=0.02, max_epochs=2)

    def train(state=None):
        """Returns a training's states, its history without the seconds, and its last weights."""
        keras.utils.set_random_seed(0)
        model = LanguageModel(
            V, "softmax", window=4, embedding_size=4, hidden_size=4, recurrent_layers=1, dropout=0.5
        )
        states = []

        def checkpoint(state_now, at_epoch_end):
            # A copy: an array may be a view of a variable.
            copy = keras.tree.map_structure(
                lambda leaf: leaf.copy() if hasattr(leaf, "copy") else leaf, state_now()
            )
            states.append({**copy, "history": list(copy["history"]), "at_epoch_end": at_epoch_end})

        history = language_modeling.fit(
            model, ids, ids[:16], options, state=state, checkpoint=checkpoint
        )
        assert all(entry.pop("seconds") >= 0 for entry in history)
        return states, history, [numpy(variable) for variable in model.variables]

    states, history, weights = train()
    # Three updates an epoch; what follows the last one is the epoch's end.
    assert [(state["epoch"], state["taken"], state["at_epoch_end"]) for state in states] == [
        *((1, 1, False), (1, 2, False), (2, 0, True)),
        *((2, 1, False), (2, 2, False), (3, 0, True)),
    ]
    for state in (states[1], states[2], states[5]):
        _, again, others = train(
            {**state, "history": [{**entry, "seconds": 0.0} for entry in state["history"]]}
        )
        assert again == history
        for one, other in zip(weights, others, strict=True):
            np.testing.assert_array_equal(one, other)
