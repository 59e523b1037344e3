"""Trains the members of an ensemble one after the other."""

import dataclasses
import os
from collections.abc import Callable

import keras

from keras_models.models import Ensemble
from pipeline.common import progress
from pipeline.recipes.recipe import Recipe
from pipeline.training.checkpoints import Checkpoints
from pipeline.training.trainer_outputs import TrainingFacts
from pipeline.training.training_inputs import TrainingInputs

#: Trains one recipe: what `trainer.train` does.
TrainOne = Callable[[Recipe, TrainingInputs, Checkpoints], tuple[keras.Model, TrainingFacts]]


def train_members(
    recipe: Recipe, inputs: TrainingInputs, checkpoints: Checkpoints, train_one: TrainOne
) -> tuple[keras.Model, TrainingFacts]:
    """Trains `training.ensemble` networks, which differ in `training.seed` alone.

    Args:
        recipe: the `Recipe`.
        inputs: those of each training.
        checkpoints: the training's; each member has its own beside them.
        train_one: trains a member.

    Returns:
        The `Ensemble`, and the facts of its training: the curve is the first member's, `seconds`,
        `updates` and `parameters` are sums, and `members` has each member's own.
    """
    config = recipe.training
    models, members = [], []
    for number in range(config.ensemble):
        progress.say(f"{recipe.model.head}: member {number + 1} of {config.ensemble}.")
        alone = dataclasses.replace(config, seed=config.seed + number, ensemble=1)
        logs = inputs.log_directory
        if logs and number:
            # The first member's are where those of a single network are.
            logs = os.path.join(logs, f"member_{number + 1}")
        model, facts = train_one(
            dataclasses.replace(recipe, training=alone),
            dataclasses.replace(inputs, log_directory=logs),
            checkpoints.of_a_member(),
        )
        models.append(model)
        members.append(facts)
    whole: TrainingFacts = {**members[0], "members": members}
    whole["seconds"] = round(sum(facts["seconds"] for facts in members), 1)
    whole["updates"] = sum(facts["updates"] for facts in members)
    whole["parameters"] = sum(facts["parameters"] for facts in members)
    return Ensemble(models), whole
