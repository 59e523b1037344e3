"""The sections of `evaluation` that have a key for each metric: numbers that a model must reach."""

import dataclasses
from collections.abc import Callable
from typing import Any

from pipeline.recipes.choices import METRIC_RANGES
from pipeline.recipes.fields import number


def _metric_keys(name: str, make_field: Callable[[float | None], float | None]) -> Any:
    """Returns a frozen dataclass with a key for each metric that the Evaluator measures."""
    fields = [(metric, float | None, make_field(high)) for metric, high in METRIC_RANGES.items()]
    section = dataclasses.make_dataclass(name, fields, frozen=True)
    section.__module__ = __name__
    return section


# No type checker can see the fields that `METRIC_RANGES` defines, hence Any.
_Thresholds: Any = _metric_keys("_Thresholds", lambda high: number(None, low=0.0, high=high))
_ChangeThresholds: Any = _metric_keys("_ChangeThresholds", lambda high: number(None))


class ThresholdsConfig(_Thresholds):
    """What a model must reach on the test split before it is pushed.

    A bound is a minimum; for error rates and perplexity it is a maximum. Each metric of
    `pipeline.metrics` that the Evaluator measures has a key. A key without a value sets no bound.
    """


class ChangeThresholdsConfig(_ChangeThresholds):
    """How much better than the last blessed model a model must be, by metric.

    A bound is the least difference: -0.5 allows a loss of 0.5. For error rates and perplexity it is
    the greatest difference: 0.5 allows a rise of 0.5. Each bound is in the metric's own unit.
    """


def bounds(section: ThresholdsConfig | ChangeThresholdsConfig) -> dict[str, float]:
    """Returns the bounds of a section that have a value, by metric."""
    return {name: bound for name, bound in vars(section).items() if bound is not None}
