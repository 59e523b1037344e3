"""The rules about lexicons, for the task `seq2seq`: what reads one, and what replaces a copy."""

from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys


def check_lexicons(recipe: RecipeKeys) -> None:
    """Checks what is copied, what replaces a copy, and the files that this needs.

    Raises:
        RecipeError: keys do not fit together.
    """
    data, model = recipe.data, recipe.model
    if (
        model.pointers == "dictionary" or recipe.decoding.replace_unknown == "dictionary"
    ) and not data.dictionary:
        key = "model.pointers" if model.pointers == "dictionary" else "decoding.replace_unknown"
        raise RecipeError(
            f"The recipe key '{key}' = \"dictionary\" needs a file of translations: name it in "
            "'data.dictionary'."
        )
    for key, value in recipe.heads.items():
        if value in LEXICON_HEADS and recipe.lexicon.kind == "none":
            raise RecipeError(
                f"The recipe key '{key}' = \"{value}\" needs a lexicon: set 'lexicon.kind' to "
                "learned, manual or hybrid."
            )
    if recipe.decoding.replace_unknown == "lexicon" and recipe.lexicon.kind == "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' = \"lexicon\" needs a lexicon: set "
            "'lexicon.kind' to learned, manual or hybrid."
        )
    if recipe.decoding.shortlist_size:
        if recipe.lexicon.kind == "none":
            raise RecipeError(
                "The recipe key 'decoding.shortlist_size' needs a lexicon that proposes words: "
                "set 'lexicon.kind' to learned, manual or hybrid."
            )
        for key, value in recipe.heads.items():
            if value == "pointer_network":
                raise RecipeError(
                    f"The recipe key 'decoding.shortlist_size' must be 0 where '{key}' is "
                    '"pointer_network": it has no softmax over words.'
                )
    elif recipe.decoding.shortlist_confidence:
        raise RecipeError(
            "The recipe key 'decoding.shortlist_confidence' needs a 'decoding.shortlist_size' "
            "above 0."
        )
    if recipe.lexicon.kind in ("manual", "hybrid") and not data.dictionary:
        raise RecipeError(
            f"The recipe key 'lexicon.kind' = \"{recipe.lexicon.kind}\" needs a file of "
            "translations: name it in 'data.dictionary'."
        )
    if model.pointers == "entities" and model.entity_feature not in data.source_features:
        raise RecipeError(
            "The recipe key 'model.entity_feature' must name one of 'data.source_features' when "
            f"'model.pointers' is \"entities\"; got {model.entity_feature!r}."
        )
    if (
        recipe.decoding.replace_unknown != "none"
        and model.body == "rnn"
        and model.attention == "none"
    ):
        raise RecipeError(
            f"The recipe key 'decoding.replace_unknown' = \"{recipe.decoding.replace_unknown}\" "
            "uses the decoder's attention: it needs a 'model.attention' other than \"none\"."
        )
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        for key, head in recipe.heads.items():
            # A search does not tell which of the source tokens that it writes replace [UNK].
            copies_translations = head == "pointer_softmax" and model.pointers == "dictionary"
            if (
                head not in ("", "softmax", "lexicon_bias", "lexicon_linear")
                and not copies_translations
            ):
                raise RecipeError(
                    "The recipe key 'decoding.replace_unknown' = "
                    f'"{recipe.decoding.replace_unknown}" would translate every copy, and '
                    f"'{key}' is {head!r}: choose head softmax, lexicon_bias or lexicon_linear, or "
                    "pointer_softmax with 'model.pointers' = \"dictionary\"."
                )
