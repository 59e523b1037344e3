"""The TFX component that measures a run's models and writes its report."""

import typing

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.reporter import executor


def _channel(artifact_type, optional=False):
    return component_spec.ChannelParameter(type=artifact_type, optional=optional)


class ReporterSpec(types.ComponentSpec):
    """All that a run made of its data in, its measurements out."""

    PARAMETERS: typing.ClassVar[dict] = {
        executor.RECIPE_KEY: component_spec.ExecutionParameter(type=str),
        executor.ANSWERS_DIRECTORY_KEY: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: typing.ClassVar[dict] = {
        executor.EXAMPLES_KEY: _channel(standard_artifacts.Examples),
        executor.COUNTS_KEY: _channel(simple_artifacts.File),
        executor.VOCABULARY_KEY: _channel(simple_artifacts.File),
        executor.EVALUATION_KEY: _channel(standard_artifacts.ModelEvaluation),
        executor.PUSHED_MODEL_KEY: _channel(standard_artifacts.PushedModel),
        **{
            key: _channel(artifact_type, optional=bool(prefix))
            for prefix in executor.SYSTEM_PREFIXES
            for key, artifact_type in (
                (prefix + executor.MODEL_KEY, standard_artifacts.Model),
                (prefix + executor.TRAINED_MODEL_KEY, standard_artifacts.Model),
                (prefix + executor.MODEL_RUN_KEY, standard_artifacts.ModelRun),
            )
        },
    }
    OUTPUTS: typing.ClassVar[dict] = {executor.REPORT_KEY: _channel(simple_artifacts.File)}


class Reporter(base_component.BaseComponent):
    """Measures a run's model, and its baseline, on the test split;
    writes the report, and the card of a pushed model beside it.

    Component `outputs` contains:
     - `report`: `simple_artifacts.File`, a folder with `report/index.html`, `report/facts.json`
       and, unless the model is a language model, `outputs/NAME.jsonl`: what each system said to the
       test split.
    """

    SPEC_CLASS = ReporterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        examples,
        counts,
        vocabulary,
        evaluation,
        pushed_model,
        systems,
        recipe_json,
        answers_directory="",
    ):
        """Creates the component.

        Args:
            examples: channel of the examples.
            counts: channel of the folder that says how many records were read and kept.
            vocabulary: channel of the vocabulary folder.
            evaluation: channel of what the Evaluator measured.
            pushed_model: channel of what the Pusher pushed, if it did.
            systems: the run's own system and its baseline, if it has one: (Exporter's `model`,
                Trainer's `model`, Trainer's `model_run`) each.
            recipe_json: what `pipeline.recipes.recipe.Recipe.to_json` gives.
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
                    executor.EXAMPLES_KEY: examples,
                    executor.COUNTS_KEY: counts,
                    executor.VOCABULARY_KEY: vocabulary,
                    executor.EVALUATION_KEY: evaluation,
                    executor.PUSHED_MODEL_KEY: pushed_model,
                    executor.RECIPE_KEY: recipe_json,
                    executor.ANSWERS_DIRECTORY_KEY: answers_directory,
                    executor.REPORT_KEY: types.Channel(type=simple_artifacts.File),
                },
            )
        )
