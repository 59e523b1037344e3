"""The rules of the section `data`, for the task `seq2seq`."""

import re

from pipeline.recipes.choices import PLACEHOLDER_DIALECTS, SLICES
from pipeline.recipes.fields import RecipeError, suggestion
from pipeline.recipes.own_patterns import PatternError, check_pattern
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.sections import DataConfig

# `source_ids` and its like are features of the graph itself.
_OWN_SOURCE_FEATURES = (
    "ids",
    "tokens",
    "extended_ids",
    "feed_ids",
    "copy_tokens",
    "protected",
    "lexicon_rows",
    "characters",
)


def check_data(data: DataConfig) -> None:
    """Checks splits, columns and tags.

    Raises:
        RecipeError: keys do not fit together.
    """
    shares = {
        f"data.{split}_share": getattr(data, f"{split}_share")
        for split in ("eval", "test")
        if not getattr(data, f"{split}_files")
    }
    if any(share <= 0 for share in shares.values()):
        raise RecipeError(
            f"The recipe keys {' and '.join(map(repr, shares))} must be above 0 if no files are "
            "given for these splits: all splits are used."
        )
    if sum(shares.values()) >= 1:
        raise RecipeError(
            "The recipe keys 'data.eval_share' and 'data.test_share' must have a sum below 1, so "
            "that some data are left for training."
        )
    if (data.eval_files or data.test_files) and not data.train_files:
        raise RecipeError(
            "The recipe keys 'data.eval_files' and 'data.test_files' need 'data.train_files': name "
            "the training files too."
        )
    if data.columns and (missing := [c for c in _named_columns(data) if c not in data.columns]):
        raise RecipeError(
            f"The recipe key 'data.columns' lacks {', '.join(map(repr, missing))}, which "
            "'data.source_column', 'data.target_column', 'data.source_features' or "
            "'data.slice_features' name."
        )
    if data.source_features and data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.source_features' needs 'data.tokenization' = \"whitespace\": "
            "tags belong to the tokens of a text that is already tokenized."
        )
    _check_recombinations(data)
    if reserved := set(data.extra_columns) & {
        "source",
        "target",
        "file",
        "line",
        data.source_column,
        data.target_column,
    }:
        raise RecipeError(
            "The recipe keys 'data.source_features' and 'data.slice_features' cannot name "
            f"{', '.join(map(repr, sorted(reserved)))}: this column has another use; rename it."
        )


def _check_recombinations(data: DataConfig) -> None:
    if not data.recombinations:
        return
    if not data.copy_lexicon or data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.recombinations' needs 'data.copy_lexicon' and "
            "'data.tokenization' = \"whitespace\": it exchanges the words that this lexicon names."
        )
    if data.source_features:
        raise RecipeError(
            "The recipe keys 'data.recombinations' and 'data.source_features' exclude each other: "
            "words that are exchanged would lose their tags."
        )


def check_placeholders(data: DataConfig) -> None:
    """Checks the dialects and the patterns of placeholders.

    Raises:
        RecipeError: an unknown dialect, or a pattern that cannot be used.
    """
    for name in data.placeholders:
        if name not in PLACEHOLDER_DIALECTS:
            raise RecipeError(
                f"The recipe key 'data.placeholders' cannot name {name!r}"
                f"{suggestion(name, PLACEHOLDER_DIALECTS)} The dialects are: "
                f"{', '.join(PLACEHOLDER_DIALECTS)}."
            )
    for pattern in data.placeholder_patterns:
        try:
            check_pattern(pattern)
        except PatternError as error:
            raise RecipeError(
                f"The recipe key 'data.placeholder_patterns' cannot have {pattern!r}: {error}."
            ) from None


def _named_columns(data: DataConfig) -> tuple[str, ...]:
    return (data.source_column, data.target_column, *data.extra_columns)


