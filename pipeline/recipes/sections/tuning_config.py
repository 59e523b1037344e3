"""The section `tuning`, and the sections whose keys it can search."""

import dataclasses
from typing import Any

from pipeline.recipes import search_space
from pipeline.recipes.fields import choice, number, read_by
from pipeline.recipes.sections.model_config import ModelConfig
from pipeline.recipes.sections.training_config import TrainingConfig

#: The sections whose keys can be searched.
SEARCHED_SECTIONS: dict[str, type] = {"model": ModelConfig, "training": TrainingConfig}


def _read_space(key: str, tree: Any) -> search_space.Space:
    return search_space.read(key, tree, SEARCHED_SECTIONS)


@dataclasses.dataclass(frozen=True)
class TuningConfig:
    """A search for better values of the recipe's keys; the training then takes the best."""

    # The most trainings that the search makes; 0 searches nothing.
    trials: int = number(0, low=0)
    # How values are chosen. `hyperband` trains many choices for few epochs, and the best of them
    # again for more epochs; each of these trainings is a trial.
    algorithm: str = choice("random", "bayesian", "hyperband", default="random")
    # The number of epochs of a trial; with `hyperband`, of the longest trial. 0 takes
    # training.epochs.
    epochs: int = number(0, low=0)
    # The seed of the search.
    seed: int = number(1, low=1)
    # The values to search. Each name is a key of the sections model or training. Its value is a
    # list of values to try, or a range {low, high, scale = "linear" or "log"}.
    space: search_space.Space = read_by(_read_space)
