"""The facts of a run: its results, as JSON.

Every key may be missing, and its part of the page is then left out.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict, cast

from pipeline.evaluation.perplexity_of_text import Extremes, FrequencyPoint
from pipeline.export.served_model import Answer
from pipeline.metrics import registry
from pipeline.metrics.base import MetricResult
from pipeline.metrics.segmentation_scores import SegmentationScores
from pipeline.training.trainer_outputs import CurvePoint


class MetricFacts(TypedDict, total=False):
    """What `pipeline.metrics.base.MetricResult.to_dict` returns; `value` is always there."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    signature: str
    details: dict[str, Any]
    unit: str
    lower_is_better: bool


class LengthFacts(TypedDict, total=False):
    """Quality on the references of some length: `bleu`, or `f1` of words."""

    words: str
    bleu: float | None
    reference_length: int
    f1: float | None
    reference_words: int


class FrequencyFacts(TypedDict):
    """F1 of the words that training saw so often."""

    seen: str
    f1: float | None
    reference_words: int


class SystemFacts(TypedDict, total=False):
    """One model.

    Attributes:
        name: its head, or in a comparison its run.
        metrics: by name.
        curves: a point for each epoch.
        parameters, seconds, updates: of the training.
        by_length: BLEU by length of the reference.
        f1_by_length: F1 of words by length of the reference.
        by_frequency: F1 of words by their frequency in training.
        log_perplexity_by_frequency: the same of a language model.
        segmentation: how well it found words; None for a model that is given words.
    """

    name: str
    metrics: dict[str, MetricFacts]
    curves: list[CurvePoint]
    parameters: int
    seconds: float
    updates: int
    by_length: list[LengthFacts]
    f1_by_length: list[LengthFacts]
    by_frequency: list[FrequencyFacts]
    log_perplexity_by_frequency: list[FrequencyPoint]
    segmentation: SegmentationScores | None


class Sample(TypedDict, total=False):
    """The systems' outputs for one text.

    Attributes:
        source, reference: the pair.
        gain: by how much the first system's chrF is above the second's.
        outputs: by system; of an answer only the text must be there.
    """

    source: str
    reference: str
    gain: float
    outputs: dict[str, Answer]


class HeatMap(TypedDict, total=False):
    """Where a model looked, as of an `Answer`; `system` is its name."""

    system: str
    source_tokens: list[str]
    tokens: list[str]
    attention: list[list[float]]
    copy_probability: list[float]
    copied_from: list[int]


class SliceFacts(TypedDict):
    """The Evaluator's results on one slice of the test split.

    Attributes:
        slice: its name.
        n: how many pairs it has.
        metrics, last_blessed: the values of the model, and of the last blessed one, by metric.
    """

    slice: str
    n: int
    metrics: dict[str, float | None]
    last_blessed: dict[str, float | None]


class Counts(TypedDict, total=False):
    """How many records were read, kept and rejected.

    Attributes:
        read, kept, rejected: of all records; a language model's text has lines, all kept.
        by_reason: how many were rejected for each reason.
        by_split: how many pairs each split has.
        rejected_by_given_split: of the files that the recipe names for a split.
        words_by_split: of a language model's text.
        recombined: how many new pairs were added to the training split.
    """

    read: int
    kept: int
    rejected: int
    by_reason: dict[str, int]
    by_split: dict[str, int]
    rejected_by_given_split: dict[str, int]
    words_by_split: dict[str, int]
    recombined: int


class Stage(TypedDict, total=False):
    """A component of a run, and how long it took.

    Attributes:
        name, seconds: always there.
        cached: whether its outputs are those of an earlier run.
    """

    name: str
    seconds: float
    cached: bool


class RecipeDifference(TypedDict):
    """A key in which the recipes of several runs differ, and its value in each."""

    key: str
    values: list[str]


class RunFacts(TypedDict, total=False):
    """All results of a run, or of a comparison of several.

    Attributes:
        title: the page's.
        recipe: the recipe as nested dicts, with the values that a search found.
        tuning: what `pipeline.recipes.search_space.read_found` returns; empty without a search.
        versions: by package.
        counts: of the data.
        systems: the run's own model first, its baseline second.
        comparison: by metric the p-value of the first system against the second.
        comparisons: for more than two systems: by system the p-values of the first against it.
        samples: texts of the test split with the systems' outputs.
        wins, losses: where the first system gains or loses most against the second.
        sentences: the same of two language models; empty otherwise.
        slices: quality by slice of the test split.
        note: one sentence on how far the systems can be compared.
        recipe_differences: of several runs.
        heat_maps: attention on a few texts.
        blessed: whether the model may be pushed; None where nothing was decided.
        blessing_reason: one sentence.
        stages: the components that ran.
        seconds: of the whole run.
        paths: of what the run wrote, by kind.
    """

    title: str
    recipe: dict[str, Any]
    tuning: Mapping[str, Any]
    versions: dict[str, str]
    counts: Counts
    systems: list[SystemFacts]
    comparison: dict[str, float | None]
    comparisons: dict[str, dict[str, float | None]]
    samples: list[Sample]
    wins: list[Sample]
    losses: list[Sample]
    sentences: Extremes
    slices: list[SliceFacts]
    note: str
    recipe_differences: list[RecipeDifference]
    heat_maps: list[HeatMap]
    blessed: bool | None
    blessing_reason: str
    stages: list[Stage]
    seconds: float
    paths: dict[str, str]


#: Defaults of parts that the facts lack.
DEFAULTS: dict[str, Any] = {
    "title": "Verbatim run",
    "recipe": {},
    "tuning": {},
    "versions": {},
    "counts": {},
    "systems": [],
    "comparison": {},
    "comparisons": {},
    "samples": [],
    "wins": [],
    "losses": [],
    "sentences": {},
    "heat_maps": [],
    "slices": [],
    "blessed": None,
    "blessing_reason": "",
    "note": "",
    "recipe_differences": [],
    "stages": [],
}


def completed(facts: RunFacts) -> RunFacts:
    """Returns facts as JSON has them, with the defaults of the parts that they lack."""
    return cast(RunFacts, _plain({**DEFAULTS, **facts}))


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it.

    NumPy's numbers and arrays become Python's, bytes become text, and NaN becomes None.
    """
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        # A lone surrogate cannot be written as UTF-8.
        return value.encode("utf-8", errors="replace").decode("utf-8")
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def metric_results(system: SystemFacts) -> dict[str, MetricResult]:
    """Returns a system's metrics by name."""
    return {name: metric_result(name, facts) for name, facts in system["metrics"].items()}


def metric_result(name: str, facts: MetricFacts) -> MetricResult:
    """Returns a metric; what its facts leave out is as for every metric of that name."""
    unit, lower_is_better = registry.unit_and_direction(name)
    return MetricResult(
        name=name,
        value=facts.get("value"),
        low=facts.get("low"),
        high=facts.get("high"),
        signature=facts.get("signature") or "",
        details=facts.get("details") or {},
        unit=facts.get("unit") or unit,
        lower_is_better=facts.get("lower_is_better", lower_is_better),
    )


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields (dotted key, value as text) of nested dicts, such as a recipe."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
