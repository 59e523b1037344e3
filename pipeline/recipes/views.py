"""What parts of a pipeline read of a recipe:
the settings that decide what they make, and so their cache keys.
"""

import dataclasses

from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.sections import (
    SEARCHED_SECTIONS,
    BaselineConfig,
    DecodingConfig,
    EvaluationConfig,
    LexiconConfig,
    TuningConfig,
)
from pipeline.recipes.task_rules import rules_of


def text_settings(recipe):
    """Returns what the vocabularies need to know of a recipe, and the Transform graph too.

    Only these keys take part in their cache keys: a recipe that changes others keeps its features.

    Args:
        recipe: a `Recipe`.

    Returns:
        Dict that JSON can hold; `tokenizer` has the arguments of
        `pipeline.text.tokenization.Tokenizer`; `units`, where words are cut, what into;
        `source_units`, where those of the source are not.
    """
    settings = {"tokenizer": {"kind": recipe.data.tokenization, "lowercase": recipe.data.lowercase}}
    if recipe.data.source_tokenization:
        settings["source_tokenizer"] = {
            **settings["tokenizer"],
            "kind": recipe.data.source_tokenization,
        }
    settings.update(rules_of(recipe).text_settings(recipe))
    if recipe.data.units != "words":
        settings["units"] = recipe.data.units
        if recipe.data.source_units:
            settings["source_units"] = recipe.data.source_units
    return settings


def vocabulary_settings(recipe):
    """Returns what the vocabularies need to know of a recipe's data:
    `text_settings`, and, where the recipe has them,

    - `source_features`: the columns whose tags are counted;
    - `dictionary`, `copy_lexicon`: paths of lexicons;
    - `characters`: true, where words are composed of them;
    - `entities`: how many of a text's entities have an id of their own: as many as a text has
      tokens.
    """
    settings = text_settings(recipe)
    data = recipe.data
    if data.source_features:
        settings["source_features"] = list(data.source_features)
    settings.update(
        {key: getattr(data, key) for key in ("dictionary", "copy_lexicon") if getattr(data, key)}
    )
    if composes(recipe):
        settings["characters"] = True
    if _points_at("entities", recipe):
        settings["entities"] = recipe.decoding.length_buckets[-1]
    return settings


def training_recipe(recipe):
    """Returns the recipe as its training sees it:
    what a trained model is used for is as in a recipe that does not say.

    So a changed beam size, metric or threshold finds the trained model in the cache. The buckets'
    lengths stay: other keys are checked against them.
    """
    decoding = DecodingConfig(length_buckets=recipe.decoding.length_buckets)
    return export_recipe(
        dataclasses.replace(recipe, decoding=decoding, evaluation=EvaluationConfig())
    )


def tuning_recipe(recipe):
    """Returns the recipe as the search for values sees it: as its training does, with the search."""
    return dataclasses.replace(training_recipe(recipe), tuning=recipe.tuning)


def with_values(recipe, values):
    """Returns the recipe with other values of some keys, such as those that a search found, and
    without that search.

    Args:
        recipe: a `Recipe`.
        values: dict from dotted key, of `SEARCHED_SECTIONS`, to value.

    Raises:
        RecipeError: they do not fit together.
    """
    changed = {section: {} for section in SEARCHED_SECTIONS}
    for key, value in values.items():
        section, _, name = key.partition(".")
        changed[section][name] = value
    sections = {
        name: dataclasses.replace(getattr(recipe, name), **keys) for name, keys in changed.items()
    }
    # What else was to be tried need not fit these values.
    return dataclasses.replace(recipe, **sections, tuning=TuningConfig())


def export_recipe(recipe):
    """Returns the recipe as an exported model sees it:
    what only judges a model, or concerns another one, is as in a recipe without it.

    The metrics stay: an exported model names them. The lexicon stays where the model reads it.
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


def composes(recipe):
    """Whether the vectors of source words are composed of their characters."""
    return rules_of(recipe).composes(recipe)


def reads_lexicon(recipe):
    """Whether the lexicon of translations is part of what the recipe serves or of its baseline, not
    only an artifact beside them.
    """
    return recipe.decoding.replace_unknown == "lexicon" or reads_lexicon_rows(recipe)


def reads_lexicon_rows(recipe):
    """Whether the translations of each source word are read by number:
    by a head, or by the shortlist of decoding.
    """
    heads = (recipe.model.head, recipe.baseline.head)
    return recipe.decoding.shortlist_size > 0 or any(head in LEXICON_HEADS for head in heads)


def segments(recipe):
    """Whether the recipe's encoder finds words among characters."""
    return recipe.model.segments


def imitates_scripts(recipe):
    """Whether its segmentation begins with runs of one script, hiragana alone or not."""
    return segments(recipe) and recipe.segmentation.warm_up in ("script", "kana")


def transform_settings(recipe):
    """Returns what the Transform graph needs to know of a recipe:
    the same cache rule as for `text_settings`.

    Labels that only some heads learn from are asked for where the recipe's model or its baseline
    has such a head.

    Returns:
        `text_settings`, and, where the recipe has them: `spans` (dict with `max_span` and
        `min_span`), `pointers` (`"dictionary"` or `"entities"`), `entity_feature` and `entities`
        (see `vocabulary_settings`), `translate` (`"dictionary"` or `"lexicon"`), `copy_lexicon`
        (true), `lexicon_rows` (true), `word_length` (places of a word's characters), `scripts`
        (true), `source_features` and `surface_features` (lists).
    """
    settings = text_settings(recipe)
    if "span_copy" in (recipe.model.head, recipe.baseline.head):
        settings["spans"] = {"max_span": recipe.model.max_span, "min_span": recipe.model.min_span}
    for pointers in ("dictionary", "entities"):
        if _points_at(pointers, recipe):
            settings["pointers"] = pointers
    if settings.get("pointers") == "entities":
        settings["entity_feature"] = recipe.model.entity_feature
        settings["entities"] = vocabulary_settings(recipe)["entities"]
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        settings["translate"] = recipe.decoding.replace_unknown
    if reads_lexicon_rows(recipe):
        settings["lexicon_rows"] = True
    if composes(recipe):
        settings["word_length"] = recipe.model.word_length
    if imitates_scripts(recipe):
        settings["scripts"] = recipe.segmentation.warm_up
    if recipe.data.copy_lexicon:
        settings["copy_lexicon"] = True
    for key in ("source_features", "surface_features"):
        if getattr(recipe.data, key):
            settings[key] = list(getattr(recipe.data, key))
    return settings


def _points_at(pointers, recipe):
    return recipe.model.pointers == pointers and "pointer_softmax" in (
        recipe.model.head,
        recipe.baseline.head,
    )
