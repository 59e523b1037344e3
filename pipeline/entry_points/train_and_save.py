"""What one process of a Trainer does: trains, and writes the network and the facts of its training."""

import json
import os

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.recipes.recipe import Recipe
from pipeline.tasks import task_of
from pipeline.training import checkpoints
from pipeline.training.trainer_outputs import HISTORY_FILE, model_path

TUNING = "tuning"  # the key of a Trainer's custom_config for what a Tuner found


def train_and_save(fn_args, folder, workers=None):
    """Trains in this process and writes the trained network and the facts of its training.

    Args:
        fn_args: TFX's, or what has the attributes of it that are read here.
        folder: of the checkpoints of all trainings.
        workers: the `data_parallel.Workers` to train with, whose chief writes; None trains alone.
    """
    recipe = Recipe.from_json(fn_args.custom_config["recipe"])
    is_chief = workers is None or workers.is_chief
    kept = checkpoints.Checkpoints(folder, writes=is_chief)
    model, facts = task_of(recipe).train(
        recipe, fn_args, tft.TFTransformOutput(fn_args.transform_graph_path), kept, workers
    )
    if not is_chief:
        return
    if TUNING in fn_args.custom_config:
        facts["tuning"] = fn_args.custom_config[TUNING]
    for directory in (fn_args.serving_model_dir, fn_args.model_run_dir):
        tf.io.gfile.makedirs(directory)
    model.save(model_path(fn_args.serving_model_dir))
    with tf.io.gfile.GFile(os.path.join(fn_args.model_run_dir, HISTORY_FILE), "w") as file:
        json.dump(facts, file, indent=1)
    kept.clear()
