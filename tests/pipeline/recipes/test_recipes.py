"""Recipes: what is right loads, what is wrong is one sentence that names the key."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import pytest

from pipeline.recipes import loading, sections, views
from pipeline.recipes.choices import (
    ATTENTIVE_HEADS,
    CHARACTER_COMPOSITIONS,
    COMPOSITIONS,
    HEADS,
    LEXICON_HEADS,
)
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import Recipe, recipe_from_dict, section_from_json


def refusal(function, *arguments):
    """The sentence with which a call is refused."""
    with pytest.raises(RecipeError) as caught:
        function(*arguments)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence[-1] in ".?" and not sentence.endswith("..")
    return sentence


def nested(key, value):
    """A recipe's dict with one key set."""
    tree = {"name": "test"}
    *sections, last = key.split(".")
    inner = tree
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    return tree


def test_defaults_make_a_recipe():
    recipe = recipe_from_dict({"name": "plain"})
    assert recipe == Recipe(name="plain")
    assert recipe.model.head == "pointer_generator" and recipe.data.format == "auto"
    # Every default is itself a possible value.
    assert recipe_from_dict(recipe.to_dict()) == recipe


def test_recipes_are_frozen_and_hashable():
    recipe = Recipe(name="plain")
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.model.head = "softmax"
    assert hash(recipe) == hash(Recipe(name="plain"))


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
        ("epochs=3", "unknown key 'epochs'"),
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


@pytest.mark.parametrize(
    "key, value",
    [
        ("data.format", "xml"),
        ("data.max_characters", 0),
        ("data.max_rejected_share", 1.01),
        ("data.max_rejected_share", -0.01),
        ("data.eval_share", 0.0),
        ("data.test_share", 0),
        ("data.eval_share", 0.51),
        ("data.test_share", float("nan")),
        ("data.source_language", 3),
        ("data.drop_identical", 1),
        ("data.drop_identical", "true"),
        ("vocabulary.source_size", 15),
        ("vocabulary.target_size", 100.0),
        ("vocabulary.min_count", 0),
        ("vocabulary.protected_min_count", -1),
        ("model.body", "transformer?"),
        ("model.cell", "rnn"),
        ("model.attention", ""),
        ("model.hidden_size", 0),
        ("model.hidden_size", 127),
        ("model.hidden_size", True),
        ("model.encoder_layers", 25),
        ("model.dropout", 0.96),
        ("model.dropout", "0.1"),
        ("model.coverage", None),
        ("training.epochs", 0),
        ("training.epochs", 1.5),
        ("training.batch_tokens", 7),
        ("training.learning_rate", 0.0),
        ("training.learning_rate", -1),
        ("training.learning_rate", float("inf")),
        ("training.learning_rate", float("nan")),
        ("training.learning_rate", 10**400),
        ("training.final_learning_rate_share", 1.1),
        ("training.max_seconds", -1.0),
        ("training.max_seconds", float("inf")),
        ("training.bucket_lengths", []),
        ("training.bucket_lengths", 10),
        ("training.bucket_lengths", "10"),
        ("training.bucket_lengths", [0, 1]),
        ("training.bucket_lengths", [3, 3]),
        ("training.bucket_lengths", [5, 3]),
        ("training.bucket_lengths", [1, 2.5]),
        ("training.bucket_lengths", [True]),
        ("training.bucket_lengths", [1, "2"]),
        ("decoding.beam_size", 65),
        ("decoding.n_best", 5),
        ("decoding.max_length_factor", -0.1),
        ("decoding.max_length_offset", 0),
        ("decoding.batch_buckets", None),
        ("evaluation.thresholds.bleu", 101),
        ("evaluation.thresholds.placeholder_fidelity", 2),
        ("evaluation.bootstrap_samples", 9),
        ("baseline.head", "copynet"),
        ("name", ""),
        ("name", "../elsewhere"),
        ("name", "a/b"),
        ("name", "two words"),
        ("name", "a.b"),
        ("name", "-x"),
        ("name", "é"),
        ("name", "x\n"),
        ("name", "x" * 101),
        ("name", 3),
        ("model", "softmax"),
        ("model", [1]),
    ],
)
def test_impossible_values_are_named(key, value):
    assert f"'{key}'" in refusal(recipe_from_dict, nested(key, value)) or (key, value) == (
        "name",
        "",
    )


