"""The TFX component that measures a run's models and writes its report."""

import typing
from collections.abc import Sequence

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.artifacts import (
    EXAMPLES_KEY,
    MODEL_KEY,
    TRAINED_MODEL_KEY,
    VOCABULARY_KEY,
)
from components.reporter import executor
from pipeline.recipes.recipe import Recipe


class SystemChannels(typing.NamedTuple):
    """The channels of one system.

    Attributes:
        model: the Exporter's `model`.
        trained_model: the Trainer's `model`.
        model_run: the Trainer's `model_run`.
    """

    model: types.BaseChannel
    trained_model: types.BaseChannel
    model_run: types.BaseChannel


def _channel(
    artifact_type: type[types.Artifact], optional: bool = False
) -> component_spec.ChannelParameter:
    return component_spec.ChannelParameter(type=artifact_type, optional=optional)


class ReporterSpec(types.ComponentSpec):
    """Everything that a run made in, its measurements out."""

    PARAMETERS: typing.ClassVar[dict[str, component_spec.ExecutionParameter]] = {
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str),
        executor.ANSWERS_DIRECTORY_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        EXAMPLES_KEY: _channel(standard_artifacts.Examples),
        executor.COUNTS_KEY: _channel(simple_artifacts.File),
        VOCABULARY_KEY: _channel(simple_artifacts.File),
        executor.EVALUATION_KEY: _channel(standard_artifacts.ModelEvaluation),
        executor.PUSHED_MODEL_KEY: _channel(standard_artifacts.PushedModel),
        **{
            key: _channel(artifact_type, optional=bool(prefix))
            for prefix in executor.SYSTEM_PREFIXES
            for key, artifact_type in (
                (prefix + MODEL_KEY, standard_artifacts.Model),
                (prefix + TRAINED_MODEL_KEY, standard_artifacts.Model),
                (prefix + executor.MODEL_RUN_KEY, standard_artifacts.ModelRun),
            )
        },
    }
    OUTPUTS: typing.ClassVar[dict[str, component_spec.ChannelParameter]] = {
        executor.REPORT_KEY: _channel(simple_artifacts.File)
    }


class Reporter(base_component.BaseComponent):
    """Measures a run's model and its baseline on the test split, and writes the report.

    It also writes the card of a pushed model, beside the model.

    Component `outputs` contains:
     - `report`: `simple_artifacts.File`, a folder with `report/index.html`, `report/facts.json`
       and, unless the model is a language model, `outputs/NAME.jsonl`: each system's outputs for
       the test split.
    """

    SPEC_CLASS = ReporterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        counts: types.BaseChannel,
        vocabulary: types.BaseChannel,
        evaluation: types.BaseChannel,
        pushed_model: types.BaseChannel,
        systems: Sequence[SystemChannels],
        recipe: Recipe,
        answers_directory: str = "",
    ) -> None:
        """Creates the component.

        Args:
            examples: channel of the examples.
            counts: channel of the folder that says how many records were read and kept.
            vocabulary: channel of the vocabulary folder.
            evaluation: channel of what the Evaluator measured.
            pushed_model: channel of what the Pusher pushed, if it did.
            systems: the run's own system and its baseline, if it has one.
            recipe: the run's recipe, a whole one because the report shows all of it.
            answers_directory: folder that keeps decoded answers from one execution to the next; ""
                to keep none.
        """
        of_systems = {
            prefix + key: channel
            for prefix, system in zip(executor.SYSTEM_PREFIXES, systems)
            for key, channel in zip(executor.SYSTEM_KEYS, system, strict=True)
        }
        super().__init__(
            spec=ReporterSpec(
                **of_systems,
                **{
                    EXAMPLES_KEY: examples,
                    executor.COUNTS_KEY: counts,
                    VOCABULARY_KEY: vocabulary,
                    executor.EVALUATION_KEY: evaluation,
                    executor.PUSHED_MODEL_KEY: pushed_model,
                    executor.RECIPE_KEY: recipe.to_json(),
                    executor.ANSWERS_DIRECTORY_KEY: answers_directory,
                    executor.REPORT_KEY: types.Channel(type=simple_artifacts.File),
                },
            )
        )
