"""A recipe: one typed, frozen dataclass tree with all settings of a run."""

import dataclasses
import json
from typing import Any, TypeVar

from pipeline.recipes.fields import build
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.rules import check_together
from pipeline.recipes.sections import TuningConfig
from pipeline.recipes.tuning_rules import check_tuning

_Section = TypeVar("_Section")


@dataclasses.dataclass(frozen=True)
class Recipe(RecipeKeys):
    """All settings of a run, checked to fit together.

    Raises:
        RecipeError: they do not.
    """

    def __post_init__(self) -> None:
        check_together(self)
        check_tuning(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns the recipe as plain dicts, lists and scalars.

        `tuning` is missing if it has its defaults, so that models trained before that section
        existed are still found in the cache.
        """
        tree: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        if self.tuning == TuningConfig():
            del tree["tuning"]
        return tree

    def to_json(self) -> str:
        """Returns the recipe as one JSON string, the form that TFX components take."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Recipe":
        """Reads what `to_json` wrote."""
        return recipe_from_dict(json.loads(text))


def recipe_from_dict(tree: Any) -> Recipe:
    """Builds a `Recipe` from nested dicts, checking every key and value.

    Raises:
        RecipeError: an unknown key or impossible value; the sentence names the key.
    """
    return build(Recipe, tree, prefix="")


def section_from_json(section_class: type[_Section], text: str) -> _Section:
    """Reads one section of a recipe, such as a `DataConfig`, from JSON.

    Raises:
        RecipeError: an unknown key or impossible value.
    """
    return build(section_class, json.loads(text), prefix="")
