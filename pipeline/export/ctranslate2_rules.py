"""What CTranslate2 can express of a recipe, and what not."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline.common.errors import VerbatimError
from pipeline.recipes.recipe import Recipe
from pipeline.text import tokenization


class ConversionError(VerbatimError, ValueError):
    """A model that CTranslate2 cannot express; its message is one sentence for the user."""


# Keys of a recipe that change what a network computes or how texts become ids, and the values that
# CTranslate2 can express.
_NETWORK: tuple[tuple[str, Collection[Any]], ...] = (
    ("task", ("seq2seq",)),
    ("model.body", ("transformer",)),
    ("model.head", ("softmax",)),
    ("model.composition", ("lookup",)),
    ("data.source_features", ((),)),
    ("data.surface_features", ((),)),
    ("data.source_tokenization", ("",)),
    ("data.units", ("words", "characters", "subwords")),
    ("data.copy_lexicon", ("",)),
    ("data.term_share", (0.0,)),
    ("training.ensemble", (1,)),
)
# Keys of `decoding` without an equivalent, and the values that need none.
_NEUTRAL: Mapping[str, Sequence[Any]] = {
    "temperature": (0.0,),
    "max_piece_repeats": (0,),
    "replace_unknown": ("none", "copy"),
    "shortlist_size": (0,),
    "keep_protected": (False,),
    "long_texts": ("refuse",),
}


def check_network(recipe: Recipe) -> None:
    """Refuses a recipe whose network CTranslate2 cannot express.

    Raises:
        ConversionError: it names the key.
    """
    for key, possible in _NETWORK:
        value = recipe
        for part in key.split("."):
            value = getattr(value, part)
        if value not in possible:
            raise ConversionError(
                f"CTranslate2 cannot express {key} = {_shown(value)}: it needs a model that was "
                f"trained with {' or '.join(f'{key} = {_shown(one)}' for one in possible)}."
            )


def inexpressible(recipe: Recipe, target_words: Sequence[str]) -> list[str]:
    """Returns the keys of decoding that change answers and that CTranslate2 has no equivalent for.

    Args:
        recipe: the model's.
        target_words: the target's vocabulary. Without placeholders, tags and the like among its
            words there is nothing that `keep_protected` could keep.
    """
    keys = [
        f"decoding.{name}"
        for name, possible in _NEUTRAL.items()
        if getattr(recipe.decoding, name) not in possible
    ]
    syntax = tokenization.Tokenizer.of(recipe.data).syntax
    words = target_words[len(tokenization.SPECIAL_TOKENS) :]
    if not any(map(syntax.is_protected, words)):
        keys = [key for key in keys if key != "decoding.keep_protected"]
    return keys


def check_decoding(missing: Sequence[str], without: Collection[str]) -> None:
    """Refuses a conversion that would change answers without consent.

    Args:
        missing: what `inexpressible` returned.
        without: the keys that the user does without.

    Raises:
        ConversionError: they differ.
    """
    if strange := sorted(set(without) - set(missing)):
        known = " and ".join(missing) or "nothing"
        raise ConversionError(
            f"--without names {strange[0]}, but this model needs --without for {known}: leave "
            f"{strange[0]} out."
        )
    if refused := [key for key in missing if key not in without]:
        options = " ".join(f"--without {key}" for key in refused)
        raise ConversionError(
            f"CTranslate2 has no equivalent of this model's {' and '.join(refused)}: add {options} "
            "to convert the model all the same; its answers may then differ."
        )


def neutral(keys: Collection[str]) -> dict[str, Any]:
    """Returns the values of `decoding`'s keys that stand for doing without them."""
    return {key.partition(".")[2]: _NEUTRAL[key.partition(".")[2]][0] for key in keys}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
