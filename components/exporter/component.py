"""The TFX component that exports trained networks."""

import typing

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import (
    MODEL_KEY,
    TRAINED_MODEL_KEY,
    TRANSFORM_GRAPH_KEY,
    VOCABULARY_KEY,
)
from components.exporter import executor
from components.file_digests import digest_of
from pipeline.recipes.recipe import Recipe

GLOSSARY_DIGEST_KEY = "glossary_digest"


class ExporterSpec(types.ComponentSpec):
    """A trained network and its Transform graph in, a SavedModel out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str),
        executor.ONLY_MEASURED_KEY: component_spec.ExecutionParameter(type=int, optional=True),
        # Nobody reads it: a changed glossary is exported again.
        GLOSSARY_DIGEST_KEY: component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        TRAINED_MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model),
        TRANSFORM_GRAPH_KEY: component_spec.ChannelParameter(
            type=standard_artifacts.TransformGraph
        ),
        VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
        executor.HYPERPARAMETERS_KEY: component_spec.ChannelParameter(
            type=standard_artifacts.HyperParameters, optional=True
        ),
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        MODEL_KEY: component_spec.ChannelParameter(type=standard_artifacts.Model)
    }


class Exporter(base_component.BaseComponent):
    """Makes a served model from a trained network.

    The model takes and returns raw text. Its decoding is compiled, and it has signatures and
    warm-up requests. The export is a component of its own because it only takes seconds: a new beam
    size needs no new training, and a failed export loses no training.

    Component `outputs` contains:
     - `model`: `standard_artifacts.Model`, the SavedModel in `Format-Serving`.
    """

    SPEC_CLASS = ExporterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        trained_model: types.BaseChannel,
        transform_graph: types.BaseChannel,
        vocabulary: types.BaseChannel,
        recipe: Recipe,
        hyperparameters: types.BaseChannel | None = None,
        only_measured: bool = False,
    ) -> None:
        """Creates the component.

        Args:
            trained_model: channel of what the Trainer wrote.
            transform_graph: channel of the graph that made its features.
            vocabulary: channel of the vocabulary folder, whose counts of the training text are
                written beside the model.
            recipe: what `pipeline.recipes.views.export_recipe` gives. It is a whole recipe because
                it is written beside the model.
            hyperparameters: channel of what a Tuner found and the Trainer trained with, if there
                was one.
            only_measured: whether nobody but `Evaluator` and `Reporter` asks the model, as for a
                baseline. It then has the signatures that they ask, and takes 0.6 of the time.
        """
        digest = digest_of(recipe.decoding.glossary)
        super().__init__(
            spec=ExporterSpec(
                **{
                    TRAINED_MODEL_KEY: trained_model,
                    TRANSFORM_GRAPH_KEY: transform_graph,
                    VOCABULARY_KEY: vocabulary,
                    executor.RECIPE_KEY: recipe.to_json(),
                    **({GLOSSARY_DIGEST_KEY: digest} if digest else {}),
                    **({executor.HYPERPARAMETERS_KEY: hyperparameters} if hyperparameters else {}),
                    **({executor.ONLY_MEASURED_KEY: 1} if only_measured else {}),
                    MODEL_KEY: types.Channel(type=standard_artifacts.Model),
                }
            )
        )
