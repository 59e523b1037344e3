"""TFX's Transform with the vocabulary as an artifact and the settings of a recipe."""

import json
import typing

from tfx import types
from tfx.components.transform.component import Transform
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts, standard_component_specs
from tfx.types.experimental import simple_artifacts

from components.artifacts import LEXICON_KEY, SUBWORDS_KEY, VOCABULARY_KEY
from components.text_transform import executor
from pipeline.recipes.settings import TransformSettings


class TextTransformSpec(types.ComponentSpec):
    """Transform's spec with three more inputs."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = (
        standard_component_specs.TransformSpec.PARAMETERS
    )
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        **standard_component_specs.TransformSpec.INPUTS,
        VOCABULARY_KEY: component_spec.ChannelParameter(type=simple_artifacts.File),
        LEXICON_KEY: component_spec.ChannelParameter(type=simple_artifacts.File, optional=True),
        SUBWORDS_KEY: component_spec.ChannelParameter(type=simple_artifacts.File, optional=True),
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = (
        standard_component_specs.TransformSpec.OUTPUTS
    )
    TYPE_ANNOTATION = standard_component_specs.TransformSpec.TYPE_ANNOTATION


class TextTransform(Transform):
    """Transform whose preprocessing function reads the vocabularies of an artifact.

    The vocabulary is an input artifact rather than a path in `custom_config`. So lineage records
    the vocabulary of a model, and the transform runs again exactly when the vocabulary changes.
    Of the recipe, only the keys that decide the features are part of the cache key.

    Component `outputs` contains:
     - `transform_graph`: `standard_artifacts.TransformGraph`, from raw text to the features of
       `pipeline.features.preprocessing`.
     - `transformed_examples`: `standard_artifacts.Examples` with those features.
    """

    SPEC_CLASS = TextTransformSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        schema: types.BaseChannel,
        vocabulary: types.BaseChannel,
        preprocessing_fn: str,
        settings: TransformSettings,
        lexicon: types.BaseChannel | None = None,
        subwords: types.BaseChannel | None = None,
    ) -> None:
        """Creates the component.

        Args:
            examples: channel of raw examples.
            schema: channel of their schema.
            vocabulary: channel of the vocabulary folder.
            preprocessing_fn: path of the function that makes the features.
            settings: what `pipeline.recipes.views.transform_settings` gives.
            lexicon: channel of the lexicon's folder, where the recipe's model reads it.
            subwords: channel of what Subwords wrote, where `data.units` are not words.
        """
        transformed_examples = types.Channel(type=standard_artifacts.Examples)
        transformed_examples.matching_channel_name = standard_component_specs.EXAMPLES_KEY
        spec = TextTransformSpec(
            **{
                standard_component_specs.EXAMPLES_KEY: examples,
                standard_component_specs.SCHEMA_KEY: schema,
                VOCABULARY_KEY: vocabulary,
                **({LEXICON_KEY: lexicon} if lexicon else {}),
                **({SUBWORDS_KEY: subwords} if subwords else {}),
                standard_component_specs.PREPROCESSING_FN_KEY: preprocessing_fn,
                standard_component_specs.CUSTOM_CONFIG_KEY: json.dumps(settings, sort_keys=True),
                standard_component_specs.FORCE_TF_COMPAT_V1_KEY: 0,
                # StatisticsGen has seen the raw data; statistics of id lists are useless.
                standard_component_specs.DISABLE_STATISTICS_KEY: 1,
                standard_component_specs.TRANSFORM_GRAPH_KEY: types.Channel(
                    type=standard_artifacts.TransformGraph
                ),
                standard_component_specs.TRANSFORMED_EXAMPLES_KEY: transformed_examples,
            }
        )
        # Not Transform.__init__, which builds a spec without the vocabulary.
        base_beam_component.BaseBeamComponent.__init__(self, spec=spec)
