"""The part of a recipe that each component reads, which decides its output and its cache key."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS, LEXICON_HEADS
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.sections import (
    SEARCHED_SECTIONS,
    BaselineConfig,
    DecodingConfig,
    EvaluationConfig,
    LexiconConfig,
    TuningConfig,
)
from pipeline.recipes.settings import (
    SubwordsSettings,
    TextSettings,
    TokenizerSettings,
    TransformSettings,
    VocabularySettings,
)
from pipeline.recipes.task_rules import rules_of

#: Increase it when you change how texts are cut: what is protected, or what is a token.
TOKENIZATION_VERSION = 3

#: What a training decodes its eval split with, if `training.select_by` names a metric of outputs.
#: The search is greedy, without guarantees, shortlists or replacements of `[UNK]`.
SELECTING_KEYS = (
    "min_length",
    "max_length_factor",
    "max_length_offset",
    "no_repeat_ngram",
    "copy_whole_words",
    "max_piece_repeats",
)

_Recipe = TypeVar("_Recipe", bound=RecipeKeys)


def text_settings(recipe: RecipeKeys) -> TextSettings:
    """Returns the settings that the vocabularies and the Transform graph read.

    Only these keys are part of their cache keys: a recipe that changes others keeps its features.
    """
    data = recipe.data
    tokenizer: TokenizerSettings = {"kind": data.tokenization, "lowercase": data.lowercase}
    if data.placeholders != DEFAULT_PLACEHOLDERS:
        tokenizer["dialects"] = list(data.placeholders)
    if data.placeholder_patterns:
        tokenizer["own_patterns"] = list(data.placeholder_patterns)
    if data.term_share:
        tokenizer["terms"] = True
    if data.rare_words != "cut":
        tokenizer["rare_words"] = data.rare_words
    if data.unicode_form == "nfc":
        tokenizer["nfc"] = True
    settings: TextSettings = {"tokenizer": tokenizer, "tokenization": TOKENIZATION_VERSION}
    if data.source_tokenization:
        settings["source_tokenizer"] = {**tokenizer, "kind": data.source_tokenization}
    settings.update(cast(TextSettings, rules_of(recipe).text_settings(recipe)))
    if data.units != "words":
        settings["units"] = data.units
        if data.units == "preset":
            settings["preset"] = recipe.model.preset
        if data.source_units:
            settings["source_units"] = data.source_units
    return settings


def vocabulary_settings(recipe: RecipeKeys) -> VocabularySettings:
    """Returns the settings of the vocabularies: `text_settings`, and more.

    A text has at most as many entities with an id of their own as it has tokens.
    """
    settings = cast(VocabularySettings, text_settings(recipe))
    data = recipe.data
    if data.source_features:
        settings["source_features"] = list(data.source_features)
    if data.dictionary:
        settings["dictionary"] = data.dictionary
    if data.copy_lexicon:
        settings["copy_lexicon"] = data.copy_lexicon
    if composes(recipe):
        settings["characters"] = True
    if _points_at("entities", recipe):
        settings["entities"] = recipe.decoding.length_buckets[-1]
    if segments(recipe) and recipe.segmentation.warm_up == "multigrams":
        settings["multigrams"] = True
    return settings


def subwords_settings(recipe: RecipeKeys) -> SubwordsSettings:
    """Returns the settings of the component that learns units."""
    return {
        **text_settings(recipe),
        "pieces": recipe.vocabulary.pieces,
        "joint": recipe.vocabulary.joint,
        "longest": recipe.decoding.length_buckets[-1],
    }


def training_recipe(recipe: _Recipe) -> _Recipe:
    """Returns the recipe as its training sees it: without the keys of a trained model's use.

    So a changed beam size, metric or threshold finds the trained model in the cache. The buckets'
    lengths stay: other keys are checked against them. What decides the outputs of a greedy search
    stays where such outputs decide which epoch is the best.
    """
    keys = ["length_buckets"]
    if recipe.training.select_by != "loss":
        keys += SELECTING_KEYS
    decoding = DecodingConfig(**{key: getattr(recipe.decoding, key) for key in keys})
    return export_recipe(
        dataclasses.replace(recipe, decoding=decoding, evaluation=EvaluationConfig())
    )


def tuning_recipe(recipe: _Recipe) -> _Recipe:
    """Returns the recipe as the Tuner sees it: that of the training, with the search."""
    return dataclasses.replace(training_recipe(recipe), tuning=recipe.tuning)


def with_values(recipe: _Recipe, values: Mapping[str, Any]) -> _Recipe:
    """Returns the recipe with other values of some keys, and without a search for values.

    Args:
        recipe: a `Recipe`.
        values: from dotted key, of `SEARCHED_SECTIONS`, to value, such as a search found.

    Raises:
        RecipeError: they do not fit together.
    """
    changed: dict[str, dict[str, Any]] = {section: {} for section in SEARCHED_SECTIONS}
    for key, value in values.items():
        section, _, name = key.partition(".")
        changed[section][name] = value
    sections: dict[str, Any] = {
        name: dataclasses.replace(getattr(recipe, name), **keys) for name, keys in changed.items()
    }
    # The other values of the search need not fit these.
    return dataclasses.replace(recipe, **sections, tuning=TuningConfig())


def export_recipe(recipe: _Recipe) -> _Recipe:
    """Returns the recipe as an exported model sees it.

    Keys that only judge a model, or concern another one, have their defaults. The metrics stay: an
    exported model names them. The lexicon stays where the model reads it.
    """
    evaluation = dataclasses.replace(
        EvaluationConfig(), metrics=recipe.evaluation.metrics, database=recipe.evaluation.database
    )
    language_model = dataclasses.replace(
        recipe.language_model, max_perplexity=0.0, max_perplexity_change=None
    )
    alone = dataclasses.replace(
        recipe,
        licence="",
        evaluation=evaluation,
        baseline=BaselineConfig(),
        language_model=language_model,
        tuning=TuningConfig(),
    )
    return alone if reads_lexicon(alone) else dataclasses.replace(alone, lexicon=LexiconConfig())


def composes(recipe: RecipeKeys) -> bool:
    """Whether the vectors of source words are composed of their characters."""
    return rules_of(recipe).composes(recipe)


def reads_lexicon(recipe: RecipeKeys) -> bool:
    """Whether what the recipe trains or serves, or its baseline, reads the lexicon of translations.

    Otherwise the lexicon is only an artifact beside them.
    """
    return (
        recipe.decoding.replace_unknown == "lexicon"
        or reads_lexicon_rows(recipe)
        or guided_by_lexicon(recipe)
        or recipe.data.term_share > 0
    )


def reads_lexicon_rows(recipe: RecipeKeys) -> bool:
    """Whether a head, or the shortlist of decoding, reads the translations of words by number."""
    return recipe.decoding.shortlist_size > 0 or any(
        head in LEXICON_HEADS for head in recipe.heads.values()
    )


def guided_by_lexicon(recipe: RecipeKeys) -> bool:
    """Whether the lexicon's translations teach the attention in training."""
    return recipe.training.guided_alignment_weight > 0 and recipe.lexicon.kind != "none"


