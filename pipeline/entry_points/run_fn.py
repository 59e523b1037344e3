"""TFX Trainer's entry: `run_fn`."""

from typing import Any

from pipeline.entry_points import worker_processes
from pipeline.entry_points.train_and_save import TUNING, train_and_save
from pipeline.recipes import search_space, views
from pipeline.recipes.recipe import Recipe
from pipeline.training import initial_model, initial_weights
from pipeline.training.trainer_arguments import TrainerArguments
from pipeline.training.trainer_outputs import checkpoint_directory

# A key of a Trainer's custom_config.
CHECKPOINTS = "checkpoints"


def run_fn(fn_args: Any) -> None:
    """Trains; called by TFX's Trainer. Exporter makes the served model of the network.

    Args:
        fn_args: TFX's; `custom_config["recipe"]` is what `Recipe.to_json` gives,
            `custom_config["checkpoints"]`, if there is one, the folder of the checkpoints.
            `hyperparameters`, if a Tuner found some, replace the recipe's own values.
            `base_model`, if there is one, is an exported model: the training begins with its
            weights.

    Raises:
        InitialModelError: it cannot begin with them.
    """
    recipe = Recipe.from_json(fn_args.custom_config["recipe"])
    if fn_args.hyperparameters:
        found = search_space.read_found(fn_args.hyperparameters)
        recipe = views.with_values(recipe, found["values"])
        # The process that trains finds them there.
        fn_args.custom_config = {**fn_args.custom_config, "recipe": recipe.to_json(), TUNING: found}
    base_model = getattr(fn_args, "base_model", None)
    if recipe.training.initialize_from and not base_model:
        # In a user's own pipeline, which gave the Trainer none.
        base_model = initial_model.find_version(recipe.training.initialize_from, "")
        fn_args.base_model = base_model
    if base_model:
        theirs = initial_model.read_recipe(base_model)
        initial_weights.check_recipe(recipe.to_dict(), theirs, base_model)
    folder = fn_args.custom_config.get(CHECKPOINTS) or checkpoint_directory(fn_args.model_run_dir)
    arguments = TrainerArguments.of(fn_args)
    if worker_processes.are_needed(recipe):
        worker_processes.train(recipe, arguments, folder)
    else:
        train_and_save(arguments, folder)
