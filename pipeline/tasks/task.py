"""What differs between tasks, so that no other code asks which task it is."""

import abc
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pipeline.recipes.recipe import Recipe

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

#: Folders of artifacts, by component and output.
Outputs = Mapping[str, Mapping[str, str]]


class Task(abc.ABC):
    """A task of recipes.

    What a task decides about the recipe itself is in `pipeline.recipes.task_rules`, below
    everything else. Methods import what only their task needs, so that choosing a task costs
    nothing.

    Attributes:
        preprocessing_fn: path of the function that Transform calls.
        counts_output: the output of the component that reads the data which says how many records
            were read, kept and rejected.
        several_workers: whether several processes can train together.
    """

    preprocessing_fn: ClassVar[str]
    counts_output: ClassVar[str]
    several_workers: ClassVar[bool] = True

    @abc.abstractmethod
    def text_features(self) -> tuple[str, ...]:
        """Returns the names of the features of an example that are texts."""

    @abc.abstractmethod
    def plan_inputs(self, data_path: str, recipe: Recipe) -> "InputPlan | StreamPlan":
        """Finds and checks the files behind a data path.

        Raises:
            pipeline.readers.DataError: they cannot be used; one sentence.
        """

    def fitted_to(self, recipe: Recipe, plan: "InputPlan | StreamPlan") -> Recipe:
        """Returns the recipe with changes that the planned files need; by default the same."""
        return recipe

    @abc.abstractmethod
    def evaluated_split(self, recipe: Recipe) -> str:
        """Returns the split that the Evaluator measures."""

    @abc.abstractmethod
    def build_eval_config(self, recipe: Recipe) -> "config_pb2.EvalConfig":
        """Returns the Evaluator's config."""

    @abc.abstractmethod
    def evaluator_module(self) -> str | None:
        """Returns the name of the module with the `custom_extractors` of the Evaluator, if any."""

    @abc.abstractmethod
    def train(
        self,
        recipe: Recipe,
        arguments: "TrainerArguments",
        transform_output: "tft.TFTransformOutput",
        checkpoints: "Checkpoints | None" = None,
        workers: "Workers | None" = None,
    ) -> "tuple[keras.Model, TrainingFacts]":
        """Trains a recipe's model for TFX's Trainer.

        Args:
            recipe: the recipe.
            arguments: TFX's.
            transform_output: the Transform graph of the features.
            checkpoints: those to resume from and to write; None keeps none.
            workers: those to train with; None trains alone.

        Returns:
            The model and the facts of its training.

        Raises:
            ValueError: the training cannot begin, or gave no finite loss; one sentence.
        """

    @abc.abstractmethod
    def export_model(
        self,
        recipe: Recipe,
        model: "keras.Model",
        transform_output: "tft.TFTransformOutput",
        directory: str,
        only_measured: bool = False,
    ) -> None:
        """Writes a trained model as a SavedModel.

        Args:
            recipe: the `Recipe`.
            model: the trained network.
            transform_output: the Transform graph of the features it was trained on.
            directory: where to write.
            only_measured: whether signatures may be left out that no component asks.
        """

    @abc.abstractmethod
    def keep_training_counts(self, directory: str, vocabulary: str) -> None:
        """Writes how often the training text has each word beside an exported model.

        The metrics that ask how rare a word is read it there.

        Args:
            directory: the SavedModel's folder.
            vocabulary: the folder of the Vocabulary artifact.
        """

    @abc.abstractmethod
    def collect(
        self,
        recipe: Recipe,
        artifacts: "RunArtifacts",
        directory: str | os.PathLike[str],
        cache_directory: str | os.PathLike[str],
    ) -> "RunFacts":
        """Measures a run's models.

        Args:
            recipe: the run's recipe.
            artifacts: folders of the run.
            directory: folder for the models' outputs.
            cache_directory: folder for decoded answers.

        Returns:
            The results of the run.
        """

    @abc.abstractmethod
    def evaluate(
        self, recipe: Recipe, directory: str | os.PathLike[str], request: "EvaluationRequest"
    ) -> "Evaluation":
        """Measures an exported model on a user's data.

        Args:
            recipe: the recipe that the model was trained with.
            directory: the SavedModel's folder.
            request: the user's request.

        Raises:
            VerbatimError: the data or the model cannot be measured as asked; one sentence.
        """

    @abc.abstractmethod
    def describe_use(self, recipe: Recipe) -> "ModelUse":
        """Returns the model card's text about the use of a recipe's model."""

    @abc.abstractmethod
    def paths_of(self, recipe: Recipe, outputs: Outputs) -> dict[str, str]:
        """Returns, for a run's facts, the paths of files that only this task has.

        They are those of the rejects (`"rejects"`) and of the `"lexicon"`.
        """
