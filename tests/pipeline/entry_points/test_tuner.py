"""The search for values: which trials are made, and what becomes of the best."""

import dataclasses
import math

import pytest

from pipeline.recipes import search_space, views
from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.training.test_data_parallel import fn_args
from tests.pipeline.training.tiny_training import recipe, write_pairs

RATES = {"training.learning_rate": [0.00001, 0.02]}


def searching(space, trials=4, algorithm="random", seed=1, **training):
    """The tiny recipe with a search."""
    tuning = {"trials": trials, "algorithm": algorithm, "seed": seed, "epochs": 1, "space": space}
    return recipe_from_dict({**recipe(**training).to_dict(), "tuning": tuning})


def search(made, folder, **arguments):
    """Searches as TFX's executor does; returns the tuner."""
    from pipeline.entry_points import tuner

    given = fn_args(folder, "tuner", made)
    given.working_dir = str(folder / "working")
    result = tuner.tuner_fn(given)
    result.tuner.search_space_summary()
    result.tuner.search(**result.fit_kwargs)
    result.tuner.results_summary()
    return result.tuner


@pytest.fixture
def trained(monkeypatch):
    """The recipes that trials train.

    Nothing is trained, the best learning rate is 0.01, and one below 0.001 fails.
    """
    from pipeline.tasks.seq2seq_task import Seq2SeqTask

    recipes = []

    def train(task, made, arguments, transform_output):
        recipes.append(made)
        if made.training.learning_rate < 0.001:
            raise ValueError("The training gave no finite loss: lower training.learning_rate.")
        loss = abs(math.log10(made.training.learning_rate) + 2)
        # The greater a metric, the better; it does not know of the loss.
        curve = [{"eval_loss": loss + 1, "selected": 10.0 - loss}, {"eval_loss": loss}]
        return None, {"curve": curve}

    monkeypatch.setattr(Seq2SeqTask, "train", train)
    return recipes


def test_the_oracle_is_given_the_space():
    from pipeline.entry_points import tuner

    space = {
        "training.learning_rate": {"low": 0.0003, "high": 0.01, "scale": "log"},
        "training.batch_tokens": {"low": 64, "high": 128},
        "training.accumulated_batches": [1, 2],
        "model.input_feeding": [True, False],
        "model.cell": ["gru", "lstm"],
    }
    given = {
        one.name: one.get_config()
        for one in tuner.make_hyperparameters(searching(space).tuning.space).space
    }
    assert set(given) == set(space)
    rate, tokens = given["training.learning_rate"], given["training.batch_tokens"]
    assert (rate["min_value"], rate["max_value"], rate["sampling"]) == (0.0003, 0.01, "log")
    assert (tokens["min_value"], tokens["max_value"], tokens["step"]) == (64, 128, 1)
    assert [given[key]["values"] for key in list(space)[2:]] == [
        [1, 2],
        [True, False],
        ["gru", "lstm"],
    ]


