"""The rules of the section `tuning`."""

from pipeline.recipes import search_space
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.settings import TransformSettings, VocabularySettings
from pipeline.recipes.task_rules import rules_of
from pipeline.recipes.views import segments, transform_settings, vocabulary_settings, with_values


def check_tuning(recipe: RecipeKeys) -> None:
    """Checks the section `tuning` together with the rest of a recipe.

    Trials have something to try, share one Transform graph, and each value fits the recipe.

    Raises:
        RecipeError: it does not.
    """
    space = recipe.tuning.space
    if recipe.tuning.trials and not space:
        raise RecipeError(
            "The recipe key 'tuning.space' must name at least one key if 'tuning.trials' is above "
            '0, such as "training.learning_rate" = [0.001, 0.003].'
        )
    for key, values in space.items():
        rules_of(recipe).check_searched(key)
        for value in search_space.examples(values):
            try:
                changed = with_values(recipe, {key: value})
            except RecipeError as error:
                raise RecipeError(
                    f"The recipe key 'tuning.space.{key}' cannot try {value!r}. {error}"
                ) from None
            if _shared_by_trials(changed) != _shared_by_trials(recipe):
                raise RecipeError(
                    f"The recipe key 'tuning.space.{key}' cannot try {value!r}: it needs other "
                    "features, but all trials share one Transform graph."
                )


def _shared_by_trials(
    recipe: RecipeKeys,
) -> tuple[TransformSettings, VocabularySettings, bool]:
    return transform_settings(recipe), vocabulary_settings(recipe), segments(recipe)
