"""Several finished runs side by side, as the facts of one page.

The facts come from what each run left in its folder. Only the models of the runs are compared, not
their baselines. Runs that differ only in `training.seed` are one system: its numbers are means.
Where the test sets agree, each system is compared with the first by paired bootstrap over
`outputs/*.jsonl`, over sentences and seeds; nothing is decoded again.
"""

import dataclasses
import os
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.common import progress
from pipeline.common.errors import VerbatimError
from pipeline.metrics import registry, seed_test
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.reporting import report, results
from pipeline.reporting.facts import (
    MetricFacts,
    RecipeDifference,
    RunFacts,
    SystemFacts,
    flatten,
)
from pipeline.reporting.outputs import (
    OUTPUTS_FOLDER,
    OutputRecord,
    outputs_path,
    read_outputs,
)
from pipeline.reporting.score_tables import DEVIATION

#: Said where figures of outputs are compared: other toolkits leave the unknown word in.
UNKNOWN_BANNED = (
    "Outputs hold no [UNK]: decoding takes the next best word instead "
    "(decoding.replace_unknown = none), which systems that write [UNK] do not."
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
        raise ComparisonError("A comparison needs at least two runs.")
    if bootstrap_samples < 0:
        raise ComparisonError(
            f"The number of resampled test sets must be 0 or more; got {bootstrap_samples}."
        )
    runs = [report.load_facts(directory) for directory in run_directories]
    for directory, run in zip(run_directories, runs):
        if not run.get("systems"):
            raise ComparisonError(f"The run {directory} has no model: it cannot be compared.")
    outputs = [
        read_outputs(
            outputs_path(pathlib.Path(directory) / OUTPUTS_FOLDER, run["systems"][0]["name"])
        )
        for directory, run in zip(run_directories, runs)
    ]
    groups = _groups(_names(run_directories), runs, outputs)
    names = [group.name for group in groups]
    facts: RunFacts = {
        "title": " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))),
        "systems": [_mean_system(group) for group in groups],
        "versions": runs[0].get("versions", {}),
        "recipe_differences": _recipe_differences(
            [group.runs[0].get("recipe", {}) for group in groups]
        ),
    }
    known = [records for records in outputs if records is not None]
    if len(known) < len(outputs):
        note = "Not every run has kept its outputs for the test split, so no difference was tested."
    elif any(_test_set(records) != _test_set(known[0]) for records in known[1:]):
        note = (
            "The runs were measured on different test sets: their numbers are not comparable, and "
            "no difference was tested."
        )
    else:
        note = f"The runs were measured on the same {len(known[0])} pairs."
        facts.update(_tested(groups, bootstrap_samples))
    notes = [note, *(_seed_note(group) for group in groups if len(group.runs) > 1)]
    if any(_bans_unknown(run) for run in runs):
        notes.append(UNKNOWN_BANNED)
    facts["note"] = " ".join(notes)
    return facts


@dataclasses.dataclass(frozen=True)
class _Group:
    """Runs that are one system: one run, or several that differ in `training.seed` alone.

    Attributes:
        name: of the first run's folder, with the number of seeds where there are several.
        runs: their facts.
        outputs: the outputs of each for the test split; None if they were not kept.
    """

    name: str
    runs: list[RunFacts]
    outputs: list[list[OutputRecord] | None]


def _groups(
    names: Sequence[str],
    runs: Sequence[RunFacts],
    outputs: Sequence[list[OutputRecord] | None],
) -> list[_Group]:
    """Returns the systems, in the order of their first runs."""
    groups: dict[Any, _Group] = {}
    for name, run, records in zip(names, runs, outputs):
        keys = dict(flatten(run.get("recipe", {})))
        seed = keys.pop("training.seed", None)
        for key in ("name", "description"):
            keys.pop(key, None)
        test_set = None if records is None else tuple(_test_set(records))
        system: Any = (tuple(sorted(keys.items())), run["systems"][0]["name"], test_set)
        if system in groups and (seed is None or seed in _seeds(groups[system])):
            # A repetition, not another seed.
            system = (system, name)
        group = groups.setdefault(system, _Group(name, [], []))
        group.runs.append(run)
        group.outputs.append(records)
    return [
        dataclasses.replace(group, name=f"{group.name} ({len(group.runs)} seeds)")
        if len(group.runs) > 1
        else group
        for group in groups.values()
    ]


def _seeds(group: _Group) -> list[Any]:
    return [dict(flatten(run.get("recipe", {}))).get("training.seed") for run in group.runs]


def _seed_note(group: _Group) -> str:
    seeds = ", ".join(map(str, _seeds(group)))
    return f"{group.name}: means over the runs with training.seed {seeds}."


def _bans_unknown(run: RunFacts) -> bool:
    recipe = run.get("recipe", {})
    if recipe.get("task") == "language_model":
        return False
    return bool(recipe.get("decoding", {}).get("replace_unknown") == "none")


def _mean_system(group: _Group) -> SystemFacts:
    """Returns the facts of a group's first model, with the means of its metrics over the seeds."""
    first: SystemFacts = {**group.runs[0]["systems"][0], "name": group.name}
    if len(group.runs) == 1:
        return first
    metrics: dict[str, MetricFacts] = {}
    for name, facts in first["metrics"].items():
        of_seeds = [run["systems"][0]["metrics"].get(name, {}) for run in group.runs]
        values = [one.get("value") for one in of_seeds]
        known = [value for value in values if value is not None]
        if len(known) < len(group.runs):
            continue
        metrics[name] = {
            **facts,
            "value": statistics.fmean(known),
            "low": None,
            "high": None,
            "details": {DEVIATION: statistics.stdev(known), "seed_values": known},
        }
    first["metrics"] = metrics
    return first


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


def _tested(groups: Sequence[_Group], samples: int) -> RunFacts:
    """Returns p-values against the first system, and its largest wins and losses on the second."""
    recipe = groups[0].runs[0].get("recipe", {})
    data, evaluation = recipe.get("data", {}), recipe.get("evaluation", {})
    options = ScoringOptions(
        language=data.get("target_language", "en"),
        tokenization=data.get("tokenization", "text"),
        placeholders=data.get("placeholders", DEFAULT_PLACEHOLDERS),
        placeholder_patterns=data.get("placeholder_patterns", ()),
        rare_words=data.get("rare_words", "cut"),
        database=evaluation.get("database") or None,
        glossary=recipe.get("decoding", {}).get("glossary") or None,
        bootstrap_samples=samples,
    )
    outputs = [[records or [] for records in group.outputs] for group in groups]
    sources, references = zip(*_test_set(outputs[0][0]))
    texts = [
        [ScoredTexts([record["text"] for record in run], references, sources) for run in of_group]
        for of_group in outputs
    ]
    comparisons: dict[str, dict[str, float | None]] = {}
    first = groups[0].runs[0]["systems"][0]["metrics"]
    metrics = [name for name in first if _testable(name, options)]
    for group, of_group in zip(groups[1:], texts[1:]):
        shared = [
            name
            for name in metrics
            if all(name in run["systems"][0]["metrics"] for run in group.runs)
        ]
        if not samples or not shared:
            continue
        progress.say(f"Testing {group.name} against {groups[0].name}, {samples} bootstrap samples")
        compared = seed_test.compare_over_seeds(shared, of_group, texts[0], options)
        comparisons[group.name] = {metric: result.p_value for metric, result in compared.items()}
    if len(groups) == 1:
        return {"comparisons": {}}
    # Of several seeds, the first run's answers.
    answers = {group.name: records[0] for group, records in zip(groups[:2], outputs)}
    wins, losses = results.extreme_samples(sources, references, answers, options)
    return {"comparisons": comparisons, "wins": wins, "losses": losses}


def _testable(name: str, options: ScoringOptions) -> bool:
    """Whether a metric can be measured on the outputs alone.

    It cannot with training text, a model's scores, or a database or glossary that is gone.
    """
    metric = registry.metric_class(name)
    if name not in registry.METRICS or metric.needs_training_words or metric.needs_scores:
        return False
    needed = {"execution_accuracy": options.database, "term_fidelity": options.glossary}
    return name not in needed or os.path.isfile(needed[name] or "")


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
