"""The TFX component that learns and joins lexicons of translations."""

import dataclasses
import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import EXAMPLES_KEY, LEXICON_KEY, SUBWORDS_KEY, VOCABULARY_KEY
from components.file_digests import with_digests
from components.lexicon import executor
from pipeline.recipes.sections import LexiconConfig
from pipeline.recipes.settings import VocabularySettings


class LexiconSpec(types.ComponentSpec):
    """Examples and counted words in, a folder with the lexicon out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        executor.TEXT_SETTINGS_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples),
        VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
        SUBWORDS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File, optional=True),
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        LEXICON_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Lexicon(base_beam_component.BaseBeamComponent):
    """Learns translations of source words from the train split, and adds those of a dictionary.

    Component `outputs` contains:
     - `lexicon`: `simple_artifacts.File`, a folder with `lexicon.tsv` (source token, target token,
       probability) and `facts.json` (counts and coverage); see
       `pipeline.lexicons.translation_lexicon`.
    """

    SPEC_CLASS = LexiconSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        vocabulary: types.BaseChannel,
        config: LexiconConfig,
        settings: VocabularySettings,
        subwords: types.BaseChannel | None = None,
    ) -> None:
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is learned from.
            vocabulary: channel of what Vocabulary wrote; its counts name the words.
            config: the recipe's lexicon section.
            settings: what `pipeline.recipes.views.vocabulary_settings` gives.
            subwords: channel of what Subwords wrote, where `data.units` are not words; the lexicon
                then translates units.
        """
        super().__init__(
            spec=LexiconSpec(
                **{
                    EXAMPLES_KEY: examples,
                    VOCABULARY_KEY: vocabulary,
                    **({SUBWORDS_KEY: subwords} if subwords else {}),
                    executor.CONFIG_KEY: json.dumps(dataclasses.asdict(config), sort_keys=True),
                    executor.TEXT_SETTINGS_KEY: json.dumps(with_digests(settings), sort_keys=True),
                    LEXICON_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
