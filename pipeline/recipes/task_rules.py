"""Rules for a recipe that depend on its task: one module per task, chosen here.

What a task does is in `pipeline.tasks`.
"""

from typing import Protocol

from pipeline.recipes import language_model_rules, seq2seq_rules
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.settings import TaskTextSettings


class TaskRules(Protocol):
    """The functions that the module of each task has."""

    def check_together(self, recipe: RecipeKeys) -> None:
        """Checks a recipe of the task by the rules that span several keys.

        Raises:
            RecipeError: keys do not fit together.
        """

    def check_searched(self, key: str) -> None:
        """Refuses a key of `SEARCHED_SECTIONS` that `tuning.space` cannot name.

        Raises:
            RecipeError: no model of the task reads the key.
        """

    def text_settings(self, recipe: RecipeKeys) -> TaskTextSettings:
        """Returns the part of `pipeline.recipes.views.text_settings` that only the task has."""

    def composes(self, recipe: RecipeKeys) -> bool:
        """Whether the vectors of source words are composed of their characters."""

    def compares_with_last_blessed(self, recipe: RecipeKeys) -> bool:
        """Whether the Evaluator needs the last blessed model too."""


_RULES: dict[str, TaskRules] = {
    "seq2seq": seq2seq_rules,
    "language_model": language_model_rules,
}


def rules_of(recipe: RecipeKeys) -> TaskRules:
    """Returns the module with the rules of a recipe's task."""
    return _RULES[recipe.task]


def compares_with_last_blessed(recipe: RecipeKeys) -> bool:
    """Whether the Evaluator of a recipe needs the last blessed model too."""
    return rules_of(recipe).compares_with_last_blessed(recipe)
