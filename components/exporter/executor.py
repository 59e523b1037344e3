"""The work of Exporter: reads the trained network and writes the served model."""

import json
from typing import Any

import keras
import tensorflow_transform as tft
from tfx.dsl.components.base import base_executor
from tfx.utils import io_utils, path_utils

# Registers the classes of a trained network; this component may be alone in its process.
import keras_models.models  # noqa: F401
from components.artifacts import (
    MODEL_KEY,
    TRAINED_MODEL_KEY,
    TRANSFORM_GRAPH_KEY,
    VOCABULARY_KEY,
    Artifacts,
    folder_of,
)
from pipeline.recipes import search_space, views
from pipeline.recipes.recipe import Recipe
from pipeline.tasks import task_of
from pipeline.training import trainer_outputs

HYPERPARAMETERS_KEY = "hyperparameters"
ONLY_MEASURED_KEY = "only_measured"
RECIPE_KEY = "recipe"


class Executor(base_executor.BaseExecutor):
    """Exports a trained network, with its Transform graph before it, as a SavedModel."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the SavedModel, its recipe and the counts of the training text."""
        self._log_startup(input_dict, output_dict, exec_properties)
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        if input_dict.get(HYPERPARAMETERS_KEY):
            # The recipe beside the model is the one of its training.
            uri = folder_of(input_dict, HYPERPARAMETERS_KEY)
            config = json.loads(io_utils.read_string_file(io_utils.get_only_uri_in_dir(uri)))
            recipe = views.with_values(recipe, search_space.read_found(config)["values"])
        trained = folder_of(input_dict, TRAINED_MODEL_KEY)
        directory = path_utils.serving_model_dir(folder_of(output_dict, MODEL_KEY))
        task = task_of(recipe)
        task.export_model(
            recipe,
            keras.models.load_model(
                trainer_outputs.model_path(path_utils.serving_model_dir(trained)), compile=False
            ),
            tft.TFTransformOutput(folder_of(input_dict, TRANSFORM_GRAPH_KEY)),
            directory,
            only_measured=bool(exec_properties.get(ONLY_MEASURED_KEY)),
        )
        task.keep_training_counts(directory, folder_of(input_dict, VOCABULARY_KEY))
