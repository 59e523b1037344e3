"""What makes one epoch of a training better than another."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.metrics import registry
from pipeline.recipes.sections import TrainingConfig
from pipeline.training.trainer_outputs import CurvePoint


@dataclasses.dataclass(frozen=True)
class Selection:
    """The measure of the eval split that decides.

    Attributes:
        name: `loss`, or a metric of `pipeline.metrics`.
        lower_is_better: whether a smaller value is the better one.
    """

    name: str = "loss"
    lower_is_better: bool = True

    @classmethod
    def of_training(cls, config: TrainingConfig) -> "Selection":
        """Returns the one that a recipe chooses by `training.select_by`."""
        if config.select_by == "loss":
            return cls()
        kind = registry.metric_class(config.select_by)
        return cls(config.select_by, kind.lower_is_better)

    @property
    def log(self) -> str:
        """The name of the measure in the logs of Keras' callbacks."""
        return f"val_{self.name}"

    @property
    def label(self) -> str:
        """The measure's name for people."""
        return "eval loss" if self.name == "loss" else registry.LABELS[self.name]

    @property
    def mode(self) -> str:
        """Keras' word for the direction."""
        return "min" if self.lower_is_better else "max"

    def of(self, logs: Mapping[str, Any] | None) -> float:
        """Returns the measure from an epoch's logs; NaN if they do not have it."""
        return float((logs or {}).get(self.log, math.nan))

    def best(self, curve: Sequence[CurvePoint]) -> float:
        """Returns the best measure on the curve of a training that chose by it."""
        values = [
            point["eval_loss"] if self.name == "loss" else point.get("selected", math.nan)
            for point in curve
        ]
        finite = [value for value in values if math.isfinite(value)]
        return (min if self.lower_is_better else max)(finite, default=math.nan)

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value is better than another; any number is better than none."""
        if not math.isfinite(value):
            return False
        if than is None or math.isnan(than):
            return True
        return value < than if self.lower_is_better else value > than
