"""The rules of the task `language_model`; see `pipeline.recipes.task_rules.TaskRules`."""

from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.settings import TaskTextSettings
from pipeline.recipes.training_rules import check_language_model_training

#: Keys of `SEARCHED_SECTIONS` that a language model reads and a trial may change.
_SEARCHED_KEYS = (
    "model.embedding_size",
    "model.hidden_size",
    "model.dropout",
    "training.learning_rate",
    "training.gradient_clip_norm",
    "training.mixed_precision",
)


def check_together(recipe: RecipeKeys) -> None:
    """Checks a recipe of this task by the rules that span several keys.

    Raises:
        RecipeError: keys do not fit together.
    """
    _check_data(recipe)
    _check_model(recipe)
    check_language_model_training(recipe.training)


def _check_data(recipe: RecipeKeys) -> None:
    """Checks the data: a text in one language that is already tokenized."""
    if recipe.lexicon.kind != "none":
        raise RecipeError(
            "The recipe key 'lexicon.kind' must be \"none\" for a language model: its text is in "
            "one language."
        )
    for key, value in (
        ("decoding.glossary", recipe.decoding.glossary),
        ("data.term_share", recipe.data.term_share),
        ("data.copy_lexicon", recipe.data.copy_lexicon),
        ("data.recombinations", recipe.data.recombinations),
    ):
        if value:
            raise RecipeError(
                f"The recipe key '{key}' must not be set for a language model: it has no source."
            )
    if recipe.decoding.long_texts != "refuse":
        raise RecipeError(
            "The recipe key 'decoding.long_texts' must be \"refuse\" for a language model: it has "
            "no sentences to translate."
        )
    if recipe.decoding.shortlist_size:
        raise RecipeError(
            "The recipe key 'decoding.shortlist_size' must be 0 for a language model: it needs a "
            "lexicon."
        )
    if recipe.data.units != "words":
        raise RecipeError(
            "The recipe key 'data.units' must be \"words\" for a language model; got "
            f"{recipe.data.units!r}."
        )
    if recipe.data.format not in ("auto", "text"):
        raise RecipeError(
            "The recipe key 'data.format' must be \"text\" for a language model; got "
            f"{recipe.data.format!r}."
        )
    if recipe.data.corpora:
        raise RecipeError(
            "The recipe key 'data.corpora' must be [] for a language model: it is one text."
        )
    if recipe.data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.tokenization' must be \"whitespace\" for a language model: its "
            "text must already be tokenized."
        )
    for split in ("train", "eval"):
        if not getattr(recipe.data, f"{split}_files"):
            raise RecipeError(
                f"The recipe key 'data.{split}_files' must name the {split} text of a language "
                "model."
            )


def _check_model(recipe: RecipeKeys) -> None:
    settings = recipe.language_model
    for key, head in recipe.heads.items():
        if head not in ("softmax", "pointer_sentinel", ""):
            raise RecipeError(
                f"The recipe key '{key}' must be one of 'softmax', 'pointer_sentinel' for a "
                f"language model; got {head!r}."
            )
    if not settings.carry and settings.stride > settings.window:
        raise RecipeError(
            f"The recipe key 'language_model.stride' ({settings.stride}) cannot exceed "
            f"'language_model.window' ({settings.window}) if 'language_model.carry' is false."
        )
    if recipe.decoding.length_buckets[-1] <= settings.window:
        raise RecipeError(
            f"The last of 'decoding.length_buckets' ({recipe.decoding.length_buckets[-1]}) must "
            f"exceed 'language_model.window' ({settings.window}): a passage is measured after a "
            "window's words of context."
        )
    if recipe.model.tie_embeddings == "all":
        raise RecipeError(
            'The recipe key \'model.tie_embeddings\' must be "target" or "none" for a language '
            "model: it has no source."
        )
    tied = {
        "language_model.tie_weights": settings.tie_weights,
        "model.tie_embeddings": recipe.model.tie_embeddings == "target",
    }
    for key, is_tied in tied.items():
        if is_tied and recipe.model.embedding_size != recipe.model.hidden_size:
            raise RecipeError(
                f"The recipe key '{key}' needs 'model.embedding_size' and 'model.hidden_size' to "
                "be equal in a language model."
            )


def text_settings(recipe: RecipeKeys) -> TaskTextSettings:
    """Returns the part of `pipeline.recipes.views.text_settings` that only this task has."""
    return {"task": recipe.task, "unknown_word": recipe.language_model.unknown_word}


def composes(recipe: RecipeKeys) -> bool:
    """Whether the vectors of source words are composed of their characters: there is no source."""
    return False


def compares_with_last_blessed(recipe: RecipeKeys) -> bool:
    """Whether the Evaluator needs the last blessed model too."""
    return recipe.language_model.max_perplexity_change is not None


def check_searched(key: str) -> None:
    """Refuses a key that `tuning.space` cannot name.

    Raises:
        RecipeError: no language model reads the key.
    """
    if key not in _SEARCHED_KEYS:
        raise RecipeError(
            f"The recipe key 'tuning.space' cannot name '{key}': for a language model it can name "
            f"{', '.join(_SEARCHED_KEYS)}."
        )
