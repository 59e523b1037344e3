"""The rules that span several keys of a recipe, whatever its task."""

import re

from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.task_rules import rules_of


def check_together(recipe: RecipeKeys) -> None:
    """Checks a recipe by the rules that span several keys, and its name.

    Raises:
        RecipeError: keys do not fit together.
    """
    # It names folders, the pipeline, and the model in requests. ML Metadata and Kubeflow would
    # split a name at a dot.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", recipe.name):
        raise RecipeError(
            "The recipe key 'name' (by default the file's name) must consist of at most 100 "
            f"letters, digits, '-' and '_'; got {recipe.name!r}."
        )
    rules_of(recipe).check_together(recipe)
