"""The search for values:
what a recipe may say, which trials are made, what becomes of the best, and where a pipeline has it.
"""

import dataclasses
import json
import math

import pytest

from pipeline.recipes import loading, search_space, views
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from pipeline.training import trainer_outputs
from tests.pipeline.training.test_data_parallel import fn_args
from tests.pipeline.training.test_trainer import recipe, write_pairs

RECIPE = "localization_en_fr"
RATES = {"training.learning_rate": [0.00001, 0.02]}
#: What a Trainer gets from a Tuner, as far as it is read.
FOUND = {
    "space": [],
    "values": {
        **{
            "training.learning_rate": 0.01,
            "model.hidden_size": 12,
            "tuner/epochs": 1,
            "tuner/bracket": 0,
        },
        **{
            "tuner/algorithm": "hyperband",
            "tuner/trials": 5,
            "tuner/failed": 1,
            "tuner/eval_loss": 2.5,
        },
    },
}


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
    """The recipes that trials train;
    nothing is trained, the best learning rate is 0.01, and one below 0.001 fails.
    """
    from pipeline.tasks import seq2seq

    recipes = []

    def train(made, fn_args, transform_output):
        recipes.append(made)
        if made.training.learning_rate < 0.001:
            raise ValueError("The training gave no finite loss: lower training.learning_rate.")
        loss = abs(math.log10(made.training.learning_rate) + 2)
        return None, {"curve": [{"eval_loss": loss + 1}, {"eval_loss": loss}]}

    monkeypatch.setattr(seq2seq, "train", train)
    return recipes


