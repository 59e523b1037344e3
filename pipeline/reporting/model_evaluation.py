"""The request and the result of measuring an exported model on a user's data."""

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.common import graph_optimizer
from pipeline.common.errors import VerbatimError
from pipeline.recipes.recipe import Recipe, recipe_from_dict

if TYPE_CHECKING:
    from pipeline.export.served_model import ServedModel


class EvaluationError(VerbatimError, ValueError):
    """A model that cannot be measured as asked; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class EvaluationRequest:
    """A user's request.

    Attributes:
        data: a path; a folder stands for the recipe's test files, if it names any.
        format: that of the data, or `auto`.
        metrics: names separated by commas; None for those of the model's recipe.
        database: the file for `execution_accuracy`; None for the recipe's.
        writes_outputs: whether the user wants the model's outputs.
    """

    data: str
    format: str = "auto"
    metrics: str | None = None
    database: str | None = None
    writes_outputs: bool = False


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The results.

    Attributes:
        lines: for people; some are tables of several lines.
        facts: for machines.
        outputs: what the model wrote, one text for each of the data.
    """

    lines: list[str]
    facts: dict[str, Any]
    outputs: Sequence[str] = ()


def recipe_of(model_directory: str | os.PathLike[str]) -> Recipe:
    """Returns the recipe that an exported model was trained with.

    If the model names none, it is a recipe of defaults.
    """
    from pipeline.export.served_model import read_facts

    recipe = read_facts(model_directory).get("recipe")
    return recipe_from_dict(recipe) if recipe else Recipe(name="model")


def model_for_many_texts(directory: str | os.PathLike[str]) -> "ServedModel":
    """Loads an exported model that answers one batch per core concurrently."""
    from pipeline.export.served_model import ServedModel
    from serving import compiled_programs, processors

    processors.prefer_batches_side_by_side()
    compiled_programs.keep()
    graph_optimizer.turn_off()
    return ServedModel(directory, at_once=processors.batches_at_once())
