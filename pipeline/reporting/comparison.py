"""Several finished runs side by side, as the facts of one page.

The facts come from what each run left in its folder. Only the models of the runs are compared, not
their baselines. Where the test sets agree, each run is compared with the first by paired bootstrap
over `outputs/*.jsonl`; nothing is decoded again.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.common import progress
from pipeline.common.errors import VerbatimError
from pipeline.metrics import registry, scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.reporting import report, results
from pipeline.reporting.facts import RecipeDifference, RunFacts, SystemFacts, flatten
from pipeline.reporting.outputs import (
    OUTPUTS_FOLDER,
    OutputRecord,
    outputs_path,
    read_outputs,
)


class ComparisonError(VerbatimError, ValueError):
    """Runs that cannot be compared; its message is one sentence for the user."""


def compare(
    run_directories: Sequence[str | os.PathLike[str]], bootstrap_samples: int = 1000
) -> RunFacts:
    """Gathers the facts of several runs.

    Args:
        run_directories: folders that `verbatim run --output` wrote, two at least.
        bootstrap_samples: resampled test sets behind each p-value; 0 for no p-values.

    Returns:
        The facts of the page, with a system for each run, named after its folder.

    Raises:
        ComparisonError: fewer than two runs, or a run without a model.
        pipeline.reporting.outputs.OutputsError: outputs that cannot be read.
        pipeline.reporting.page.ReportError: a folder holds no run.
    """
    if len(run_directories) < 2:
        raise ComparisonError("A comparison needs two runs or more.")
    if bootstrap_samples < 0:
        raise ComparisonError(
            f"The number of resampled test sets must be 0 or more; got {bootstrap_samples}."
        )
    runs = [report.load_facts(directory) for directory in run_directories]
    for directory, run in zip(run_directories, runs):
        if not run.get("systems"):
            raise ComparisonError(f"The run {directory} has no model: it cannot be compared.")
    names = _names(run_directories)
    systems: list[SystemFacts] = [
        {**run["systems"][0], "name": name} for name, run in zip(names, runs)
    ]
    outputs = [
        read_outputs(
            outputs_path(pathlib.Path(directory) / OUTPUTS_FOLDER, run["systems"][0]["name"])
        )
        for directory, run in zip(run_directories, runs)
    ]
    facts: RunFacts = {
        "title": f"{', '.join(names[:-1])} and {names[-1]}",
        "systems": systems,
        "versions": runs[0].get("versions", {}),
        "recipe_differences": _recipe_differences([run.get("recipe", {}) for run in runs]),
    }
    known = [records for records in outputs if records is not None]
    if len(known) < len(outputs):
        note = "Not every run has kept what it said to its test split, so no difference was tested."
    elif any(_test_set(records) != _test_set(known[0]) for records in known[1:]):
        note = (
            "The runs were measured on different test sets: their numbers do not compare, and "
            "no difference was tested."
        )
    else:
        note = f"The runs were measured on the same {len(known[0])} pairs."
        facts.update(_tested(names, runs, known, bootstrap_samples))
    facts["note"] = note
    return facts


def _names(directories: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns a name for each run: its folder's, with as many folders above as tell them apart."""
    parts = [pathlib.Path(os.path.abspath(directory)).parts for directory in directories]
    if len(set(parts)) < len(parts):
        raise ComparisonError("A run is named twice: give different folders.")
    depth = 1
    while len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    return ["/".join(part[-depth:]) for part in parts]


def _test_set(records: Sequence[OutputRecord]) -> list[tuple[str, str]]:
    return [(record["source"], record["reference"]) for record in records]


def _tested(
    names: Sequence[str],
    runs: Sequence[RunFacts],
    outputs: Sequence[Sequence[OutputRecord]],
    samples: int,
) -> RunFacts:
    """Returns p-values against the first run, and its largest wins and losses on the second."""
    recipe = runs[0].get("recipe", {})
    data, evaluation = recipe.get("data", {}), recipe.get("evaluation", {})
    options = ScoringOptions(
        language=data.get("target_language", "en"),
        tokenization=data.get("tokenization", "text"),
        placeholders=data.get("placeholders", DEFAULT_PLACEHOLDERS),
        placeholder_patterns=data.get("placeholder_patterns", ()),
        database=evaluation.get("database") or None,
        bootstrap_samples=samples,
    )
    sources, references = zip(*_test_set(outputs[0]))
    texts = [
        ScoredTexts([record["text"] for record in records], references, sources)
        for records in outputs
    ]
    comparisons: dict[str, dict[str, float | None]] = {}
    metrics = [name for name in runs[0]["systems"][0]["metrics"] if _testable(name, options)]
    for name, run, of_run in zip(names[1:], runs[1:], texts[1:]):
        shared = [metric for metric in metrics if metric in run["systems"][0]["metrics"]]
        if not samples or not shared:
            continue
        progress.say(f"Testing {name} against {names[0]}, {samples} bootstrap samples")
        compared = scoring.paired_bootstrap(shared, of_run, texts[0], options)
        comparisons[name] = {metric: result.p_value for metric, result in compared.items()}
    answers = dict(zip(names[:2], outputs[:2]))
    wins, losses = results.extreme_samples(sources, references, answers, options)
    return {"comparisons": comparisons, "wins": wins, "losses": losses}


def _testable(name: str, options: ScoringOptions) -> bool:
    """Whether a metric can be measured on the outputs alone.

    It cannot with training text, a model's scores, or a database that is gone.
    """
    metric = registry.metric_class(name)
    if name not in registry.METRICS or metric.needs_training_words or metric.needs_scores:
        return False
    return name != "execution_accuracy" or os.path.isfile(options.database or "")


def _recipe_differences(recipes: Sequence[Mapping[str, Any]]) -> list[RecipeDifference]:
    """Returns the keys in which recipes differ; `name` and `description` say nothing."""
    flat = [dict(flatten(recipe)) for recipe in recipes]
    keys = [
        key
        for key in dict.fromkeys(key for recipe in flat for key in recipe)
        if key not in ("name", "description")
    ]
    rows: list[RecipeDifference] = [
        {"key": key, "values": [recipe.get(key, "–") for recipe in flat]} for key in keys
    ]
    return [row for row in rows if len(set(row["values"])) > 1]
