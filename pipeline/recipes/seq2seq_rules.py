"""The rules of the task `seq2seq`; see `pipeline.recipes.task_rules.TaskRules`.

The rules of single sections are in modules of their own.
"""

from pipeline.recipes.corpora import check_mixture
from pipeline.recipes.data_rules import (
    check_data,
    check_placeholders,
    check_slice_features,
    check_source_features,
    check_units,
)
from pipeline.recipes.evaluation_rules import check_evaluation
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.glossary_rules import check_glossary
from pipeline.recipes.lexicon_rules import check_lexicons
from pipeline.recipes.model_rules import check_model, check_segmentation
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.settings import TaskTextSettings
from pipeline.recipes.training_rules import check_training


def check_together(recipe: RecipeKeys) -> None:
    """Checks a recipe of this task by the rules that span several keys.

    Raises:
        RecipeError: keys do not fit together.
    """
    if recipe.data.format == "text":
        raise RecipeError(
            "The recipe key 'data.format' = \"text\" needs 'task' = \"language_model\": plain text "
            "has no pairs."
        )
    check_data(recipe.data)
    check_placeholders(recipe.data)
    check_units(recipe)
    check_slice_features(recipe.data)
    check_evaluation(recipe.evaluation, recipe.data)
    # Every text that is read must be trainable (the end takes one place) and decodable, so that
    # none is left out later.
    for key, longest in (
        ("training.bucket_lengths", recipe.training.bucket_lengths[-1] - 1),
        ("decoding.length_buckets", recipe.decoding.length_buckets[-1]),
    ):
        if recipe.data.max_tokens > longest:
            raise RecipeError(
                f"The recipe key 'data.max_tokens' ({recipe.data.max_tokens}) must be at most "
                f"{longest} to fit the last of '{key}'."
            )
    shortest_limit = int(recipe.decoding.length_buckets[0] * recipe.decoding.max_length_factor)
    if recipe.decoding.min_length > shortest_limit + recipe.decoding.max_length_offset:
        raise RecipeError(
            f"The recipe key 'decoding.min_length' ({recipe.decoding.min_length}) exceeds the "
            "longest output of the first of 'decoding.length_buckets'."
        )
    if not recipe.decoding.temperature and recipe.decoding.n_best > recipe.decoding.beam_size:
        raise RecipeError(
            f"The recipe key 'decoding.n_best' ({recipe.decoding.n_best}) cannot exceed "
            f"'decoding.beam_size' ({recipe.decoding.beam_size})."
        )
    if recipe.decoding.long_texts == "split" and recipe.data.source_features:
        raise RecipeError(
            "The recipe key 'decoding.long_texts' = \"split\" must not be set where "
            "'data.source_features' names tags: nothing says which tags a sentence has."
        )
    check_model(recipe)
    check_segmentation(recipe)
    if recipe.model.min_span > recipe.model.max_span:
        raise RecipeError(
            f"The recipe key 'model.min_span' ({recipe.model.min_span}) cannot exceed "
            f"'model.max_span' ({recipe.model.max_span})."
        )
    check_lexicons(recipe)
    check_glossary(recipe)
    check_source_features(recipe.data)
    check_training(recipe)
    check_mixture(recipe)


def text_settings(recipe: RecipeKeys) -> TaskTextSettings:
    """Returns the part of `pipeline.recipes.views.text_settings` that only this task has:
    nothing."""
    return {}


def composes(recipe: RecipeKeys) -> bool:
    """Whether the vectors of source words are composed of their characters."""
    return recipe.model.composition != "lookup"


def compares_with_last_blessed(recipe: RecipeKeys) -> bool:
    """Whether the Evaluator needs the last blessed model too."""
    return recipe.evaluation.compares_with_last_blessed


def check_searched(key: str) -> None:
    """Every key of the sections model and training can be searched."""
