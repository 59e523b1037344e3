"""Measures an exported sequence-to-sequence model on a user's pairs."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.common import progress
from pipeline.metrics import all_references, blind_spots, registry, scoring, sql_execution
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.readers.formats import read_plan
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Reject
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import score_tables
from pipeline.reporting.model_evaluation import (
    Evaluation,
    EvaluationError,
    EvaluationRequest,
    model_for_many_texts,
)

if TYPE_CHECKING:
    from pipeline.readers.records import Pair
    from pipeline.recipes.sections import DataConfig

# Rejected records that are named one by one.
_NAMED_REJECTS = 5


def evaluate(
    recipe: Recipe, directory: str | os.PathLike[str], request: EvaluationRequest
) -> Evaluation:
    """Decodes a user's sources with an exported model and compares the outputs with the targets.

    Args:
        recipe: the recipe that the model was trained with.
        directory: the SavedModel.
        request: the user's request.

    Raises:
        EvaluationError: there is nothing to measure, or the model lacks what a metric needs.
        pipeline.common.errors.VerbatimError: the data or the model cannot be used.
    """
    from pipeline.features import training_counts

    counts = training_counts.read(str(directory))
    names, left_out = evaluated_metrics(recipe, request.metrics, counts is not None)
    for name in names:
        if counts is None and registry.metric_class(name).needs_training_words:
            raise EvaluationError(
                f"The metric '{name}' needs the counts of the training text, which the model "
                f"{directory} does not contain: export it again, or leave the metric out."
            )
    data = evaluated_data(recipe.data, request)
    if data.units == "words":
        # The recipe's limits are for training; the model has a limit of its own.
        data = dataclasses.replace(
            data, max_tokens=recipe.decoding.length_buckets[-1], max_characters=sys.maxsize
        )
    options = ScoringOptions.of(recipe)
    if request.database:
        options = dataclasses.replace(options, database=request.database)
    for name in names:
        # Missing counts are reported before the model is loaded.
        registry.create_metric(name, options)
    if "execution_accuracy" in names:
        sql_execution.executor_of(options.database)
    pairs, rejected = _read(request.data, data)
    model = model_for_many_texts(directory)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    features = dict(zip(data.source_features, zip(*(pair.features for pair in pairs))))
    scores = None
    if any(registry.metric_class(name).needs_scores for name in names):
        # Before the outputs, which take longer: a model may lack the signature.
        scores = list(zip(*model.score(sources, targets, features)))
    answers = model.predict(sources, features=features)
    texts = [answer["text"] for answer in answers]
    scored = ScoredTexts(texts, targets, sources, counts, scores)
    for sentence in blind_spots.blind_spots(names, scored, options, "data.target_language"):
        progress.warn(sentence)
    results = scoring.score(names, scored, options)
    by_source = None if features else all_references.score(names, [scored], options)
    if by_source:
        results[all_references.NAME] = by_source[0][0]
    by_system = {model.facts.get("head", "model"): results}
    lines = [score_tables.format_table(by_system)]
    if breakdowns := score_tables.format_breakdowns(by_system):
        lines.append(breakdowns)
    lines.append(f"{len(pairs)} pairs, {rejected} left out, model {directory}")
    if data.train_files:
        lines.append(
            f"The pairs are those of the recipe's data.test_files: {'; '.join(data.train_files)}"
        )
    if left_out:
        lines.append(
            "Not measured, because the model keeps no counts of its training text: "
            f"{', '.join(left_out)}"
        )
    facts = {
        "model": str(directory),
        "pairs": len(pairs),
        "rejected": rejected,
        "metrics": scoring.results_to_dict(results),
    }
    return Evaluation(lines, facts, texts)


def _read(path: str, data: "DataConfig") -> tuple[list["Pair"], int]:
    """Returns the pairs of a data path, and how many records were rejected."""
    pairs, rejected = [], []
    for record in read_plan(plan_inputs(path, data), data):
        if isinstance(record, Reject):
            rejected.append(record)
        else:
            pairs.append(record)
    for reject in rejected[:_NAMED_REJECTS]:
        progress.warn(f"{reject.file}:{reject.line} left out: {reject.reason}")
    if len(rejected) > _NAMED_REJECTS:
        progress.warn(f"and {len(rejected) - _NAMED_REJECTS} more left out.")
    if not pairs:
        reason = "it holds no records"
        if rejected:
            reason = f"none of its {len(rejected)} records can be used"
        raise EvaluationError(f"No pairs of {path} can be measured: {reason}.")
    return pairs, len(rejected)


def evaluated_data(data: "DataConfig", request: EvaluationRequest) -> "DataConfig":
    """Returns the data section with which pairs are read to be measured.

    It is that of training, but for what chooses or drops pairs. A folder stands for the files that
    the recipe names for its test split, if it names any.
    """
    files = data.test_files if os.path.isdir(request.data) else ()
    format_ = data.format if files and request.format == "auto" else request.format
    return dataclasses.replace(
        data,
        format=format_,
        drop_identical=False,
        train_files=files,
        eval_files=(),
        test_files=(),
        corpora=(),
        slice_features=(),
    )


def evaluated_metrics(
    recipe: Recipe, named: str | None, has_counts: bool
) -> tuple[Sequence[str], Sequence[str]]:
    """Returns the metrics to measure an exported model by, and those that are left out.

    Args:
        recipe: the recipe that the model was trained with.
        named: the metrics that the user names; None for the recipe's.
        has_counts: whether the model keeps the counts of its training text; where it does not, the
            recipe's metrics that need them are left out.
    """
    if named:
        return registry.expand_metric_names(named), []
    names: dict[bool, list[str]] = {True: [], False: []}
    for name in recipe.evaluation.metrics:
        names[registry.metric_class(name).needs_training_words and not has_counts].append(name)
    return names[False], names[True]