@pytest.mark.parametrize(
    "settings, words",
    [
        (
            {"model.head": "pointer_softmax", "model.attention": "none"},
            "'model.head' (pointer_softmax) needs a 'model.attention'",
        ),
        (
            {
                "model.head": "joint_copy",
                "model.attention": "none",
                "baseline.head": "pointer_generator",
            },
            "'baseline.head' (pointer_generator) needs a 'model.attention'",
        ),
        (
            {"model.selective_read": True},
            "'model.selective_read' needs 'model.head' = \"joint_copy\"; got 'pointer_generator'",
        ),
        (
            {"model.body": "transformer", "model.head": "joint_copy", "model.selective_read": True},
            "'model.selective_read' (true) needs 'model.body' = \"rnn\"",
        ),
        (
            {"model.body": "transformer", "model.initial_range": 0.1},
            "'model.initial_range' (0.1) needs 'model.body' = \"rnn\" and 'model.encoder' = "
            '"rnn"',
        ),
        ({"model.encoder": "cnn", "model.initial_range": 0.1}, "'model.initial_range' (0.1) needs"),
        (
            {"model.body": "transformer", "model.attention": "none"},
            "'model.attention' (none) needs 'model.body'",
        ),
        (
            {"model.body": "transformer", "model.encoder": "cnn"},
            "'model.encoder' (cnn) needs 'model.body'",
        ),
        (
            {"model.body": "transformer", "model.hidden_size": 10},
            "'model.hidden_size' (10) must be even and divisible",
        ),
        ({"model.encoder": "cnn", "model.kernel_size": 4}, "'model.kernel_size' must be odd"),
        ({"model.hidden_size": 7}, "'model.hidden_size' must be even"),
        (
            {"training.large_vocabulary_size": 515},
            "'training.large_vocabulary_size' (515) must be at least 516",
        ),
        (
            {"training.large_vocabulary_size": 100, "training.batch_tokens": 64},
            "must be at least 132",
        ),
        (
            {"training.scheduled_sampling_floor": 1.5},
            "'training.scheduled_sampling_floor' must be between",
        ),
        (
            {"training.scheduled_sampling": "cosine"},
            "'training.scheduled_sampling' must be one of 'none', 'linear'",
        ),
        ({"model.copying_context": "end"}, "'model.copying_context' must be one of"),
    ],
)
def test_bodies_and_heads_that_do_not_fit_together(settings, words):
    tree = {"name": "test"}
    for key, value in settings.items():
        section, name = key.split(".")
        tree.setdefault(section, {})[name] = value
    assert words in refusal(recipe_from_dict, tree)


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_a_body(head):
    tree = {"name": "x", "lexicon": {"kind": "learned"}, "baseline": {"head": head}}
    assert recipe_from_dict({**tree, "model": {"head": head, "body": "transformer"}})
    assert recipe_from_dict({**tree, "model": {"head": head, "encoder": "cnn", "hidden_size": 7}})


def test_the_recipe_knows_the_heads_that_there_are():
    from keras_models.heads import registry

    assert set(HEADS) == set(registry.HEADS)
    assert set(ATTENTIVE_HEADS) == {
        name for name, head in registry.HEADS.items() if head.needs_attention
    }
    assert set(LEXICON_HEADS) == {
        name for name, head in registry.HEADS.items() if head.needs_lexicon
    }


def test_a_baseline_of_another_head_reads_nothing_selectively():
    from pipeline.graph import baseline_recipe

    model = {"head": "joint_copy", "selective_read": True}
    other = baseline_recipe(
        recipe_from_dict({"name": "x", "model": model, "baseline": {"head": "softmax"}})
    )
    assert other.model.head == "softmax" and not other.model.selective_read
    same = baseline_recipe(
        recipe_from_dict({"name": "x", "model": model, "baseline": {"head": "joint_copy"}})
    )
    assert same.model.selective_read


