"""The TFX component that exports trained networks."""

import typing

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.exporter import executor


class ExporterSpec(types.ComponentSpec):
    """A trained network and its Transform graph in, a SavedModel out."""

    PARAMETERS: typing.ClassVar[dict] = {
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str)
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.TRAINED_MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model),
        executor.TRANSFORM_GRAPH_KEY: component_spec.ChannelParameter(
            type=standard_artifacts.TransformGraph
        ),
        executor.VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
        executor.HYPERPARAMETERS_KEY: component_spec.ChannelParameter(
            type=standard_artifacts.HyperParameters, optional=True
        ),
    }
    OUTPUTS: typing.ClassVar[dict] = {
        executor.MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }


class Exporter(base_component.BaseComponent):
    """Makes of a trained network what is served:
    raw text in and out, decoding compiled, signatures, warm-up requests.

    Apart from the training, because it is a matter of seconds: another beam size does not train
    anew, and a failed export loses no training.

    Component `outputs` contains:
     - `model`: `standard_artifacts.Model`, the SavedModel in `Format-Serving`.
    """

    SPEC_CLASS = ExporterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self, trained_model, transform_graph, vocabulary, recipe_json, hyperparameters=None
    ):
        """Creates the component.

        Args:
            trained_model: channel of what the Trainer wrote.
            transform_graph: channel of the graph that made its features.
            vocabulary: channel of the vocabulary folder, whose counts of the training text lie
                beside what is exported.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives;
                `pipeline.recipes.views.export_recipe` leaves in it what matters here.
            hyperparameters: channel of what a Tuner found and the Trainer trained with, if there
                was one.
        """
        super().__init__(
            spec=ExporterSpec(
                **{
                    executor.TRAINED_MODEL_KEY: trained_model,
                    executor.TRANSFORM_GRAPH_KEY: transform_graph,
                    executor.VOCABULARY_KEY: vocabulary,
                    executor.RECIPE_KEY: recipe_json,
                    **({executor.HYPERPARAMETERS_KEY: hyperparameters} if hyperparameters else {}),
                    executor.MODEL_KEY: types.Channel(type=standard_artifacts.Model),
                }
            )
        )
