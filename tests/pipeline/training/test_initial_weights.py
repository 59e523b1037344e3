"""A training that goes on from another model: what it takes, and what it refuses in a sentence."""

import dataclasses
import json
import shutil
import types

import numpy as np
import pytest

from pipeline.recipes import loading
from pipeline.recipes.choices import LAST_PUSHED
from tests.pipeline.export.tiny_models import export_tiny, make_recipe, transform_tiny, untrained
from tests.pipeline.training import tiny_training

ROWS = [("greet ada and bob", "ada and bob"), ("greet bob and eve", "bob and eve")] * 2
SOURCE, TARGET = ("source_vocabulary.txt", "target_vocabulary.txt")


@pytest.fixture(scope="module")
def recipe():
    return make_recipe(model={"cell": "lstm"})


@pytest.fixture(scope="module")
def exported(recipe, tmp_path_factory):
    """A version that knows `greet` and `and`, in a run's folder."""
    folder = tmp_path_factory.mktemp("exported")
    model = export_tiny(
        folder, recipe, ROWS, ["greet", "and"], ["and"], ("serving_default",), train=False
    )
    version = folder / "run" / "models" / "tiny" / "7"
    version.parent.mkdir(parents=True)
    shutil.move(model, version)
    return version


def read(path):
    from pipeline.training.initial_model import InitialModel

    return InitialModel.read(str(path))


def network(recipe, folder, source_words, target_words):
    """Returns a network of other words with other first weights, and its vocabularies."""
    from pipeline.features import transform_assets

    output = transform_tiny(folder, recipe, ROWS, source_words, target_words)
    other_seed = dataclasses.replace(recipe.training, seed=99)
    model = untrained(dataclasses.replace(recipe, training=other_seed), output)
    return model, {
        name: transform_assets.read_vocabulary(output, name) for name in (SOURCE, TARGET)
    }


def test_weights_go_by_name_and_by_word(recipe, exported, tmp_path):
    from pipeline.training import initial_weights

    initial = read(exported)
    model, words = network(recipe, tmp_path, ["bob", "and", "greet"], ["bob", "and"])
    before = {variable.path: np.array(variable) for variable in model.trainable_variables}
    facts = initial_weights.take(model, initial, words)
    after = {variable.path: np.array(variable) for variable in model.trainable_variables}
    special = len(initial.words[TARGET]) - 1
    assert facts["words"] == {
        SOURCE: (special + 2, special + 3),
        TARGET: (special + 1, special + 2),
    }
    assert facts["weights"] == len(after) and facts["path"] == str(exported)
    theirs = dict(zip(initial.names, initial.weights))
    assert len(theirs) == len(initial.names)
    by_word = {
        "source_embedding/embeddings": (SOURCE, 0),
        "target_embedding/embeddings": (TARGET, 0),
        "head/vocabulary/kernel": (TARGET, 1),
        "head/vocabulary/bias": (TARGET, 0),
    }
    for (name, value), their_value in zip(after.items(), initial.weights):
        if name not in by_word:
            np.testing.assert_array_equal(value, their_value, err_msg=name)
            continue
        file, axis = by_word[name]
        for number, word in enumerate(words[file]):
            row = np.take(value, number, axis)
            if word == "bob":
                np.testing.assert_array_equal(row, np.take(before[name], number, axis))
            else:
                place = initial.words[file].index(word)
                np.testing.assert_array_equal(row, np.take(their_value, place, axis))


def test_networks_that_differ_are_refused(recipe, exported, tmp_path):
    from pipeline.training import initial_weights
    from pipeline.training.initial_model import InitialModelError, read_recipe

    theirs = read_recipe(str(exported))
    ours = recipe.to_dict()
    initial_weights.check_recipe(ours, theirs, "there")
    # What only changes how it is trained may differ.
    initial_weights.check_recipe(
        make_recipe(model={"cell": "lstm", "dropout": 0.3}).to_dict(), theirs, ""
    )
    for changes, said in (
        (
            {"model": {"cell": "lstm", "head": "softmax"}},
            "model.head = 'pointer_generator' and this recipe has 'softmax'",
        ),
        (
            {"model": {"cell": "lstm", "hidden_size": 26}},
            "model.hidden_size = 24 and this recipe has 26",
        ),
        ({"model": {"cell": "lstm"}, "data": {"lowercase": True}}, "data.lowercase = false"),
    ):
        with pytest.raises(InitialModelError, match=said):
            initial_weights.check_recipe(make_recipe(**changes).to_dict(), theirs, "there")
    # A recipe that was written before there was a key has its default.
    del theirs["model"]["tie_embeddings"]
    initial_weights.check_recipe(ours, theirs, "there")
    other = make_recipe(model={"cell": "lstm", "head": "softmax"})
    model, words = network(other, tmp_path, ["and"], ["and"])
    with pytest.raises(InitialModelError, match="other weights than this recipe's network"):
        initial_weights.take(model, read(exported), words)


