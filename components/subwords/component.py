"""The TFX component that learns how words are cut into units."""

import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import EXAMPLES_KEY, SUBWORDS_KEY
from components.subwords import executor
from pipeline.recipes.settings import SubwordsSettings


class SubwordsSpec(types.ComponentSpec):
    """Examples in, a folder with two sentencepiece models out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str)
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples)
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        SUBWORDS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Subwords(base_beam_component.BaseBeamComponent):
    """Learns units (characters or subwords) from the train split.

    Component `outputs` contains:
     - `subwords`: `simple_artifacts.File`, a folder with `source.model` and `target.model`
       (sentencepiece).
    """

    SPEC_CLASS = SubwordsSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples: types.BaseChannel, settings: SubwordsSettings) -> None:
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is learned from, and its split
                `test` is searched for texts that are too long.
            settings: what `pipeline.recipes.views.subwords_settings` gives.
        """
        super().__init__(
            spec=SubwordsSpec(
                **{
                    EXAMPLES_KEY: examples,
                    executor.CONFIG_KEY: json.dumps(settings, sort_keys=True),
                    SUBWORDS_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
