"""Measuring an exported language model on a user's text."""

import os

from pipeline.metrics import registry, scoring
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import score_tables
from pipeline.reporting.model_evaluation import Evaluation, EvaluationError, EvaluationRequest


def evaluate(
    recipe: Recipe, directory: str | os.PathLike[str], request: EvaluationRequest
) -> Evaluation:
    """Measures the perplexity of a text file, read as one stream.

    Args:
        recipe: the recipe that the model was trained with.
        directory: the SavedModel.
        request: the user's request.

    Raises:
        EvaluationError: the request is not for a language model.
        pipeline.common.errors.VerbatimError: the data or the model cannot be used.
    """
    from pipeline.evaluation import perplexity_of_text

    if request.metrics and request.metrics not in ("perplexity", "all"):
        raise EvaluationError(
            "A language model can only be measured by 'perplexity'; got --metrics "
            f"{request.metrics}."
        )
    if request.writes_outputs:
        raise EvaluationError(
            "--outputs is for models of pairs: a language model's evaluation writes no text."
        )
    results = perplexity_of_text.measure(request.data, directory, recipe)
    details = results["perplexity"].details
    words, unknown = details["words"], details["unknown_words"]
    lines = [score_tables.format_table({recipe.model.head: results})]
    lines += [f"{registry.LABELS[name]}: {result.signature}" for name, result in results.items()]
    lines.append(f"{words} words, line ends included, {unknown} of them unknown; model {directory}")
    facts = {
        "model": str(directory),
        "words": words,
        "unknown_words": unknown,
        "metrics": scoring.results_to_dict(results),
    }
    return Evaluation(lines, facts)
