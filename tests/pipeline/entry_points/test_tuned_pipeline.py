"""Where a pipeline has a search for values, and what becomes of what it found."""

import json

import pytest

from pipeline.recipes import loading, search_space
from pipeline.recipes.recipe import Recipe
from pipeline.training import trainer_outputs
from tests.pipeline.training.test_data_parallel import fn_args
from tests.pipeline.training.tiny_training import recipe, write_pairs

RECIPE = "localization_en_fr"
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
            "tuner/measure": "eval loss",
            "tuner/score": 2.5,
        },
    },
}


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
        "Found by 5 trials (hyperband search, 1 of them failed), with eval loss 2.5000: "
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
    settings = graph.PipelineSettings("p", "root", "models")
    created = graph.create_pipeline(made, "pairs.tsv", settings)
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
    from pipeline.tasks import task_of

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
        model_card.make_card(1, facts, task_of(made).describe_use(made))
    )