def test_versions_are_found(exported, tmp_path):
    from pipeline.training.initial_model import InitialModelError, find_version

    model, run = exported.parent, exported.parents[2]
    (model / "12").mkdir(exist_ok=True)  # not a model
    for place in (exported, model, run):
        assert find_version(str(place), "") == str(exported)
    assert find_version(LAST_PUSHED, str(model)) == str(exported)
    with pytest.raises(InitialModelError, match="No model was pushed to .* yet"):
        find_version(LAST_PUSHED, str(tmp_path))
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InitialModelError, match="contains no exported model"):
            find_version(str(place), "")
    two = tmp_path / "two" / "models"
    for name in ("a", "b"):
        (two / name / "1").mkdir(parents=True)
        (two / name / "1" / "saved_model.pb").touch()
    with pytest.raises(InitialModelError, match="several models: name .*models/a or .*models/b"):
        find_version(str(two.parent), "")


def test_folders_that_cannot_be_read_are_refused(exported, tmp_path):
    from pipeline.training.initial_model import InitialModelError

    with pytest.raises(InitialModelError, match="no model that Verbatim exported"):
        read(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    # TFX takes for granted that a model's folder has another one inside.
    assert read(copy / "Format-Serving").path == str(copy)
    data = copy / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(InitialModelError, match="weights of the model .* cannot be read"):
        read(copy)
    (copy / "assets.extra" / "weights.json").unlink()
    with pytest.raises(InitialModelError, match="did not write the names"):
        read(copy)


@pytest.mark.slow
def test_a_training_is_never_worse_than_what_it_goes_on_from(tmp_path):
    from pipeline.training import trainer
    from pipeline.training.initial_model import InitialModel
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.training_inputs import TrainingInputs

    files = tiny_training.write_pairs(tmp_path / "pairs.gz")
    made = tiny_training.recipe(epochs=3)
    first, before = tiny_training.train(made, files, files)
    best = min(point["eval_loss"] for point in before["curve"])
    weights = [np.array(variable) for variable in first.trainable_variables]
    initial = InitialModel(
        "there", made.to_dict(), [v.path for v in first.trainable_variables], weights, {}
    )
    sizes = ModelInputs(tiny_training.VOCABULARY, tiny_training.VOCABULARY)
    inputs = TrainingInputs(files, files, sizes, initial=initial)
    # A rate at which an epoch only does harm.
    model, facts = trainer.train(tiny_training.recipe(epochs=1, learning_rate=5.0), inputs)
    assert facts["curve"][0]["eval_loss"] > best
    assert facts["initialized_from"] == {"path": "there", "weights": len(weights), "words": {}}
    for variable, value in zip(model.trainable_variables, weights):
        np.testing.assert_array_equal(np.array(variable), value)
    # A rate at which it learns.
    _, facts = trainer.train(tiny_training.recipe(epochs=1), inputs)
    assert facts["curve"][0]["eval_loss"] < best


def test_a_base_model_is_checked_before_any_work(exported):
    from pipeline.entry_points import run_fn
    from pipeline.training.initial_model import InitialModelError

    other = make_recipe(model={"cell": "lstm", "hidden_size": 26})
    arguments = types.SimpleNamespace(
        base_model=str(exported), hyperparameters=None, custom_config={"recipe": other.to_json()}
    )
    with pytest.raises(InitialModelError, match="hidden_size = 24 and this recipe has 26"):
        run_fn.run_fn(arguments)


def test_the_pipeline_knows_where_its_weights_come_from():
    from pipeline import graph

    recipe = loading.load_recipe("localization_en_fr", ["training.initialize_from=there"])
    settings = graph.PipelineSettings("p", "root", "models", initial_model="/there/7")
    made = {part.id: part for part in graph.create_pipeline(recipe, "x.tsv", settings).components}
    assert "/there/7" in made["InitialModel"].exec_properties.values()
    assert made["Trainer"].inputs["base_model"].producer_component_id == "InitialModel"
    assert "base_model" not in made["Trainer.baseline"].inputs
    alone = json.loads(made["Trainer.baseline"].exec_properties["custom_config"])["recipe"]
    assert json.loads(alone)["training"]["initialize_from"] == ""
    without = graph.create_pipeline(recipe, "x.tsv", graph.PipelineSettings("p", "root", "models"))
    assert "InitialModel" not in {part.id for part in without.components}