def test_a_recipe_needs_a_name():
    assert "'name'" in refusal(recipe_from_dict, {})


@pytest.mark.parametrize(
    "data, words",
    [
        ({"train_files": "a.tsv"}, "'data.train_files' must be a list of texts"),
        ({"train_files": [""]}, "'data.train_files' must be a list of texts"),
        ({"columns": [1]}, "'data.columns' must be a list of texts"),
        ({"columns": ["source", "source", "target"]}, "'data.columns' names something twice"),
        ({"columns": ["source", "table"]}, "'data.columns' lacks 'target'"),
        (
            {
                "columns": ["source", "target"],
                "source_features": ["pos"],
                "tokenization": "whitespace",
            },
            "lacks 'pos'",
        ),
        ({"test_files": ["a.tsv"]}, "need 'data.train_files'"),
        (
            {"train_files": ["a"], "test_files": ["b"], "eval_share": 0.0},
            "'data.eval_share' must be above 0",
        ),
        ({"source_features": ["pos"]}, "needs 'data.tokenization'"),
        ({"source_features": ["line"], "tokenization": "whitespace"}, "cannot name 'line'"),
        ({"tokenization": "characters"}, "'data.tokenization' must be one of"),
    ],
)
def test_what_the_data_section_refuses(data, words):
    assert words in refusal(recipe_from_dict, {"name": "test", "data": data})


@pytest.mark.parametrize(
    "evaluation, words",
    [
        ({"metrics": []}, "'evaluation.metrics' must name a metric"),
        ({"metrics": ["blue"]}, "unknown metric 'blue'; did you mean 'bleu'?"),
        ({"metrics": ["bleu", "bleu"]}, "'evaluation.metrics' names something twice"),
        (
            {"metrics": ["bleu"], "thresholds": {"chrf": 1}},
            "'evaluation.thresholds.chrf' needs 'chrf'",
        ),
        (
            {"thresholds": {"blue": 1}},
            "unknown key 'evaluation.thresholds.blue'; did you mean 'bleu'",
        ),
        ({"thresholds": {"bleu": "high"}}, "'evaluation.thresholds.bleu' must be a number"),
        (
            {"thresholds": {"rare_word_recall": 1}},
            "'evaluation.thresholds.rare_word_recall' needs 'rare_word_recall' among",
        ),
        ({"metrics": ["execution_accuracy"]}, "'evaluation.database' must name an SQLite file"),
    ],
)
def test_what_the_evaluation_section_refuses(evaluation, words):
    assert words in refusal(recipe_from_dict, {"name": "test", "evaluation": evaluation})


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


def test_shares_do_not_matter_where_files_are_given():
    data = {
        "train_files": ["a"],
        "eval_files": ["b"],
        "test_files": ["c"],
        "eval_share": 0.0,
        "test_share": 0.0,
    }
    recipe = recipe_from_dict({"name": "test", "data": data})
    assert recipe.data.train_files == ("a",)
    assert (
        section_from_json(sections.DataConfig, json.dumps(recipe.to_dict()["data"])) == recipe.data
    )
    assert hash(recipe)


def test_only_what_decides_features_is_in_the_text_settings():
    settings = views.text_settings(Recipe(name="x"))
    assert settings == {"tokenizer": {"kind": "text", "lowercase": False}}
    other = recipe_from_dict(
        {
            "name": "y",
            "data": {"tokenization": "whitespace", "lowercase": True, "max_characters": 9},
        }
    )
    assert views.text_settings(other) == {"tokenizer": {"kind": "whitespace", "lowercase": True}}


