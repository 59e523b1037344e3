"""The TFX component that makes the vocabularies."""

import dataclasses
import hashlib
import json
import typing

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.dsl.io import fileio
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.vocabulary import executor
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe


def settings_of(recipe):
    """Returns the settings that decide the vocabularies, the contents of lexicon files among them:
    a changed file is read again.
    """
    settings = views.vocabulary_settings(recipe)
    for key in ("dictionary", "copy_lexicon"):
        # A pipeline may be written where its files are not.
        if key in settings and fileio.exists(settings[key]):
            with fileio.open(settings[key], "rb") as file:
                settings[f"{key}_digest"] = hashlib.sha256(file.read()).hexdigest()
    return settings


def config_of(recipe):
    """Returns the keys of the vocabulary section that decide this artifact:
    not how words are cut, nor characters where none are read.
    """
    config = dataclasses.asdict(recipe.vocabulary)
    unread = (
        ("pieces",) if views.composes(recipe) else ("pieces", "characters", "character_min_count")
    )
    return {key: value for key, value in config.items() if key not in unread}


class VocabularySpec(types.ComponentSpec):
    """Examples in, a folder of vocabulary files out;
    the settings are those of the recipe that decide it.
    """

    PARAMETERS: typing.ClassVar[dict] = {
        executor.CONFIG_KEY: component_spec.ExecutionParameter(type=str),
        executor.TEXT_SETTINGS_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.EXAMPLES_KEY: component_spec.ChannelParameter(type=standard_artifacts.Examples),
        executor.SUBWORDS_KEY: component_spec.ChannelParameter(
            type=simple_artifacts.File, optional=True
        ),
    }
    # One of TFX's own types, as for the rejects of ParallelTextExampleGen, and for the same reason.
    OUTPUTS: typing.ClassVar[dict] = {
        executor.VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File)
    }


class Vocabulary(base_beam_component.BaseBeamComponent):
    """Counts the tokens of the train split and keeps the most frequent of each side.

    Component `outputs` contains:
     - `vocabulary`: `simple_artifacts.File`, a folder with `source_vocabulary.txt` and
       `target_vocabulary.txt` (a token a line, the line number is the id), and `source_counts.tsv`,
       `target_counts.tsv` (all training tokens). Where the recipe has them:
       `source_units_counts.tsv` and `target_units_counts.tsv` where words are cut, `tags_NAME.txt`
       of each column of tags, and its lexicons, in the form of `pipeline.lexicons.dictionaries`.
    """

    SPEC_CLASS = VocabularySpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples, recipe_json, subwords=None):
        """Creates the component.

        Args:
            examples: channel of the examples; its split `train` is counted.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.
            subwords: channel of what Subwords wrote, where `data.units` are not words.
        """
        recipe = Recipe.from_json(recipe_json)
        super().__init__(
            spec=VocabularySpec(
                **{
                    executor.EXAMPLES_KEY: examples,
                    **({executor.SUBWORDS_KEY: subwords} if subwords else {}),
                    executor.CONFIG_KEY: json.dumps(config_of(recipe), sort_keys=True),
                    executor.TEXT_SETTINGS_KEY: json.dumps(settings_of(recipe), sort_keys=True),
                    executor.VOCABULARY_KEY: types.Channel(type=simple_artifacts.File),
                }
            )
        )
