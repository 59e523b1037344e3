"""The TFX component that makes the vocabularies."""

import dataclasses
import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import EXAMPLES_KEY, SUBWORDS_KEY, VOCABULARY_KEY
from components.file_digests import with_digests
from components.vocabulary import executor
from pipeline.recipes.sections import VocabularyConfig
from pipeline.recipes.settings import VocabularySettings


class VocabularySpec(types.ComponentSpec):
    """Examples in, a folder of vocabulary files out.

    The parameters are those of the recipe that decide the files.
    """

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        executor.TEXT_SETTINGS_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples),
        SUBWORDS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File, optional=True),
    }
    # One of TFX's own types, as for the rejects of ParallelTextExampleGen, and for the same reason.
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Vocabulary(base_beam_component.BaseBeamComponent):
    """Counts the tokens of the train split and keeps the most frequent of each side.

    Component `outputs` contains:
     - `vocabulary`: `simple_artifacts.File`, a folder with `source_vocabulary.txt` and
       `target_vocabulary.txt` (one token per line; the line number is the id), and
       `source_counts.tsv`, `target_counts.tsv` (all training tokens). Where the recipe has them:
       `source_units_counts.tsv` and `target_units_counts.tsv` where words are cut, `tags_NAME.txt`
       of each column of tags, its lexicons, in the form of `pipeline.lexicons.dictionaries`, and
       `source_multigrams.tsv`, which `pipeline.text.multigrams` describes.
    """

    SPEC_CLASS = VocabularySpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        config: VocabularyConfig,
        settings: VocabularySettings,
        subwords: types.BaseChannel | None = None,
    ) -> None:
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is counted.
            config: the recipe's vocabulary section.
            settings: what `pipeline.recipes.views.vocabulary_settings` gives.
            subwords: channel of what Subwords wrote, where `data.units` are not words.
        """
        super().__init__(
            spec=VocabularySpec(
                **{
                    EXAMPLES_KEY: examples,
                    **({SUBWORDS_KEY: subwords} if subwords else {}),
                    executor.CONFIG_KEY: json.dumps(_relevant(config, settings), sort_keys=True),
                    executor.TEXT_SETTINGS_KEY: json.dumps(with_digests(settings), sort_keys=True),
                    VOCABULARY_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )


def _relevant(config: VocabularyConfig, settings: VocabularySettings) -> dict[str, int | bool]:
    """Returns the keys of the section that decide this artifact.

    Keys of units are not among them, nor are those of characters if none are read.
    """
    unread = {"pieces"}
    if not settings.get("characters"):
        unread |= {"characters", "character_min_count"}
    return {key: value for key, value in dataclasses.asdict(config).items() if key not in unread}