def test_a_training_does_not_depend_on_what_its_model_is_used_for():
    plain = load_recipe("translation")
    judged = ["evaluation.bootstrap_samples=10", "baseline.head=softmax", "lexicon.kind=learned"]
    recipe = load_recipe("translation", judged)
    assert views.export_recipe(recipe) == views.export_recipe(plain)
    recipe = load_recipe(
        "translation", [*judged, "decoding.beam_size=8", "evaluation.metrics=['bleu']"]
    )
    assert views.export_recipe(recipe) != views.export_recipe(plain)
    assert views.training_recipe(recipe) == views.training_recipe(plain)
    assert views.training_recipe(recipe) != views.training_recipe(
        load_recipe("translation", ["model.head=softmax"])
    )


def test_a_training_depends_on_the_lexicon_that_its_model_reads():
    learned = ["lexicon.kind=learned", "model.head=lexicon_bias"]
    recipe = load_recipe("translation", learned)
    assert views.training_recipe(recipe).lexicon == recipe.lexicon
    assert views.transform_settings(recipe)["lexicon_rows"] and views.reads_lexicon(recipe)
    replaced = load_recipe(
        "translation",
        ["lexicon.kind=learned", "model.head=softmax", "decoding.replace_unknown=lexicon"],
    )
    assert views.training_recipe(replaced) == views.training_recipe(
        load_recipe("translation", ["model.head=softmax"])
    )
    assert views.export_recipe(replaced).lexicon == replaced.lexicon
    assert views.transform_settings(replaced)["translate"] == "lexicon" and views.reads_lexicon(
        replaced
    )
    assert not views.reads_lexicon(load_recipe("translation", ["lexicon.kind=learned"]))


def test_what_goes_by_words_needs_words():
    for tree in (
        {"data": {"dictionary": "a.tsv"}, "lexicon": {"kind": "hybrid"}},
        {"data": {"dictionary": "a.tsv"}},
        {"data": {"copy_lexicon": "a.txt"}},
        {"data": {"surface_features": ["case"]}},
        {"evaluation": {"slices": ["unknown_words"]}},
    ):
        assert recipe_from_dict({"name": "x", **tree})
        data = {"data": {**tree.get("data", {}), "units": "subwords"}}
        assert "goes by words" in refusal(recipe_from_dict, {"name": "x", **tree, **data})
    # What is learned is of whatever units there are.
    assert recipe_from_dict(
        {"name": "x", "lexicon": {"kind": "learned"}, "data": {"units": "subwords"}}
    )
    assert "'data.source_units' needs" in refusal(
        recipe_from_dict, {"name": "x", "data": {"source_units": "words"}}
    )
    whole = {"name": "x", "data": {"source_units": "words", "units": "subwords"}}
    assert "'vocabulary.joint' must be false" in refusal(
        recipe_from_dict, {**whole, "vocabulary": {"joint": True}}
    )
    assert views.text_settings(recipe_from_dict(whole))["source_units"] == "words"
    settings = views.text_settings(recipe_from_dict({"name": "x", "data": {"units": "characters"}}))
    assert settings == {"tokenizer": {"kind": "text", "lowercase": False}, "units": "characters"}
    tree = {
        "name": "x",
        "task": "language_model",
        "data": {"units": "subwords", "tokenization": "whitespace"},
    }
    assert "'data.units'" in refusal(recipe_from_dict, tree)


def test_thirteen_compositions():
    assert len(COMPOSITIONS) == 13
    for name in COMPOSITIONS:
        recipe = recipe_from_dict({"name": "x", "model": {"composition": name, "word_length": 9}})
        assert views.composes(recipe) == (name != "lookup")
        assert views.transform_settings(recipe).get("word_length") == (
            None if name == "lookup" else 9
        )
        assert ("characters" in views.vocabulary_settings(recipe)) == (name != "lookup")
    from keras_models.layers import CharacterComposition

    assert CHARACTER_COMPOSITIONS == CharacterComposition.FUNCTIONS
    odd = {"name": "x", "model": {"composition": "lookup+bilstm", "embedding_size": 9}}
    assert "'model.embedding_size' must be even" in refusal(recipe_from_dict, odd)


