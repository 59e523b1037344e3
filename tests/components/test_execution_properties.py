"""The properties that executors get, byte for byte: earlier runs are found in the cache by them."""

import json

import pytest
from tfx import types
from tfx.types import standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.exporter.component import Exporter
from components.lexicon.component import Lexicon
from components.parallel_text_example_gen.component import ParallelTextExampleGen
from components.reporter.component import Reporter, SystemChannels
from components.subwords.component import Subwords
from components.text_example_gen.component import TextExampleGen
from components.text_transform.component import TextTransform
from components.vocabulary.component import Vocabulary
from pipeline.recipes import views
from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.recipes.recipe import Recipe, recipe_from_dict

RECIPE = recipe_from_dict(
    {
        "name": "pinned",
        "data": {
            "format": "tsv",
            "units": "subwords",
            "tokenization": "whitespace",
            "lowercase": True,
            "max_tokens": 50,
        },
        "vocabulary": {"pieces": 500, "joint": True},
        "lexicon": {"kind": "learned", "top_k": 5},
    }
)
LANGUAGE_MODEL = recipe_from_dict(
    {
        "name": "pinned",
        "task": "language_model",
        "data": {
            "format": "text",
            "tokenization": "whitespace",
            "train_files": ["a.txt"],
            "eval_files": ["b.txt"],
        },
        "model": {"head": "softmax"},
        "language_model": {"window": 4, "batch_size": 2, "zoneout_cell": 0.5},
        "vocabulary": {"min_count": 3},
    }
)
TEXT_SETTINGS = (
    '{"tokenization": 3, "tokenizer": {"kind": "whitespace", "lowercase": true}, '
    '"units": "subwords"}'
)
STREAM_SETTINGS = (
    '{"task": "language_model", "tokenization": 3, '
    '"tokenizer": {"kind": "whitespace", "lowercase": false}, "unknown_word": "<unk>"}'
)


def channel(artifact_type):
    return types.Channel(type=artifact_type)


@pytest.fixture
def examples():
    return channel(standard_artifacts.Examples)


@pytest.fixture
def folder():
    return channel(simple_artifacts.File)


def test_parallel_text_example_gen():
    properties = ParallelTextExampleGen("/data", RECIPE.data).exec_properties
    assert json.loads(properties.pop("input_config"))["splits"] == [
        {"name": "pattern_0", "pattern": "data"},
        {"name": "pattern_1", "pattern": "data/[!.]*.[tT][sS][vV]"},
        {"name": "pattern_2", "pattern": "data/[!.]*.[tT][sS][vV][.][gG][zZ]"},
        {"name": "pattern_3", "pattern": "data/[!.]*.[tT][xX][tT]"},
        {"name": "pattern_4", "pattern": "data/[!.]*.[tT][xX][tT][.][gG][zZ]"},
    ]
    assert properties == {
        "input_base": "/",
        "output_config": "{}",
        "output_data_format": 6,
        "output_file_format": 5,
        "data_path": "/data",
        "data_config": (
            '{"columns": [], "copy_lexicon": "", "corpora": [], "dictionary": "", '
            '"drop_duplicates": true, "drop_identical": false, "eval_files": [], '
            '"eval_share": 0.05, "format": "tsv", '
            '"lowercase": true, "max_characters": 2000, "max_rejected_share": 0.1, '
            '"max_tokens": 50, "placeholder_patterns": [], '
            f'"placeholders": {json.dumps(DEFAULT_PLACEHOLDERS)}, '
            '"rare_words": "cut", "recombinations": 0, "separator": ",", '
            '"slice_features": [], '
            '"source_column": "source", "source_features": [], '
            '"source_language": "en", "source_tokenization": "", '
            '"source_units": "", "split_salt": "verbatim", "surface_features": [], '
            '"synthetic": "", "synthetic_ratio": 0.995, "target_column": "target", '
            '"target_language": "fr", "term_share": 0.0, "test_files": [], "test_share": 0.05, '
            '"tokenization": "whitespace", "train_files": [], '
            '"unicode_form": "none", "units": "subwords"}'
        ),
    }


