"""From what runs leave behind to records: a training's figures, and tests between rows."""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks.records import convergence
from benchmarks.records.record import Origin, RowRecord, RunRecord, TestRecord, Value
from pipeline.metrics import registry, seed_test
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.reporting.facts import RunFacts, SystemFacts, metric_result

#: What a segmenting encoder is measured by, besides the metrics of its recipe.
_SEGMENTATION = ("word_f1", "boundary_f1")


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What a model made of the measured split; empty for a language model."""

    sources: list[str]
    references: list[str]
    texts: list[str]

    @classmethod
    def read(cls, path: pathlib.Path) -> "Outputs":
        """Returns those of a run's `outputs/NAME.jsonl`; empty where there is no such file."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        records = [json.loads(line) for line in lines]
        return cls(
            *([record[key] for record in records] for key in ("source", "reference", "text"))
        )

    @property
    def pairs(self) -> tuple[list[str], list[str]]:
        """Sources and references, which compared runs must share."""
        return self.sources, self.references


def run_record(facts: RunFacts, origin: Origin, seed: int, system: int = 0) -> RunRecord:
    """Returns the record of a training.

    Args:
        facts: what `verbatim run --json` wrote.
        origin: where they come from; its stack is completed from the facts.
        seed: of the training.
        system: the number of the model among those of the run.
    """
    of_system = facts["systems"][system]
    losses = [
        loss
        for point in of_system.get("curves") or []
        if (loss := point.get("eval_loss")) is not None
    ]
    return RunRecord(
        origin=dataclasses.replace(
            origin, stack={**origin.stack, **without_own_version(facts.get("versions") or {})}
        ),
        seed=seed,
        pairs=int((facts.get("counts") or {}).get("by_split", {}).get("test", 0)),
        epochs=max((point["epoch"] for point in of_system.get("curves") or []), default=0),
        updates=of_system.get("updates", 0),
        converged=convergence.has_converged(losses),
        minutes=of_system.get("seconds", 0.0) / 60,
        parameters=of_system.get("parameters", 0),
        metrics=metric_values(of_system),
        eval_losses=losses,
        recipe=recipe_digest(facts["recipe"]),
    )


def recipe_digest(tree: dict[str, Any]) -> str:
    """Returns a short digest of a recipe's keys: two recipes that differ in a key differ in it.

    The seed does not count, nor do texts for people, the folders of files, and keys with their
    defaults, since later versions have more of them. It is "" if this version has no longer all
    keys.

    Args:
        tree: the recipe as nested dicts.
    """
    try:
        recipe = recipe_from_dict(tree)
    except RecipeError:
        return ""
    keys: dict[str, Any] = {"name": recipe.name, "task": recipe.task}
    for section in dataclasses.fields(recipe):
        value = getattr(recipe, section.name)
        if not isinstance(value, str):
            own, default = (dataclasses.asdict(one) for one in (value, type(value)()))
            keys[section.name] = _differing(own, default)
    keys["training"].pop("seed", None)
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()[:12]


def _differing(own: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys whose values are no defaults; of nested dicts, likewise."""
    return {
        key: _differing(value, default[key])
        if isinstance(value, dict) and isinstance(default[key], dict)
        else _without_folder(value)
        for key, value in own.items()
        if value != default[key]
    }


def _without_folder(value: Any) -> Any:
    return os.path.basename(value) if isinstance(value, str) and os.path.isabs(value) else value


def without_own_version(versions: dict[str, str]) -> dict[str, str]:
    """Returns the versions of other people's packages: the commit says which ours is."""
    return {name: version for name, version in versions.items() if name != "verbatim-text"}


def metric_values(system: SystemFacts) -> dict[str, Value]:
    """Returns a system's metrics by name, those of the words that it found among them."""
    values = {}
    for name, facts in system.get("metrics", {}).items():
        result = metric_result(name, facts)
        values[name] = Value(
            result.value, result.low, result.high, result.unit, result.lower_is_better
        )
    found: Any = system.get("segmentation") or {}
    for name in _SEGMENTATION:
        if name in found:
            values[name] = Value(found[name], unit="share")
    return values


def tests(
    facts: RunFacts,
    metrics: Sequence[str],
    ours: Sequence[Outputs],
    theirs: Sequence[Outputs],
    against: str,
) -> list[TestRecord]:
    """Tests a row against another, over seeds and sentences.

    Args:
        facts: of one of the runs, for the way in which its recipe scores outputs.
        metrics: those of the table; a metric that needs more than the texts is left out.
        ours, theirs: the outputs of each seed.
        against: the name of the other row.

    Returns:
        A test for each metric; none where some run has other pairs than the others, or no pairs.
    """
    pairs = ours[0].pairs
    if not ours[0].texts or any(one.pairs != pairs for one in (*ours, *theirs)):
        return []
    names = [name for name in metrics if _can_be_tested(name)]
    if not names:
        return []
    scored_ours, scored_theirs = (
        [ScoredTexts(one.texts, one.references, one.sources) for one in row]
        for row in (ours, theirs)
    )
    options = ScoringOptions.of(recipe_from_dict(facts["recipe"]))
    compared_by_metric = seed_test.compare_over_seeds(names, scored_ours, scored_theirs, options)
    return [
        TestRecord(
            name,
            against,
            compared.difference,
            compared.low,
            compared.high,
            compared.p_value,
            compared.signature,
        )
        for name, compared in compared_by_metric.items()
    ]


def _can_be_tested(name: str) -> bool:
    if name not in registry.metric_names():
        return False
    kind = registry.metric_class(name)
    return not (kind.needs_scores or kind.needs_training_words)


def row_record(name: str, runs: Sequence[RunRecord], tested: Sequence[TestRecord]) -> RowRecord:
    """Returns a row, its runs ordered by seed."""
    return RowRecord(name, sorted(runs, key=lambda run: run.seed), list(tested))