def test_what_reads_a_lexicon_needs_one():
    assert "'lexicon.kind' to learned" in refusal(
        recipe_from_dict, {"name": "x", "model": {"head": "lexicon_copy"}}
    )
    assert "'baseline.head' = \"lexicon_bias\"" in refusal(
        recipe_from_dict, {"name": "x", "baseline": {"head": "lexicon_bias"}}
    )
    tree = {"name": "x", "model": {"head": "softmax"}, "decoding": {"replace_unknown": "lexicon"}}
    assert "'lexicon.kind' to learned" in refusal(recipe_from_dict, tree)
    tree = {**tree, "lexicon": {"kind": "learned"}, "model": {"head": "lexicon_copy"}}
    assert "translate all that is copied" in refusal(recipe_from_dict, tree)


def test_something_must_be_left_to_train_on():
    tree = {"name": "test", "data": {"eval_share": 0.5, "test_share": 0.5}}
    assert "'data.eval_share' and 'data.test_share'" in refusal(recipe_from_dict, tree)
    tree["data"]["test_share"] = 0.49
    assert recipe_from_dict(tree).data.test_share == 0.49


@pytest.mark.parametrize(
    "key, suggestion",
    [
        ("modle", "model"),
        ("training.epoch", "epochs"),
        ("decoding.beamsize", "beam_size"),
        ("data.source_languge", "source_language"),
    ],
)
def test_unknown_keys_get_a_suggestion(key, suggestion):
    assert f"unknown key '{key}'; did you mean '{suggestion}'?" in refusal(
        recipe_from_dict, nested(key, 1)
    )


def test_an_unknown_key_like_no_other_is_only_named():
    sentence = refusal(recipe_from_dict, nested("model.zzz", 1))
    assert "'model.zzz'" in sentence and "did you mean" not in sentence


def test_json_round_trip():
    recipe = load_recipe(
        "localization_en_fr", ["training.bucket_lengths=[7,130]", "data.split_salt='é \"'"]
    )
    text = recipe.to_json()
    assert Recipe.from_json(text) == recipe
    assert Recipe.from_json(text).to_json() == text
    # Strict JSON, the same for the same recipe: components are cached by it.
    json.loads(text, parse_constant=pytest.fail)
    assert text == Recipe.from_json(json.dumps(dict(reversed(json.loads(text).items())))).to_json()


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