def segments(recipe: RecipeKeys) -> bool:
    """Whether the recipe's encoder finds words among characters."""
    return recipe.model.segments


def imitates_words(recipe: RecipeKeys) -> bool:
    """Whether its segmentation begins with words that the graph finds."""
    return segments(recipe) and recipe.segmentation.warm_up not in ("none", "prior")


def transform_settings(recipe: RecipeKeys) -> TransformSettings:
    """Returns the settings of the Transform graph: `text_settings`, and more.

    The same cache rule applies as for `text_settings`. Labels that only some heads learn from are
    made where the recipe's model or its baseline has such a head.
    """
    settings = cast(TransformSettings, text_settings(recipe))
    data, model = recipe.data, recipe.model
    if "span_copy" in recipe.heads.values():
        settings["spans"] = {"max_span": model.max_span, "min_span": model.min_span}
    if _points_at("dictionary", recipe):
        settings["pointers"] = "dictionary"
    if _points_at("entities", recipe):
        settings["pointers"] = "entities"
        settings["entity_feature"] = model.entity_feature
        settings["entities"] = vocabulary_settings(recipe)["entities"]
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        settings["translate"] = recipe.decoding.replace_unknown
    if reads_lexicon_rows(recipe) or guided_by_lexicon(recipe):
        settings["lexicon_rows"] = True
    if composes(recipe):
        settings["word_length"] = model.word_length
    if imitates_words(recipe):
        settings["word_ends"] = recipe.segmentation.warm_up
    if data.copy_lexicon:
        settings["copy_lexicon"] = True
    if data.source_features:
        settings["source_features"] = list(data.source_features)
    if data.surface_features:
        settings["surface_features"] = list(data.surface_features)
    if data.term_share:
        settings["term_share"] = data.term_share
    if data.corpora:
        settings["corpora"] = list(data.corpora)
    if recipe.training.subword_sampling != "none":
        settings["words"] = True
    return settings


def _points_at(pointers: str, recipe: RecipeKeys) -> bool:
    return recipe.model.pointers == pointers and "pointer_softmax" in recipe.heads.values()


def rules_of_pieces(recipe: RecipeKeys) -> bool:
    """Whether decoding has rules for words of several pieces."""
    rules = recipe.decoding.copy_whole_words or recipe.decoding.max_piece_repeats
    return recipe.data.units == "subwords" and bool(rules)
