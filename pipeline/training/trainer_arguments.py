"""The arguments of TFX's Trainer that a training needs."""

import dataclasses
from typing import Any

from pipeline.recipes.recipe import Recipe


@dataclasses.dataclass(frozen=True)
class TrainerArguments:
    """The part of TFX's `FnArgs` that a training reads; JSON can hold it.

    Attributes:
        train_files, eval_files: patterns of files of transformed examples.
        transform_graph_path: folder of the Transform graph.
        serving_model_dir: where the trained network goes.
        model_run_dir: where logs and facts go; None writes no logs.
        custom_config: `"recipe"` is what `Recipe.to_json` gives.
        base_model: folder of the model whose weights the training begins with, or None.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph_path: str
    serving_model_dir: str
    model_run_dir: str | None
    custom_config: dict[str, Any]
    base_model: str | None = None

    @classmethod
    def of(cls, fn_args: Any) -> "TrainerArguments":
        """Returns those among TFX's."""
        names = (field.name for field in dataclasses.fields(cls))
        values: dict[str, Any] = {name: getattr(fn_args, name, None) for name in names}
        return cls(**values)

    @property
    def recipe(self) -> Recipe:
        """The recipe to train."""
        return Recipe.from_json(self.custom_config["recipe"])