def test_tensorflow_is_not_imported():
    code = (
        "import sys, pipeline.recipes.loading as c; c.load_recipe('localization_en_fr'); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pathlib.Path(__file__).parents[3])


@pytest.mark.parametrize(
    "key, longest", [("training.bucket_lengths", 119), ("decoding.length_buckets", 120)]
)
def test_what_is_read_must_fit_the_buckets(key, longest):
    with pytest.raises(
        RecipeError,
        match=rf"'data.max_tokens' \(121\) must be at most {longest} to fit the last of '{key}'",
    ):
        load_recipe("localization_en_fr", ["data.max_tokens=121", f"{key}=[8, 120]"])


def test_only_heads_that_learn_from_spans_ask_the_transform_for_them():
    from pipeline.recipes.views import text_settings, transform_settings

    plain = load_recipe("translation")
    assert transform_settings(plain) == text_settings(plain)
    assert transform_settings(
        load_recipe("translation", ["model.head=joint_copy"])
    ) == text_settings(plain)
    expected = {**text_settings(plain), "spans": {"max_span": 4, "min_span": 2}}
    for key in ("model.head", "baseline.head"):
        overrides = [f"{key}=span_copy", "model.max_span=4", "model.min_span=2"]
        assert transform_settings(load_recipe("translation", overrides)) == expected
    assert "cannot exceed 'model.max_span'" in refusal(
        load_recipe, "translation", ["model.max_span=1", "model.min_span=2"]
    )


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


def test_the_transform_is_told_what_a_recipe_copies():
    from pipeline.recipes.views import text_settings, transform_settings, vocabulary_settings

    overrides = ["data.dictionary=d.tsv", "model.pointers=dictionary", "model.head=pointer_softmax"]
    recipe = load_recipe(
        "translation", [*overrides, "decoding.replace_unknown=dictionary", "data.copy_lexicon=/l"]
    )
    expected = {"pointers": "dictionary", "translate": "dictionary", "copy_lexicon": True}
    assert transform_settings(recipe) == {**text_settings(recipe), **expected}
    assert vocabulary_settings(recipe) == {
        **text_settings(recipe),
        "dictionary": "d.tsv",
        "copy_lexicon": "/l",
    }
    # No head that points: no labels.
    assert transform_settings(load_recipe("translation", overrides[:2])) == text_settings(recipe)

    overrides = [
        "data.tokenization=whitespace",
        'data.source_features=["ner", "pos"]',
        "model.entity_feature=ner",
    ]
    recipe = load_recipe(
        "translation", [*overrides, "model.pointers=entities", "baseline.head=pointer_softmax"]
    )
    made = transform_settings(recipe)
    assert (made["pointers"], made["entity_feature"], made["entities"]) == ("entities", "ner", 128)
    assert (
        made["source_features"] == vocabulary_settings(recipe)["source_features"] == ["ner", "pos"]
    )
    assert vocabulary_settings(recipe)["entities"] == 128


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["model.pointers=dictionary"],
            "'model.pointers' = \"dictionary\" needs a file of translations",
        ),
        (
            ["decoding.replace_unknown=dictionary"],
            "'decoding.replace_unknown' = \"dictionary\" needs a file",
        ),
        (["lexicon.kind=hybrid"], "'lexicon.kind' = \"hybrid\" needs a file of translations"),
        (["decoding.shortlist_size=500"], "'decoding.shortlist_size' needs a lexicon"),
        (["decoding.shortlist_confidence=0.5"], "needs a 'decoding.shortlist_size' above 0"),
        (
            ["decoding.shortlist_size=500", "lexicon.kind=learned", "model.head=pointer_network"],
            "must be 0 where 'model.head' is \"pointer_network\"",
        ),
        (
            ["model.pointers=entities"],
            "'model.entity_feature' must name one of 'data.source_features'",
        ),
        (
            ["decoding.replace_unknown=dictionary", "data.dictionary=d"],
            "'model.head' is 'pointer_generator'",
        ),
        (
            [
                "decoding.replace_unknown=dictionary",
                "data.dictionary=d",
                "model.head=softmax",
                "baseline.head=joint_copy",
            ],
            "'baseline.head' is 'joint_copy'",
        ),
        (
            ["decoding.replace_unknown=copy", "model.attention=none", "model.head=softmax"],
            "'decoding.replace_unknown' = \"copy\" puts what attention looks at",
        ),
        (['data.surface_features=["colour"]'], "can name 'case' alone; got 'colour'"),
        (['data.surface_features=["case"]', "data.lowercase=true"], "leaves nothing of"),
        (["data.tokenization=whitespace", 'data.source_features=["ids"]'], "cannot name 'ids'"),
        (["data.tokenization=whitespace", 'data.source_features=["a b"]'], "cannot name 'a b'"),
        (
            [
                "data.tokenization=whitespace",
                'data.source_features=["case"]',
                'data.surface_features=["case"]',
            ],
            "both name 'case'",
        ),
    ],
)
def test_copying_that_does_not_fit_together(overrides, words):
    assert words in refusal(load_recipe, "translation", overrides)


def test_a_shortlist_reads_the_lexicon_but_trains_as_without():
    plain = load_recipe("translation", ["lexicon.kind=learned"])
    short = load_recipe("translation", ["lexicon.kind=learned", "decoding.shortlist_size=500"])
    assert not views.reads_lexicon(plain) and views.reads_lexicon(short)
    assert views.transform_settings(short)["lexicon_rows"]
    assert "lexicon_rows" not in views.transform_settings(plain)
    assert views.training_recipe(short) == views.training_recipe(plain)


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
