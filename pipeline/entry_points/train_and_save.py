"""The work of one process of a Trainer: trains, writes the network and the training's facts."""

import json
import os

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.common.whole_files import whole_file
from pipeline.tasks import task_of
from pipeline.training import precision
from pipeline.training.checkpoints import Checkpoints
from pipeline.training.trainer_arguments import TrainerArguments
from pipeline.training.trainer_outputs import HISTORY_FILE, model_path
from pipeline.training.workers import Workers

# The key of a Trainer's custom_config for what a Tuner found.
TUNING = "tuning"


def train_and_save(
    arguments: TrainerArguments, folder: str, workers: Workers | None = None
) -> None:
    """Trains in this process and writes the trained network and the facts of its training.

    Args:
        arguments: what TFX hands to a Trainer.
        folder: of the checkpoints of all trainings.
        workers: those to train with, whose chief writes; None trains alone.
    """
    recipe = arguments.recipe
    is_chief = workers is None or workers.is_chief
    checkpoints = Checkpoints(folder, writes=is_chief)
    transform_output = tft.TFTransformOutput(arguments.transform_graph_path)
    if is_chief:
        precision.warn_of_slowness(recipe.training)
    model, facts = task_of(recipe).train(recipe, arguments, transform_output, checkpoints, workers)
    if not is_chief:
        return
    if TUNING in arguments.custom_config:
        facts["tuning"] = arguments.custom_config[TUNING]
    assert arguments.model_run_dir is not None, "a Trainer has a folder for its facts"
    for directory in (arguments.serving_model_dir, arguments.model_run_dir):
        tf.io.gfile.makedirs(directory)
    precision.in_float32(model).save(model_path(arguments.serving_model_dir))
    with whole_file(os.path.join(arguments.model_run_dir, HISTORY_FILE)) as file:
        json.dump(facts, file, indent=1)
    checkpoints.clear()
