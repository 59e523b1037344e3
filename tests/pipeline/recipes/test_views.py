"""What each part of a pipeline reads of a recipe."""

import dataclasses

import pytest

from pipeline.features import feature_names
from pipeline.recipes import loading, settings, views
from pipeline.recipes.loading import load_recipe
from pipeline.recipes.recipe import Recipe, recipe_from_dict
from tests.pipeline.recipes.refusals import refusal


def test_only_what_decides_features_is_in_the_text_settings():
    made = views.text_settings(Recipe(name="x"))
    version = {"tokenization": views.TOKENIZATION_VERSION}
    assert made == {"tokenizer": {"kind": "text", "lowercase": False}, **version}
    other = recipe_from_dict(
        {
            "name": "y",
            "data": {"tokenization": "whitespace", "lowercase": True, "max_characters": 9},
        }
    )
    assert views.text_settings(other) == {
        "tokenizer": {"kind": "whitespace", "lowercase": True},
        **version,
    }
    kept = recipe_from_dict(
        {"name": "z", "data": {"placeholders": ["c"], "placeholder_patterns": ["x+"]}}
    )
    assert views.text_settings(kept)["tokenizer"] == {
        "kind": "text",
        "lowercase": False,
        "dialects": ["c"],
        "own_patterns": ["x+"],
    }
    whole = recipe_from_dict({"name": "w", "data": {"rare_words": "whole", "unicode_form": "nfc"}})
    assert views.text_settings(whole)["tokenizer"] == {
        "kind": "text",
        "lowercase": False,
        "rare_words": "whole",
        "nfc": True,
    }


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


@pytest.mark.parametrize("name", loading.available_recipes())
def test_the_views_of_a_recipe_are_recipes_and_their_own_views(name):
    recipe = load_recipe(name)
    for view in (views.training_recipe, views.export_recipe, views.tuning_recipe):
        seen = view(recipe)
        assert seen.data == recipe.data and seen.model == recipe.model
        assert view(seen) == seen


def test_a_training_that_decodes_depends_on_what_its_outputs_may_be():
    chosen = ["training.select_by=exact_match"]
    plain = load_recipe("translation", chosen)
    longer = load_recipe("translation", [*chosen, "decoding.max_length_offset=60"])
    assert views.training_recipe(longer) != views.training_recipe(plain)
    wider = load_recipe("translation", [*chosen, "decoding.beam_size=8"])
    assert views.training_recipe(wider) == views.training_recipe(plain)
    # Nothing is decoded where the loss decides.
    longer = load_recipe("translation", ["decoding.max_length_offset=60"])
    assert views.training_recipe(longer) == views.training_recipe(load_recipe("translation"))


@pytest.mark.parametrize("key", views.SELECTING_KEYS)
def test_what_decides_the_outputs_of_a_training_stays_in_its_view(key):
    recipe = load_recipe("translation_en_de_transformer", ["training.select_by=bleu"])
    value = getattr(recipe.decoding, key)
    other = not value if isinstance(value, bool) else value + 1
    changed = dataclasses.replace(
        recipe, decoding=dataclasses.replace(recipe.decoding, **{key: other})
    )
    for view in (views.training_recipe, views.tuning_recipe):
        assert getattr(view(changed).decoding, key) == other


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


def test_a_lexicon_teaches_the_attention_in_training_alone():
    guided = ["lexicon.kind=learned", "training.guided_alignment_weight=0.5"]
    recipe = load_recipe("translation", guided)
    assert views.training_recipe(recipe).lexicon == recipe.lexicon
    assert views.transform_settings(recipe)["lexicon_rows"] and views.reads_lexicon(recipe)
    assert not views.reads_lexicon_rows(recipe)
    assert feature_names.LEXICON_ROWS in feature_names.training_features(recipe)
    assert feature_names.LEXICON_ROWS not in feature_names.encoder_features(recipe)
    matches_alone = load_recipe("translation", guided[1:])
    assert "lexicon_rows" not in views.transform_settings(matches_alone)
    assert feature_names.LEXICON_ROWS not in feature_names.training_features(matches_alone)


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


def test_a_shortlist_reads_the_lexicon_but_trains_as_without():
    plain = load_recipe("translation", ["lexicon.kind=learned"])
    short = load_recipe("translation", ["lexicon.kind=learned", "decoding.shortlist_size=500"])
    assert not views.reads_lexicon(plain) and views.reads_lexicon(short)
    assert views.transform_settings(short)["lexicon_rows"]
    assert "lexicon_rows" not in views.transform_settings(plain)
    assert views.training_recipe(short) == views.training_recipe(plain)


@pytest.mark.parametrize("name", loading.available_recipes())
def test_settings_have_the_keys_that_their_types_declare(name):
    recipe = load_recipe(name)
    for made, declared in (
        (views.text_settings(recipe), settings.TextSettings),
        (views.vocabulary_settings(recipe), settings.VocabularySettings),
        (views.transform_settings(recipe), settings.TransformSettings),
    ):
        assert set(made) <= set(declared.__annotations__)