def test_text_example_gen():
    properties = TextExampleGen(
        "/data",
        LANGUAGE_MODEL.data,
        LANGUAGE_MODEL.language_model,
        LANGUAGE_MODEL.decoding.length_buckets,
    ).exec_properties
    recipe = properties.pop("recipe")
    assert json.loads(properties.pop("input_config"))["splits"] == [
        {"name": "pattern_0", "pattern": "a.txt"},
        {"name": "pattern_1", "pattern": "b.txt"},
    ]
    assert properties == {
        "input_base": "/data",
        "output_config": "{}",
        "output_data_format": 6,
        "output_file_format": 5,
        "data_path": "/data",
    }
    # A recipe with default values, but for what changes a passage.
    tree = Recipe(name="passages").to_dict()
    tree["task"] = "language_model"
    tree["data"] = LANGUAGE_MODEL.to_dict()["data"]
    tree["model"]["head"] = "softmax"
    tree["baseline"]["head"] = ""
    tree["language_model"].update(window=4, batch_size=2)
    assert recipe == json.dumps(tree, sort_keys=True)


def test_subwords(examples):
    assert Subwords(examples, views.subwords_settings(RECIPE)).exec_properties == {
        "subwords_config": (
            '{"joint": true, "longest": 128, "pieces": 500, "tokenization": 3, '
            '"tokenizer": {"kind": "whitespace", "lowercase": true}, "units": "subwords"}'
        )
    }


@pytest.mark.parametrize(
    ("recipe", "config", "settings"),
    [
        (
            RECIPE,
            '{"joint": true, "min_count": 2, "protected_min_count": 20, "source_size": 8000, '
            '"target_size": 8000}',
            TEXT_SETTINGS,
        ),
        (
            LANGUAGE_MODEL,
            '{"joint": false, "min_count": 3, "protected_min_count": 20, "source_size": 8000, '
            '"target_size": 8000}',
            STREAM_SETTINGS,
        ),
    ],
)
def test_vocabulary(examples, recipe, config, settings):
    component = Vocabulary(examples, recipe.vocabulary, views.vocabulary_settings(recipe))
    assert component.exec_properties == {"vocabulary_config": config, "text_settings": settings}


def test_lexicon(examples, folder):
    component = Lexicon(examples, folder, RECIPE.lexicon, views.vocabulary_settings(RECIPE))
    assert component.exec_properties == {
        "lexicon_config": (
            '{"diagonal_iterations": 5, "kind": "learned", "min_coverage": 0.2, '
            '"min_probability": 0.01, "model1_iterations": 5, "symmetrization": "agreement", '
            '"top_k": 5}'
        ),
        "text_settings": TEXT_SETTINGS,
    }


@pytest.mark.parametrize(
    ("recipe", "settings"), [(RECIPE, TEXT_SETTINGS), (LANGUAGE_MODEL, STREAM_SETTINGS)]
)
def test_text_transform(examples, folder, recipe, settings):
    schema = channel(standard_artifacts.Schema)
    component = TextTransform(
        examples, schema, folder, "module.function", views.transform_settings(recipe)
    )
    assert {name: value for name, value in component.exec_properties.items() if value} == {
        "preprocessing_fn": "module.function",
        "custom_config": settings,
        "disable_statistics": 1,
    }


def test_exporter_and_reporter_hold_the_whole_recipe(examples, folder):
    model = channel(standard_artifacts.Model)
    graph = channel(standard_artifacts.TransformGraph)
    assert Exporter(model, graph, folder, RECIPE).exec_properties == {"recipe": RECIPE.to_json()}
    measured = Exporter(model, graph, folder, RECIPE, only_measured=True)
    assert measured.exec_properties == {"recipe": RECIPE.to_json(), "only_measured": 1}
    component = Reporter(
        examples=examples,
        counts=folder,
        vocabulary=folder,
        evaluation=channel(standard_artifacts.ModelEvaluation),
        pushed_model=channel(standard_artifacts.PushedModel),
        systems=[SystemChannels(model, model, channel(standard_artifacts.ModelRun))],
        recipe=RECIPE,
        answers_directory="/answers",
    )
    assert component.exec_properties == {
        "recipe": RECIPE.to_json(),
        "answers_directory": "/answers",
    }
