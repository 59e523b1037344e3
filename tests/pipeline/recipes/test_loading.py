"""Recipes by name or from a file, with overrides."""

import pathlib
import subprocess
import sys

import pytest

from pipeline.recipes import loading, views
from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from tests.pipeline.recipes.refusals import refusal


@pytest.mark.parametrize("name", loading.available_recipes())
def test_shipped_recipes_load(name):
    recipe = load_recipe(name)
    assert recipe.name == name and recipe.description
    assert load_recipe(loading.RECIPES_DIRECTORY / f"{name}.toml") == recipe


def test_the_recipe_of_the_demo_is_shipped():
    assert "localization_en_fr" in loading.available_recipes()
    recipe = load_recipe("localization_en_fr")
    assert (recipe.data.source_language, recipe.data.target_language) == ("en", "fr")
    assert recipe.model.head == "pointer_generator" and recipe.baseline.head == "softmax"


def test_a_file_of_ones_own_takes_its_name_from_the_file(tmp_path):
    path = tmp_path / "my_recipe.toml"
    path.write_text("[training]\nepochs = 3\nbucket_lengths = [5, 10]\n[data]\nmax_tokens = 9\n")
    recipe = load_recipe(str(path))
    assert recipe.name == "my_recipe"
    assert recipe.training.epochs == 3 and recipe.training.bucket_lengths == (5, 10)
    path.write_text('name = "given"\n')
    assert load_recipe(path).name == "given"


@pytest.mark.parametrize(
    "override, key, value",
    [
        ("model.head=softmax", "model.head", "softmax"),
        ("model.head='softmax'", "model.head", "softmax"),
        (" model.head = softmax ", "model.head", "softmax"),
        ("training.epochs=2", "training.epochs", 2),
        ("training.learning_rate=1", "training.learning_rate", 1.0),
        ("training.learning_rate=2e-4", "training.learning_rate", 2e-4),
        ("training.mixed_precision=true", "training.mixed_precision", True),
        ("decoding.length_buckets=[8, 160]", "decoding.length_buckets", (8, 160)),
        ("data.split_salt=a=b", "data.split_salt", "a=b"),
        ("data.split_salt=", "data.split_salt", ""),
        ("description=two words", "description", "two words"),
        ("name=other", "name", "other"),
        ("baseline.head=", "baseline.head", ""),
    ],
)
def test_overrides(override, key, value):
    recipe = load_recipe("localization_en_fr", [override])
    got = recipe
    for part in key.split("."):
        got = getattr(got, part)
    assert got == value and type(got) is type(value)
    # Nothing else has changed.
    assert recipe_from_dict(
        {**recipe.to_dict(), **_top(load_recipe("localization_en_fr"), key)}
    ) == load_recipe("localization_en_fr")


def _top(recipe, key):
    section = key.split(".")[0]
    return {section: recipe.to_dict()[section]}


def test_the_last_override_wins():
    recipe = load_recipe(
        "localization_en_fr", ["training.epochs=2", "model.cell=lstm", "training.epochs=5"]
    )
    assert recipe.training.epochs == 5 and recipe.model.cell == "lstm"


@pytest.mark.parametrize(
    "override, words",
    [
        ("model.head", "--set needs section.key=value"),
        ("=3", "--set needs section.key=value"),
        ("", "--set needs section.key=value"),
        ("model.hed=softmax", "'model.hed'; did you mean 'head'"),
        ("modl.head=softmax", "'modl'; did you mean 'model'"),
        ("epochs=3", "'epochs'; did you mean 'training.epochs' or 'tuning.epochs'?"),
        ("hidden_size=3", "'hidden_size'; did you mean 'model.hidden_size'?"),
        ("hiden_size=3", "'hiden_size'; did you mean 'model.hidden_size'?"),
        ("model.beam_size=3", "'model.beam_size'; did you mean 'decoding.beam_size'?"),
        ("encoder.hidden_size=3", "'encoder'; did you mean 'model.hidden_size'?"),
        ("model=softmax", "'model' must be a section"),
        ("model.head.size=3", "'head' is a value|must be a text"),
        ("name.first=x", "'name' is a value"),
        ("model.=3", "unknown key 'model.'"),
        ("model.head=copynet", "'model.head' must be one of 'softmax'"),
        ("training.epochs=many", "'training.epochs' must be a whole number; got 'many'"),
        (
            "training.learning_rate=1" + "0" * 400,
            "'training.learning_rate' must be a finite number",
        ),
        ("description=2024-01-01", "'description' must be a text"),
    ],
)
def test_bad_overrides(override, words):
    sentence = refusal(load_recipe, "localization_en_fr", [override])
    assert any(part in sentence for part in words.split("|")), sentence