def test_trials_are_compared_by_what_the_training_selects_by(trained, tmp_path, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    space = {"training.learning_rate": [0.002, 0.01, 0.05]}
    made = searching(space, algorithm="random", select_by="bleu")
    found = search_space.read_found(
        search(made, tmp_path).get_best_hyperparameters()[0].get_config()
    )
    assert found["values"] == {"training.learning_rate": 0.01}
    assert (found["measure"], found["score"]) == ("BLEU", 10.0)
    assert "with BLEU 10.0000: training.learning_rate = 0.01." in search_space.summary(found)
    assert "BLEU 10.0000, the best so far" in caplog.text


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "hyperband"])
def test_a_search_is_the_same_with_the_same_seed(algorithm, trained, tmp_path, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    space = {
        "training.learning_rate": {"low": 0.0001, "high": 0.1, "scale": "log"},
        "model.dropout": [0.0, 0.1, 0.2],
    }
    found, rates = [], []
    for number, seed in enumerate((7, 7, 8)):
        made = searching(space, trials=9, algorithm=algorithm, seed=seed, workers=2)
        tuner = search(made, tmp_path / str(number))
        found.append(search_space.read_found(tuner.get_best_hyperparameters()[0].get_config()))
        rates.append([one.training.learning_rate for one in trained])
        trained.clear()
    assert rates[0] == rates[1] != rates[2] and found[0] == found[1]
    assert len(rates[0]) == found[0]["trials"] == 9
    assert found[0]["failed"] == sum(rate < 0.001 for rate in rates[0]) > 0
    best = min(
        (rate for rate in rates[0] if rate >= 0.001), key=lambda rate: abs(math.log10(rate) + 2)
    )
    assert found[0]["values"]["training.learning_rate"] == best
    assert found[0]["score"] == pytest.approx(abs(math.log10(best) + 2))
    said = caplog.text
    assert said.count(" trial ") == 27 and "trial 9 of 9: model.dropout = " in said
    assert said.count(": failed. The training gave no finite loss") == sum(
        rate < 0.001 for of_search in rates for rate in of_search
    )
    assert f"Found by 9 trials ({algorithm} search, {found[0]['failed']} of them failed)" in said


def test_a_trial_trains_the_recipe_with_its_values(trained, tmp_path):
    made = searching(
        {"training.learning_rate": [0.02], "model.dropout": [0.3]}, epochs=5, workers=2
    )
    search(made, tmp_path)
    expected = {
        "training.learning_rate": 0.02,
        "model.dropout": 0.3,
        "training.epochs": 1,
        "training.workers": 1,
    }
    # One trial: there is nothing else to try.
    assert trained == [views.with_values(views.tuning_recipe(made), expected)]


def test_hyperband_trains_the_best_for_longer(trained, tmp_path):
    space = {"training.learning_rate": {"low": 0.001, "high": 0.1}}
    made = searching(space, trials=12, algorithm="hyperband")
    made = dataclasses.replace(made, tuning=dataclasses.replace(made.tuning, epochs=4))
    search(made, tmp_path)
    epochs = [one.training.epochs for one in trained]
    assert epochs[0] == 2 and epochs.count(4) > 0 and len(epochs) == 12
    first = epochs.index(4)
    tried = [one.training.learning_rate for one in trained]
    assert tried[first] == min(tried[:first], key=lambda rate: abs(math.log10(rate) + 2))


def test_values_that_do_not_fit_together_are_a_failed_trial(trained, tmp_path, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    tree = recipe().to_dict()
    tree["model"].update(body="transformer", attention_heads=2)
    space = {"model.hidden_size": [8, 12], "model.attention_heads": [2, 8]}
    search(recipe_from_dict({**tree, "tuning": {"trials": 9, "space": space}}), tmp_path)
    assert {(one.model.hidden_size, one.model.attention_heads) for one in trained} == {
        (8, 2),
        (12, 2),
        (8, 8),
    }
    assert (
        "failed. The recipe key 'model.hidden_size' (12) must be even and divisible" in caplog.text
    )


def test_where_all_trials_fail_it_says_so(trained, tmp_path):
    from pipeline.entry_points import tuner

    made = searching({"training.learning_rate": [0.0001, 0.0002, 0.0003, 0.0004, 0.0005]}, trials=5)
    with pytest.raises(
        tuner.SearchError,
        match="All 5 trials failed, .*change 'tuning.space'.* gave no finite loss",
    ):
        search(made, tmp_path)


def test_an_error_that_is_no_trials_ends_the_search(monkeypatch, tmp_path):
    import keras_tuner

    from pipeline.tasks.seq2seq_task import Seq2SeqTask

    def train(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(Seq2SeqTask, "train", train)
    with pytest.raises(keras_tuner.errors.FatalError, match="OSError: No space left on device"):
        search(searching(RATES), tmp_path)


@pytest.mark.slow
def test_the_better_of_two_learning_rates_is_found(tmp_path, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    write_pairs(tmp_path / "train.gz")
    write_pairs(tmp_path / "eval.gz", count=12)
    tuner = search(searching(RATES, trials=3), tmp_path)
    found = search_space.read_found(tuner.get_best_hyperparameters()[0].get_config())
    assert found["values"] == {"training.learning_rate": 0.02}
    # Both were tried, and there is no third.
    assert (found["trials"], found["failed"]) == (2, 0)
    assert "trial 2 of 3" in caplog.text
    assert not list((tmp_path / "working").rglob("*.checkpoint")) + list(
        (tmp_path / "working").rglob("*.keras")
    )
