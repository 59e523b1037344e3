"""The corpora of a mixture: which of them a file belongs to, by its name.

The same patterns are matched by Python before a run and by RE2 in the Transform graph.
"""

import re
from collections.abc import Sequence

from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys

_PARTS = {"*": ".*", "?": "."}


def expression_of(pattern: str) -> str:
    """Returns the regular expression that matches all of a file's name as a pattern does.

    Args:
        pattern: `*` stands for any text and `?` for one character, all else for itself.
    """
    parts = (_PARTS.get(part) or re.escape(part) for part in re.split(r"([*?])", pattern) if part)
    return f"(?s:{''.join(parts)})"


def corpus_of(file: str, corpora: Sequence[str]) -> int:
    """Returns the number of the first corpus that a file belongs to, -1 for none."""
    matches = (bool(re.fullmatch(expression_of(pattern), file)) for pattern in corpora)
    return next((number for number, matching in enumerate(matches) if matching), -1)


def check_mixture(recipe: RecipeKeys) -> None:
    """Checks the keys of a mixture.

    Raises:
        RecipeError: keys do not fit together.
    """
    corpora, training = recipe.data.corpora, recipe.training
    if not corpora:
        for key in ("corpus_weights", "corpus_temperature"):
            if getattr(training, key) not in ((), 1.0):
                raise RecipeError(
                    f"The recipe key 'training.{key}' needs 'data.corpora': it mixes corpora."
                )
        return
    if not training.corpus_weights and training.corpus_temperature == 1:
        raise RecipeError(
            "The recipe key 'data.corpora' needs 'training.corpus_weights' or a "
            "'training.corpus_temperature' above 1: without them it changes nothing."
        )
    if not training.corpus_weights:
        return
    if len(training.corpus_weights) != len(corpora):
        raise RecipeError(
            f"The recipe key 'training.corpus_weights' has {len(training.corpus_weights)} numbers "
            f"for the {len(corpora)} entries of 'data.corpora': give one number for each."
        )
    if not any(training.corpus_weights):
        raise RecipeError(
            "The recipe key 'training.corpus_weights' has no number above 0, so the mixture is "
            "empty: give one."
        )