@pytest.mark.parametrize(
    "override,sentence",
    [
        (
            "tuning.trials=2",
            "'tuning.space' must name a key at least where 'tuning.trials' is above 0",
        ),
        ("tuning.space=3", "'tuning.space' must be a section"),
        (
            "tuning.space.model.hiden_size=[8]",
            "'model.hiden_size'; did you mean 'model.hidden_size'?",
        ),
        (
            "tuning.space.data.units=['words']",
            "unknown key 'data'. It can name keys of the sections model and training",
        ),
        (
            "tuning.space.model.head=['softmax']",
            "cannot name 'model.head': other heads are compared by 'baseline.head'",
        ),
        (
            "tuning.space.model.coverage=[true, false]",
            "cannot name 'model.coverage': it changes the eval loss itself",
        ),
        (
            "tuning.space.training.epochs=[1, 2]",
            "cannot name 'training.epochs': 'tuning.epochs' says",
        ),
        (
            "tuning.space.model.dropout=[]",
            "'tuning.space.model.dropout' must be a list of values to try, or a range",
        ),
        (
            "tuning.space.model.dropout=0.1",
            "must be a list of values to try, or a range such as .*; got 0.1",
        ),
        (
            "tuning.space.model.dropout=['a']",
            "'tuning.space.model.dropout' must be a number; got 'a'",
        ),
        (
            "tuning.space.model.dropout=[0.1, 2]",
            "'tuning.space.model.dropout' must be between 0.0 and 0.95; got 2.0",
        ),
        (
            "tuning.space.model.dropout=[0, 0.0]",
            "'tuning.space.model.dropout' names something twice",
        ),
        ("tuning.space.model.dropout={low=0.2}", "'tuning.space.model.dropout' lacks 'high'"),
        (
            "tuning.space.model.dropout={low=0.2, hihg=0.3}",
            "'tuning.space.model.dropout.hihg'; did you mean 'high'?",
        ),
        (
            "tuning.space.model.dropout={low=0.2, high=0.2}",
            r"model.dropout.low' \(0.2\) must be below .*high' \(0.2\)",
        ),
        (
            "tuning.space.model.dropout={low=0.0, high=0.2, scale='log'}",
            'low\' must be above 0 for the scale "log"',
        ),
        (
            "tuning.space.model.dropout={low=0.1, high=0.2, scale='lgo'}",
            "scale' must be one of 'linear', 'log'",
        ),
        (
            "tuning.space.model.hidden_size={low=8.0, high=12}",
            "hidden_size.low' must be a whole number; got 8.0",
        ),
        (
            "tuning.space.model.cell={low=1, high=2}",
            "'tuning.space.model.cell' must be a list .* only numbers have a range",
        ),
        (
            "tuning.space.model.hidden_size=[8, 7]",
            "'tuning.space.model.hidden_size' cannot try 7. .* must be even",
        ),
        (
            "tuning.space.model.hidden_size={low=8, high=12}",
            "cannot try 9. The recipe key 'model.hidden_size' must be even",
        ),
        (
            "tuning.space.training.learning_rate=[0.0, 0.1]",
            "cannot try 0.0. .*'training.learning_rate' must be above 0",
        ),
        (
            "tuning.space.model.composition=['lookup', 'bilstm']",
            "cannot try 'bilstm': it needs other features",
        ),
        (
            "tuning.algorithm=grid",
            "'tuning.algorithm' must be one of 'random', 'bayesian', 'hyperband'; got 'grid'",
        ),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(override, sentence):
    with pytest.raises(RecipeError, match=sentence):
        loading.load_recipe(RECIPE, [override])


def test_a_language_model_searches_what_it_reads():
    override = "tuning.space.{}=[0.1, 0.2]"
    assert loading.load_recipe(
        "penn_treebank_small", [override.format("model.dropout")]
    ).tuning.space
    with pytest.raises(
        RecipeError, match="cannot name 'model.lexicon_epsilon': of a language model it can name"
    ):
        loading.load_recipe("penn_treebank_small", [override.format("model.lexicon_epsilon")])


def test_a_space_is_read_from_toml_and_overridden(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[tuning]\ntrials = 3\n[tuning.space]\n"training.learning_rate" = {low = 0.0003, high = '
        '0.01, scale = "log"}\n'
        '"model.hidden_size" = [128, 256]\n"model.dropout" = {low = 0, high = 0.5}\n'
    )
    read = loading.load_recipe(
        path, ["tuning.space.model.hidden_size=[64]", "tuning.space.training.batch_tokens=[256]"]
    )
    assert read.tuning.space == {
        "training.learning_rate": search_space.Range(0.0003, 0.01, "log"),
        "model.hidden_size": (64,),
        "model.dropout": search_space.Range(0.0, 0.5),
        "training.batch_tokens": (256,),
    }
    assert Recipe.from_json(read.to_json()) == read


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


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "hyperband"])
def test_a_search_is_the_same_with_the_same_seed(algorithm, trained, tmp_path, capsys):
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
    assert found[0]["eval_loss"] == pytest.approx(abs(math.log10(best) + 2))
    said = capsys.readouterr().out
    assert said.count("  trial ") == 27 and "trial 9 of 9: model.dropout = " in said
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


def test_values_that_do_not_fit_together_are_a_failed_trial(trained, tmp_path, capsys):
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
        "failed. The recipe key 'model.hidden_size' (12) must be even and divisible"
        in capsys.readouterr().out
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

    from pipeline.tasks import seq2seq

    def train(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(seq2seq, "train", train)
    with pytest.raises(keras_tuner.errors.FatalError, match="OSError: No space left on device"):
        search(searching(RATES), tmp_path)


@pytest.mark.slow
def test_the_better_of_two_learning_rates_is_found(tmp_path, capsys):
    write_pairs(tmp_path / "train.gz")
    write_pairs(tmp_path / "eval.gz", count=12)
    tuner = search(searching(RATES, trials=3), tmp_path)
    found = search_space.read_found(tuner.get_best_hyperparameters()[0].get_config())
    assert found["values"] == {"training.learning_rate": 0.02}
    # Both were tried, and there is no third.
    assert (found["trials"], found["failed"]) == (2, 0)
    assert "trial 2 of 3" in capsys.readouterr().out
    assert not list((tmp_path / "working").rglob("*.checkpoint")) + list(
        (tmp_path / "working").rglob("*.keras")
    )


@pytest.mark.slow
def test_a_trainer_takes_what_was_found(tmp_path):
    import keras

    from pipeline.entry_points import run_fn

    write_pairs(tmp_path / "train.gz")
    write_pairs(tmp_path / "eval.gz", count=12)
    given = fn_args(tmp_path, "tuned", recipe(epochs=1))
    given.hyperparameters = FOUND
    run_fn.run_fn(given)
    history = trainer_outputs.read_history(given.model_run_dir)
    found = history["tuning"]
    assert found["values"] == {"training.learning_rate": 0.01, "model.hidden_size": 12}
    assert search_space.summary(found) == (
        "Found by 5 trials (hyperband search, 1 of them failed), at an eval loss of 2.5000: "
        "training.learning_rate = 0.01, "
        "model.hidden_size = 12."
    )
    model = keras.saving.load_model(
        trainer_outputs.model_path(given.serving_model_dir), compile=False
    )
    assert model.get_config()["hidden_size"] == 12
    assert Recipe.from_json(given.custom_config["recipe"]).training.learning_rate == 0.01


def made_pipeline(*overrides):
    """The components of a recipe's pipeline by id."""
    from pipeline import graph

    made = loading.load_recipe(RECIPE, overrides)
    created = graph.create_pipeline("p", "root", made, "pairs.tsv", "models")
    return {component.id: component for component in created.components}


def properties(component):
    """What a component's cache key is made of beside its inputs."""
    return {key: str(value) for key, value in component.exec_properties.items()}


def test_a_pipeline_has_a_tuner_only_if_asked():
    space = [
        "tuning.space.training.learning_rate=[0.001, 0.01]",
        "tuning.space.model.hidden_size=[128, 256]",
    ]
    plain, unused = made_pipeline(), made_pipeline(*space)
    tuned, other = (
        made_pipeline("tuning.trials=3", *space),
        made_pipeline("tuning.trials=4", *space),
    )
    assert "Tuner" not in plain and set(unused) == set(plain) and set(tuned) == {*plain, "Tuner"}
    for name, component in plain.items():
        assert "hyperparameters" not in component.inputs
        # The report alone names what could be searched.
        if name != "Reporter":
            assert properties(component) == properties(unused[name]) == properties(tuned[name])
    assert "tuning" not in json.loads(
        json.loads(properties(plain["Trainer"])["custom_config"])["recipe"]
    )
    assert properties(tuned["Tuner"]) != properties(other["Tuner"])
    assert properties(tuned["TextTransform"]) == properties(other["TextTransform"])
    for name in ("Trainer", "Trainer.baseline", "Exporter", "Exporter.baseline"):
        assert (
            tuned[name].inputs["hyperparameters"] is tuned["Tuner"].outputs["best_hyperparameters"]
        )


def test_the_report_and_the_card_say_what_was_found():
    from pipeline.reporting import model_card, report, results
    from pipeline.tasks import seq2seq

    made = loading.load_recipe(
        RECIPE, ["tuning.trials=5", "tuning.space.model.hidden_size=[12, 256]"]
    )
    found = search_space.read_found(FOUND)
    shown = results.as_trained(made, found)
    assert (shown["model"]["hidden_size"], shown["training"]["learning_rate"]) == (12, 0.01)
    assert shown["tuning"]["trials"] == 5 and results.as_trained(made, {}) == made.to_dict()
    facts = {
        **{
            "recipe": shown,
            "tuning": found,
            "versions": {},
            "counts": {},
            "comparison": {},
            "blessing_reason": "Good.",
        },
        "systems": [{"name": "softmax", "metrics": {}, "curves": []}],
    }
    sentence = "Found by 5 trials (hyperband search, 1 of them failed)"
    assert sentence in report.render_report(facts) and "Found by" not in report.render_report(
        {**facts, "tuning": {}}
    )
    assert f"- Hyper-parameters: {sentence}" in model_card.to_markdown(
        model_card.make_card(1, facts, seq2seq.describe_use(made))
    )
