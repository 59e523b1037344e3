"""The section `evaluation`."""

import dataclasses

from pipeline.recipes.fields import number
from pipeline.recipes.sections.metric_bounds import (
    ChangeThresholdsConfig,
    ThresholdsConfig,
    bounds,
)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """What is measured on the test split, and what a model must reach before it is pushed."""

    # In the order of the run's table. Paired bootstrap compares the model and its baseline on each.
    metrics: tuple[str, ...] = (
        "bleu",
        "chrf",
        "placeholder_fidelity",
        "protected_fidelity",
        "unseen_copies",
        "exact_match",
    )
    # For the whole split.
    thresholds: ThresholdsConfig = ThresholdsConfig()
    # Against the last blessed model, if there is one.
    change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    # Divides the test split by each name: one of SLICES or of data.slice_features. The two sections
    # below apply to each slice that has at least `min_slice_size` pairs.
    slices: tuple[str, ...] = ()
    # The fewest pairs of a slice that bounds apply to.
    min_slice_size: int = number(1, low=1)
    slice_thresholds: ThresholdsConfig = ThresholdsConfig()
    slice_change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    # An SQLite file for execution_accuracy, relative to the data folder.
    database: str = ""
    # The resamples of intervals and paired tests.
    bootstrap_samples: int = number(1000, low=10)

    @property
    def compares_with_last_blessed(self) -> bool:
        """Whether a change from the last blessed model has a bound.

        If so, the Evaluator decodes with that model too.
        """
        return bool(bounds(self.change_thresholds) or bounds(self.slice_change_thresholds))
