"""The work of Exporter: reads the trained network and writes what is served."""

import json

import keras
import tensorflow_transform as tft
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import io_utils, path_utils

from components.vocabulary.executor import VOCABULARY_KEY
from pipeline.recipes import search_space, views
from pipeline.recipes.recipe import Recipe
from pipeline.tasks import task_of
from pipeline.training import trainer_outputs

TRAINED_MODEL_KEY = "trained_model"
TRANSFORM_GRAPH_KEY = "transform_graph"
HYPERPARAMETERS_KEY = "hyperparameters"
MODEL_KEY = "model"
RECIPE_KEY = "recipe"


class Executor(base_executor.BaseExecutor):
    """Exports the network of `trained_model`, with the Transform graph before it, as the SavedModel
    of `model`.
    """

    def Do(self, input_dict, output_dict, exec_properties):
        self._log_startup(input_dict, output_dict, exec_properties)
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        if input_dict.get(HYPERPARAMETERS_KEY):
            # What is written beside the model is the recipe that it was trained by.
            uri = artifact_utils.get_single_uri(input_dict[HYPERPARAMETERS_KEY])
            config = json.loads(io_utils.read_string_file(io_utils.get_only_uri_in_dir(uri)))
            recipe = views.with_values(recipe, search_space.read_found(config)["values"])
        trained = artifact_utils.get_single_uri(input_dict[TRAINED_MODEL_KEY])
        transform_graph = artifact_utils.get_single_uri(input_dict[TRANSFORM_GRAPH_KEY])
        directory = path_utils.serving_model_dir(
            artifact_utils.get_single_uri(output_dict[MODEL_KEY])
        )
        task = task_of(recipe)
        task.export_model(
            recipe,
            keras.models.load_model(
                trainer_outputs.model_path(path_utils.serving_model_dir(trained)), compile=False
            ),
            tft.TFTransformOutput(transform_graph),
            directory,
        )
        task.keep_training_counts(
            directory, artifact_utils.get_single_uri(input_dict[VOCABULARY_KEY])
        )
