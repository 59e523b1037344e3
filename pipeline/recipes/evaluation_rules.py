"""The rules of the section `evaluation`, for the task `seq2seq`."""

from pipeline.recipes.choices import METRICS, SLICES
from pipeline.recipes.fields import RecipeError, suggestion
from pipeline.recipes.sections import DataConfig, EvaluationConfig
from pipeline.recipes.sections.metric_bounds import bounds


def check_evaluation(evaluation: EvaluationConfig, data: DataConfig) -> None:
    """Checks metrics, bounds and slices.

    Raises:
        RecipeError: keys do not fit together.
    """
    if not evaluation.metrics:
        raise RecipeError("The recipe key 'evaluation.metrics' must name at least one metric.")
    for name in evaluation.metrics:
        if name not in METRICS:
            raise RecipeError(
                "The recipe key 'evaluation.metrics' names an unknown metric "
                f"'{name}'{suggestion(name, METRICS)} The metrics are: {', '.join(METRICS)}."
            )
    for section in (
        "thresholds",
        "change_thresholds",
        "slice_thresholds",
        "slice_change_thresholds",
    ):
        bounded = bounds(getattr(evaluation, section))
        for name in bounded:
            if name not in evaluation.metrics:
                raise RecipeError(
                    f"The recipe key 'evaluation.{section}.{name}' needs '{name}' among "
                    "'evaluation.metrics': a metric that is not measured cannot have a bound."
                )
        if bounded and section.startswith("slice_") and not evaluation.slices:
            raise RecipeError(
                f"The recipe key 'evaluation.{section}.{next(iter(bounded))}' needs "
                "'evaluation.slices': name the slices."
            )
    known = (*SLICES, *data.slice_features)
    for name in evaluation.slices:
        if name not in known:
            raise RecipeError(
                "The recipe key 'evaluation.slices' names an unknown slice "
                f"'{name}'{suggestion(name, known)} It can name {', '.join(known)}; a column of "
                "the data must be named in 'data.slice_features' too."
            )
    if "execution_accuracy" in evaluation.metrics and not evaluation.database:
        raise RecipeError(
            "The recipe key 'evaluation.database' must name an SQLite file: the metric "
            "'execution_accuracy' runs queries on it."
        )
