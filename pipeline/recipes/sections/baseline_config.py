"""The section `baseline`."""

import dataclasses

from pipeline.recipes.choices import HEADS
from pipeline.recipes.fields import choice


@dataclasses.dataclass(frozen=True)
class BaselineConfig:
    """A second model to compare with: the same recipe with another head."""

    # The head of the second model; empty trains none.
    head: str = choice("", *HEADS, default="")