def check_units(recipe: RecipeKeys) -> None:
    """Checks the token units: keys that work on words need words as units.

    Raises:
        RecipeError: keys do not fit together.
    """
    data = recipe.data
    if data.rare_words != "cut" and (data.tokenization != "text" or data.units == "preset"):
        raise RecipeError(
            f"The recipe key 'data.rare_words' = \"{data.rare_words}\" needs 'data.tokenization' = "
            '"text" and \'data.units\' other than "preset": nothing else cuts texts at punctuation.'
        )
    if data.rare_words == "letters" and data.units != "words":
        raise RecipeError(
            "The recipe key 'data.rare_words' = \"letters\" needs 'data.units' = \"words\": other "
            'units do not end at "_"; use "parts".'
        )
    if data.source_units and data.units == "words":
        raise RecipeError(
            "The recipe key 'data.source_units' needs 'data.units' other than \"words\": it keeps "
            "source words whole where target words are cut."
        )
    if data.units == "preset" and recipe.model.body != "keras_hub":
        raise RecipeError(
            "The recipe key 'data.units' = \"preset\" needs 'model.body' = \"keras_hub\": it takes "
            "the tokens of a pre-trained model."
        )
    if data.source_units and recipe.vocabulary.joint:
        raise RecipeError(
            "The recipe key 'vocabulary.joint' must be false: 'data.source_units' cuts the two "
            "sides differently."
        )
    if data.units == "words" and not data.source_tokenization:
        return
    if data.units != "words" and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'data.source_tokenization' needs 'data.units' = \"words\": only one of "
            "the two keys can cut the source."
        )
    if recipe.vocabulary.joint and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'vocabulary.joint' must be false: 'data.source_tokenization' cuts the "
            "two sides differently."
        )
    blamed = (
        "'data.source_tokenization' = \"\""
        if data.source_tokenization
        else "'data.units' = \"words\""
    )
    for key, uses_words in (
        # A learned lexicon may have units; a dictionary lists words.
        (
            "lexicon.kind",
            recipe.lexicon.kind != "none"
            and not (recipe.lexicon.kind == "learned" and data.units != "words"),
        ),
        ("data.dictionary", bool(recipe.data.dictionary)),
        ("data.copy_lexicon", bool(recipe.data.copy_lexicon)),
        ("data.source_features", bool(recipe.data.source_features)),
        ("data.surface_features", bool(recipe.data.surface_features)),
        ("evaluation.slices", "unknown_words" in recipe.evaluation.slices),
    ):
        if uses_words:
            raise RecipeError(f"The recipe key '{key}' works on words: it needs {blamed}.")


def check_slice_features(data: DataConfig) -> None:
    """Checks the columns of slices.

    They become features of the examples beside the texts and their tags.

    Raises:
        RecipeError: keys do not fit together.
    """
    for name in data.slice_features:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in SLICES:
            raise RecipeError(
                f"The recipe key 'data.slice_features' cannot name {name!r}: the name of a column "
                f"must consist of letters, digits and '_', and not be one of {', '.join(SLICES)}; "
                "rename the column."
            )
        if name in data.source_features:
            raise RecipeError(
                "The recipe keys 'data.source_features' and 'data.slice_features' both name "
                f"{name!r}."
            )


def check_source_features(data: DataConfig) -> None:
    """Checks the features of the source's tokens.

    Raises:
        RecipeError: keys do not fit together.
    """
    for name in data.surface_features:
        if name not in ("case",):
            raise RecipeError(
                f"The recipe key 'data.surface_features' can only name 'case'; got {name!r}."
            )
        if name in data.source_features:
            raise RecipeError(
                "The recipe keys 'data.surface_features' and 'data.source_features' both name "
                f"{name!r}."
            )
    if "case" in data.surface_features and data.lowercase:
        raise RecipeError(
            "The recipe key 'data.surface_features' names 'case', but 'data.lowercase' removes "
            "the case: drop one of the two."
        )
    for name in data.source_features:
        # They are names of a model's inputs, beside its own.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _OWN_SOURCE_FEATURES:
            raise RecipeError(
                f"The recipe key 'data.source_features' cannot name {name!r}: the name of a column "
                "must consist of letters, digits and '_', and not be one of "
                f"{', '.join(_OWN_SOURCE_FEATURES)}; rename the column."
            )
