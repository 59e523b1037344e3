"""The task `seq2seq`: text to text, learned from pairs."""

import dataclasses
import os
from typing import TYPE_CHECKING, cast

from pipeline.recipes.recipe import Recipe
from pipeline.tasks.task import Outputs, Task

if TYPE_CHECKING:
    import keras
    import tensorflow_transform as tft
    from tensorflow_model_analysis.proto import config_pb2

    from pipeline.readers.input_plan import InputPlan
    from pipeline.readers.text_streams import StreamPlan
    from pipeline.reporting.facts import RunFacts
    from pipeline.reporting.model_card import ModelUse
    from pipeline.reporting.model_evaluation import Evaluation, EvaluationRequest
    from pipeline.reporting.run_artifacts import RunArtifacts
    from pipeline.training.checkpoints import Checkpoints
    from pipeline.training.trainer_arguments import TrainerArguments
    from pipeline.training.trainer_outputs import TrainingFacts
    from pipeline.training.workers import Workers


class Seq2SeqTask(Task):
    """Text to text, learned from pairs."""

    preprocessing_fn = "pipeline.features.preprocessing.preprocessing_fn"
    counts_output = "rejects"

    def text_features(self) -> tuple[str, ...]:
        from pipeline.features.vocabulary_files import SIDES

        return tuple(SIDES)

    def plan_inputs(self, data_path: str, recipe: Recipe) -> "InputPlan":
        from pipeline.readers import planning

        return planning.plan_inputs(data_path, recipe.data)

    def fitted_to(self, recipe: Recipe, plan: "InputPlan | StreamPlan") -> Recipe:
        """Adds a length bucket that holds the longest text of the given test files."""
        from pipeline.common import progress
        from pipeline.readers import given_tests

        if not recipe.data.test_files:
            return recipe
        longest = given_tests.longest_text(cast("InputPlan", plan), recipe.data)
        before = recipe.decoding.length_buckets
        buckets = given_tests.with_longer_bucket(before, longest)
        if buckets == before:
            return recipe
        progress.say(
            f"A text of the given test files has {longest} tokens, and decoding.length_buckets "
            f"ends at {before[-1]}: {buckets[-1]} is added, so that the files are measured whole."
        )
        decoding = dataclasses.replace(recipe.decoding, length_buckets=buckets)
        return dataclasses.replace(recipe, decoding=decoding)

    def evaluated_split(self, recipe: Recipe) -> str:
        return "test"

    def build_eval_config(self, recipe: Recipe) -> "config_pb2.EvalConfig":
        from pipeline.evaluation import eval_config

        return eval_config.build_eval_config(recipe)

    def evaluator_module(self) -> str:
        from pipeline.evaluation import extractors

        return extractors.MODULE

    def train(
        self,
        recipe: Recipe,
        arguments: "TrainerArguments",
        transform_output: "tft.TFTransformOutput",
        checkpoints: "Checkpoints | None" = None,
        workers: "Workers | None" = None,
    ) -> "tuple[keras.Model, TrainingFacts]":
        from pipeline.training import trainer

        return trainer.train_transformed(recipe, arguments, transform_output, checkpoints, workers)

    def export_model(
        self,
        recipe: Recipe,
        model: "keras.Model",
        transform_output: "tft.TFTransformOutput",
        directory: str,
        only_measured: bool = False,
    ) -> None:
        from pipeline.export import seq2seq_export

        signatures = seq2seq_export.MEASURED if only_measured else seq2seq_export.SIGNATURES
        seq2seq_export.export_model(model, transform_output, recipe, directory, signatures)

    def keep_training_counts(self, directory: str, vocabulary: str) -> None:
        from pipeline.features import training_counts, vocabulary_files

        training_counts.write(directory, vocabulary_files.read_training_counts(vocabulary))

    def collect(
        self,
        recipe: Recipe,
        artifacts: "RunArtifacts",
        directory: str | os.PathLike[str],
        cache_directory: str | os.PathLike[str],
    ) -> "RunFacts":
        from pipeline.reporting import results

        return results.collect(recipe, artifacts, directory, cache_directory)

    def evaluate(
        self, recipe: Recipe, directory: str | os.PathLike[str], request: "EvaluationRequest"
    ) -> "Evaluation":
        from pipeline.reporting import seq2seq_evaluation

        return seq2seq_evaluation.evaluate(recipe, directory, request)

    def describe_use(self, recipe: Recipe) -> "ModelUse":
        from pipeline.reporting.model_card import ModelUse

        data = recipe.data
        limits = [
            f"A source of more than {recipe.decoding.length_buckets[-1]} tokens is refused.",
            "Outputs are not checked for truth: words may be wrong, left out or added, and copies "
            "may be in the wrong place.",
        ]
        if recipe.decoding.keep_protected:
            limits.append(
                "An output holds each placeholder, tag, URL and option exactly as often as its "
                "source, if the copy mechanism can output it."
            )
        else:
            limits.append(
                "Placeholders, tags, URLs and options of the source may be lost or invented."
            )
        if data.lowercase:
            limits.append("All text is lowercased.")
        if data.tokenization == "whitespace":
            limits.append(
                "Sources must be tokenized as the training data are: tokens are separated by "
                "white space."
            )
        languages = {
            "source_language": data.source_language,
            "target_language": data.target_language,
        }
        return ModelUse(languages, tuple(limits))

    def paths_of(self, recipe: Recipe, outputs: Outputs) -> dict[str, str]:
        from pipeline.lexicons import translation_lexicon

        rejects = outputs["ParallelTextExampleGen"]["rejects"]
        paths = {"rejects": os.path.join(rejects, "rejects.tsv")}
        if recipe.lexicon.kind != "none":
            lexicon = outputs["Lexicon"]["lexicon"]
            paths["lexicon"] = os.path.join(lexicon, translation_lexicon.LEXICON_FILE)
        return paths