def test_missing_recipes(tmp_path):
    assert "did you mean 'localization_en_fr'?" in refusal(load_recipe, "localisation_en_fr")
    sentence = refusal(load_recipe, "zzz")
    assert (
        "did you mean" not in sentence and "localization_en_fr" in sentence and ".toml" in sentence
    )
    assert "No such file" in refusal(load_recipe, tmp_path / "absent.toml")
    (tmp_path / "folder.toml").mkdir()
    assert str(tmp_path / "folder.toml") in refusal(load_recipe, tmp_path / "folder.toml")


@pytest.mark.parametrize(
    "content", [b"epochs = ", b"[model]\nhead = 'softmax'\nhead = 'softmax'\n", b"\xff\xfe", b"{}"]
)
def test_broken_toml(tmp_path, content):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    assert f"{path} is not valid TOML" in refusal(load_recipe, path)


def test_a_section_that_is_a_value_in_the_file(tmp_path):
    path = tmp_path / "flat.toml"
    path.write_text("model = 3\n")
    assert "'model' must be a section" in refusal(load_recipe, path)
    assert "'model' is a value" in refusal(load_recipe, path, ["model.head=softmax"])


def test_the_database_lies_beside_the_data(tmp_path):
    tree = {"name": "test", "evaluation": {"database": "x.sqlite"}}
    recipe = recipe_from_dict(tree)

    def path(recipe, data):
        return loading.with_database_path(recipe, str(data)).evaluation.database

    assert path(recipe, tmp_path) == str(tmp_path / "x.sqlite")
    assert path(recipe, tmp_path / "train.tsv") == str(tmp_path / "x.sqlite")
    assert path(recipe, f"{tmp_path}/a,{tmp_path}/b") == str(tmp_path / "x.sqlite")
    given = recipe_from_dict({**tree, "data": {"train_files": ["a"]}})
    assert path(given, "/only/on/the/cluster") == "/only/on/the/cluster/x.sqlite"
    absolute = recipe_from_dict({"name": "test", "evaluation": {"database": "/y/x.sqlite"}})
    assert path(absolute, tmp_path) == "/y/x.sqlite" and path(Recipe(name="x"), tmp_path) == ""


def test_lexicons_lie_beside_the_data(tmp_path):
    recipe = load_recipe("translation", ["data.dictionary=d.tsv", "data.copy_lexicon=/abs/l.txt"])
    placed = loading.with_database_path(recipe, str(tmp_path))
    assert (placed.data.dictionary, placed.data.copy_lexicon) == (
        str(tmp_path / "d.tsv"),
        "/abs/l.txt",
    )
    placed = loading.with_database_path(recipe, str(tmp_path / "pairs.tsv"))
    assert placed.data.dictionary == str(tmp_path / "d.tsv")
    assert loading.with_database_path(recipe, "gs://b/x").data.dictionary == "gs://b/x/d.tsv"


def test_vectors_lie_beside_the_data(tmp_path):
    names = ["model.source_vectors=v.txt", "model.target_vectors=/abs/v.bin"]
    placed = loading.with_database_path(load_recipe("translation", names), str(tmp_path)).model
    assert placed.source_vectors == str(tmp_path / "v.txt")
    assert placed.target_vectors == "/abs/v.bin"


def test_tensorflow_is_not_imported():
    code = (
        "import sys, pipeline.recipes.loading as c; c.load_recipe('localization_en_fr'); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pathlib.Path(__file__).parents[3])


@pytest.mark.parametrize("name", loading.available_recipes())
def test_shipped_recipes_measure_against_a_baseline_where_they_name_files(name):
    recipe = load_recipe(name)
    if recipe.task == "seq2seq" and recipe.data.train_files and not recipe.data.synthetic:
        if views.segments(recipe) or views.composes(recipe):
            # Their baselines have another encoder, or other vectors, so they are runs of their own.
            assert recipe.baseline.head == ""
        else:
            assert recipe.baseline.head == "softmax" and recipe.model.head != "softmax"
        # Figures to look at, not a gate.
        bounds = [
            bound for bound in vars(recipe.evaluation.thresholds).values() if bound is not None
        ]
        assert bounds == [0.0]
