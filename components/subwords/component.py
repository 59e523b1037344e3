"""The TFX component that learns how words are cut into units."""

import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.subwords import executor
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe


class SubwordsSpec(types.ComponentSpec):
    """Examples in, a folder with two sentencepiece models out."""

    PARAMETERS: typing.ClassVar[dict] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str)
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples)
    }
    OUTPUTS: typing.ClassVar[dict] = {
        executor.SUBWORDS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Subwords(base_beam_component.BaseBeamComponent):
    """Learns the units of a recipe with `data.units` = `characters` or `subwords` from the train
    split.

    Component `outputs` contains:
     - `subwords`: `simple_artifacts.File`, a folder with `source.model` and `target.model`
       (sentencepiece).
    """

    SPEC_CLASS = SubwordsSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples, recipe_json):
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is learned from, and `test` looked
                at for texts that are too long.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.
        """
        recipe = Recipe.from_json(recipe_json)
        config = {
            **views.text_settings(recipe),
            "pieces": recipe.vocabulary.pieces,
            "joint": recipe.vocabulary.joint,
            "longest": recipe.decoding.length_buckets[-1],
        }
        super().__init__(
            spec=SubwordsSpec(
                **{
                    executor.EXAMPLES_KEY: examples,
                    executor.CONFIG_KEY: json.dumps(config, sort_keys=True),
                    executor.SUBWORDS_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
