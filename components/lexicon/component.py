"""The TFX component that learns and joins lexicons of translations."""

import dataclasses
import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.lexicon import executor
from components.vocabulary.component import settings_of
from pipeline.recipes.recipe import Recipe


class LexiconSpec(types.ComponentSpec):
    """Examples and counted words in, a folder with the lexicon out."""

    PARAMETERS: typing.ClassVar[dict] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        executor.TEXT_SETTINGS_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples),
        executor.VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
        executor.SUBWORDS_KEY: component_spec.ChannelParameter(
            type=simple_artifacts.File, optional=True
        ),
    }
    OUTPUTS: typing.ClassVar[dict] = {
        executor.LEXICON_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Lexicon(base_beam_component.BaseBeamComponent):
    """Learns which target words translate a source word, from the train split, and joins a
    dictionary to it.

    Component `outputs` contains:
     - `lexicon`: `simple_artifacts.File`, a folder with `lexicon.tsv` (source token, target token,
       probability) and `facts.json` (counts and coverage); see
       `pipeline.lexicons.translation_lexicon`.
    """

    SPEC_CLASS = LexiconSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples, vocabulary, recipe_json, subwords=None):
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is learned from.
            vocabulary: channel of what Vocabulary wrote; its counts name the words.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.
            subwords: channel of what Subwords wrote, where `data.units` are not words: then
                translations are of units.
        """
        recipe = Recipe.from_json(recipe_json)
        super().__init__(
            spec=LexiconSpec(
                **{
                    executor.EXAMPLES_KEY: examples,
                    executor.VOCABULARY_KEY: vocabulary,
                    **({executor.SUBWORDS_KEY: subwords} if subwords else {}),
                    executor.CONFIG_KEY: json.dumps(
                        dataclasses.asdict(recipe.lexicon), sort_keys=True
                    ),
                    executor.TEXT_SETTINGS_KEY: json.dumps(settings_of(recipe), sort_keys=True),
                    executor.LEXICON_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
