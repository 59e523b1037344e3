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

    # The metrics, in the order of the run's table. Paired bootstrap compares the model with its
    # baseline by each metric.
    metrics: tuple[str, ...] = (
        "bleu",
        "chrf",
        "placeholder_fidelity",
        "protected_fidelity",
        "unseen_copies",
        "exact_match",
    )
    # Bounds for the whole split.
    thresholds: ThresholdsConfig = ThresholdsConfig()
    # Bounds for the change from the last blessed model, if there is one.
    change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    # Divides the test split by each name: source_length, unknown_words, file, or one of
    # data.slice_features. `slice_thresholds` and `slice_change_thresholds` apply to each slice that
    # has at least `min_slice_size` pairs.
    slices: tuple[str, ...] = ()
    # The least number of pairs in a slice for its bounds to apply.
    min_slice_size: int = number(1, low=1)
    slice_thresholds: ThresholdsConfig = ThresholdsConfig()
    slice_change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    # An SQLite file for execution_accuracy, relative to the data folder.
    database: str = ""
    # The number of resamples for intervals and paired tests.
    bootstrap_samples: int = number(1000, low=10)

    @property
    def compares_with_last_blessed(self) -> bool:
        """Whether a change from the last blessed model has a bound.

        If so, the Evaluator decodes with that model too.
        """
        return bool(bounds(self.change_thresholds) or bounds(self.slice_change_thresholds))
