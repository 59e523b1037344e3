"""The task `language_model`: the probability of each word of a text, given those before it."""

import os
from typing import TYPE_CHECKING

from pipeline.recipes.recipe import Recipe
from pipeline.tasks.task import Outputs, Task

if TYPE_CHECKING:
    import keras
    import tensorflow_transform as tft
    from tensorflow_model_analysis.proto import config_pb2

    from pipeline.readers.text_streams import StreamPlan
    from pipeline.reporting.facts import RunFacts
    from pipeline.reporting.model_card import ModelUse
    from pipeline.reporting.model_evaluation import Evaluation, EvaluationRequest
    from pipeline.reporting.run_artifacts import RunArtifacts
    from pipeline.training.checkpoints import Checkpoints
    from pipeline.training.trainer_arguments import TrainerArguments
    from pipeline.training.trainer_outputs import TrainingFacts
    from pipeline.training.workers import Workers


class LanguageModelTask(Task):
    """The probability of each word of a text, given those before it."""

    preprocessing_fn = "pipeline.features.language_model_preprocessing.preprocessing_fn"
    counts_output = "counts"
    several_workers = False

    def text_features(self) -> tuple[str, ...]:
        from pipeline.features.vocabulary_files import STREAM_SIDES

        return tuple(STREAM_SIDES)

    def plan_inputs(self, data_path: str, recipe: Recipe) -> "StreamPlan":
        from pipeline.readers import text_streams

        return text_streams.plan_streams(data_path, recipe)

    def evaluated_split(self, recipe: Recipe) -> str:
        from pipeline.readers import text_streams

        # `eval` where no test file is given.
        return text_streams.evaluated_split(recipe.data)

    def build_eval_config(self, recipe: Recipe) -> "config_pb2.EvalConfig":
        from pipeline.evaluation import perplexity

        return perplexity.build_eval_config(recipe)

    def evaluator_module(self) -> None:
        # Perplexity needs no extractor.
        return None

    def train(
        self,
        recipe: Recipe,
        arguments: "TrainerArguments",
        transform_output: "tft.TFTransformOutput",
        checkpoints: "Checkpoints | None" = None,
        workers: "Workers | None" = None,
    ) -> "tuple[keras.Model, TrainingFacts]":
        from pipeline.training import language_model_trainer

        if workers:
            raise ValueError("A language model is trained by one process: unset TF_CONFIG.")
        return language_model_trainer.train_transformed(
            recipe, arguments, transform_output, checkpoints
        )

    def export_model(
        self,
        recipe: Recipe,
        model: "keras.Model",
        transform_output: "tft.TFTransformOutput",
        directory: str,
        only_measured: bool = False,
    ) -> None:
        from pipeline.export import language_model_export

        language_model_export.export_model(model, transform_output, recipe, directory)

    def keep_training_counts(self, directory: str, vocabulary: str) -> None:
        # A language model is measured by the probability of each word, rare or not.
        pass

    def collect(
        self,
        recipe: Recipe,
        artifacts: "RunArtifacts",
        directory: str | os.PathLike[str],
        cache_directory: str | os.PathLike[str],
    ) -> "RunFacts":
        from pipeline.reporting import language_model_results

        return language_model_results.collect(recipe, artifacts, directory, cache_directory)

    def evaluate(
        self, recipe: Recipe, directory: str | os.PathLike[str], request: "EvaluationRequest"
    ) -> "Evaluation":
        from pipeline.reporting import language_model_evaluation

        return language_model_evaluation.evaluate(recipe, directory, request)

    def describe_use(self, recipe: Recipe) -> "ModelUse":
        from pipeline.reporting.model_card import ModelUse

        limits = (
            "It writes likely text, not true text.",
            "Text must be tokenized as the training text is: words are separated by white space.",
        )
        return ModelUse({}, limits)

    def paths_of(self, recipe: Recipe, outputs: Outputs) -> dict[str, str]:
        # A stream has no rejects, and there is no lexicon.
        return {}
