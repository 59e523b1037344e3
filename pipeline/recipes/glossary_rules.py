"""The rules about glossaries, for the task `seq2seq`: `decoding.glossary`, `data.term_share`."""

from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys


def check_glossary(recipe: RecipeKeys) -> None:
    """Checks that the model can write what its glossary says, and that a metric has a glossary.

    Raises:
        RecipeError: keys do not fit together.
    """
    for key, is_set in (
        ("decoding.glossary", bool(recipe.decoding.glossary)),
        ("data.term_share", recipe.data.term_share > 0),
    ):
        if is_set and recipe.data.source_features:
            raise RecipeError(
                f"The recipe key '{key}' must not be set where 'data.source_features' names tags: "
                "a term is one token, but each of its words has a tag."
            )
    if recipe.data.term_share and recipe.lexicon.kind == "none":
        raise RecipeError(
            "The recipe key 'data.term_share' needs a lexicon, which says what words mean: set "
            "'lexicon.kind' to learned, manual or hybrid."
        )
    if not recipe.decoding.glossary:
        if "term_fidelity" in recipe.evaluation.metrics:
            raise RecipeError(
                "The recipe key 'decoding.glossary' must name a glossary: the metric "
                "'term_fidelity' looks for its terms."
            )
        return
    if not recipe.decoding.keep_protected:
        raise RecipeError("The recipe key 'decoding.glossary' needs 'decoding.keep_protected'.")
