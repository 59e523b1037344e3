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
        last_epoch: whether the last epoch's weights are kept all the same.
    """

    name: str = "loss"
    lower_is_better: bool = True
    last_epoch: bool = False

    @classmethod
    def of_training(cls, config: TrainingConfig) -> "Selection":
        """Returns the one that a recipe chooses by `training.select_by` and `training.keep`."""
        last_epoch = config.keep == "last"
        if config.select_by == "loss":
            return cls(last_epoch=last_epoch)
        kind = registry.metric_class(config.select_by)
        return cls(config.select_by, kind.lower_is_better, last_epoch)

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

    def keeps_last(self, logs: Mapping[str, Any] | None) -> bool:
        """Whether an epoch is kept because it is the last one so far."""
        return self.last_epoch and math.isfinite((logs or {}).get("val_loss", 0.0))

    def of_curve(self, curve: Sequence[CurvePoint]) -> float:
        """Returns the measure of the weights that a training with this curve has kept."""
        values = [
            point["eval_loss"] if self.name == "loss" else point.get("selected", math.nan)
            for point in curve
        ]
        if self.last_epoch:
            return values[-1] if values else math.nan
        finite = [value for value in values if math.isfinite(value)]
        return (min if self.lower_is_better else max)(finite, default=math.nan)

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value is better than another; any number is better than none."""
        if not math.isfinite(value):
            return False
        if than is None or math.isnan(than):
            return True
        return value < than if self.lower_is_better else value > than
