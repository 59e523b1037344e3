"""Rules that span several keys of a recipe, whatever its task."""

import re

from pipeline.recipes.fields import RecipeError
from pipeline.recipes.task_rules import rules_of


def check_together(recipe):
    """Checks a recipe by the rules that span several keys, and the name's.

    Raises:
        RecipeError: keys do not fit together.
    """
    # It names folders, the pipeline, and the model in requests; a dot would part it in ML Metadata
    # and Kubeflow.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", recipe.name):
        raise RecipeError(
            "The recipe key 'name' (by default the file's name) must be letters, digits, '-' and "
            "'_' alone, at most 100; "
            f"got {recipe.name!r}."
        )
    rules_of(recipe).check_together(recipe)
