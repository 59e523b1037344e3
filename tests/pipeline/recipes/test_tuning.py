"""What a recipe may say of a search for values."""

import pytest

from pipeline.recipes import loading, search_space
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe

RECIPE = "localization_en_fr"


@pytest.mark.parametrize(
    "override,sentence",
    [
        (
            "tuning.trials=2",
            "'tuning.space' must name at least one key if 'tuning.trials' is above 0",
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
            "cannot name 'model.coverage': it changes the eval loss, by which",
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
        RecipeError, match="cannot name 'model.lexicon_epsilon': for a language model it can name"
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
