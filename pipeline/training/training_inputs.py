"""What a training of a sequence-to-sequence network reads and writes."""

import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow_transform as tft

from pipeline.features import transform_assets, vocabulary_files
from pipeline.recipes.recipe import Recipe
from pipeline.training.initial_model import InitialModel
from pipeline.training.model_inputs import ModelInputs
from pipeline.training.sampled_units import SampledUnits
from pipeline.training.trainer_arguments import TrainerArguments


@dataclasses.dataclass(frozen=True)
class TrainingInputs:
    """Files, and what the network must know of them.

    Attributes:
        train_files, eval_files: patterns of files of transformed examples.
        model: see `ModelInputs`.
        target_vocabulary: the target's words by id, for the tokens beside TensorBoard's heat maps.
        log_directory: where TensorBoard's logs go; None writes none.
        initial: the model that the training goes on from, or None.
        words: the network's vocabularies, as `InitialModel.words` has them, where there is one.
        cutting: what cuts the words of the training pairs anew; None keeps them as they are.
    """

    train_files: Sequence[str]
    eval_files: Sequence[str]
    model: ModelInputs
    target_vocabulary: Sequence[str] | None = None
    log_directory: str | None = None
    initial: InitialModel | None = None
    words: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    cutting: SampledUnits | None = None

    @classmethod
    def of(
        cls, recipe: Recipe, arguments: TrainerArguments, transform_output: tft.TFTransformOutput
    ) -> "TrainingInputs":
        """Returns those of a recipe's training by TFX's Trainer."""
        initial, words = None, {}
        if arguments.base_model:
            initial = InitialModel.read(arguments.base_model)
            words = {
                name: transform_assets.read_vocabulary(transform_output, name)
                for name in transform_assets.vocabulary_names(transform_output, initial.words)
            }
        return cls(
            arguments.train_files,
            arguments.eval_files,
            ModelInputs.of(recipe, transform_output),
            transform_assets.read_vocabulary(
                transform_output, vocabulary_files.TARGET_VOCABULARY_FILE
            ),
            arguments.model_run_dir,
            initial,
            words,
            SampledUnits.of(recipe, transform_output),
        )
