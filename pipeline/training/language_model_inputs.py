"""What a training of a language model reads and writes."""

import dataclasses
from collections.abc import Sequence

import tensorflow_transform as tft

from pipeline.features import language_model_preprocessing, transform_assets
from pipeline.training.initial_model import InitialModel
from pipeline.training.trainer_arguments import TrainerArguments


@dataclasses.dataclass(frozen=True)
class LanguageModelInputs:
    """Files, and the vocabulary.

    Attributes:
        train_files, eval_files: patterns of files of transformed passages.
        vocabulary_size: V.
        vocabulary: the words by id, for the tokens beside TensorBoard's heat maps.
        log_directory: where TensorBoard's logs go; None writes none.
        initial: the model that the training goes on from, or None.
    """

    train_files: Sequence[str]
    eval_files: Sequence[str]
    vocabulary_size: int
    vocabulary: Sequence[str] | None = None
    log_directory: str | None = None
    initial: InitialModel | None = None

    @classmethod
    def of(
        cls, arguments: TrainerArguments, transform_output: tft.TFTransformOutput
    ) -> "LanguageModelInputs":
        """Returns those of a training by TFX's Trainer."""
        vocabulary = transform_assets.read_vocabulary(
            transform_output, language_model_preprocessing.VOCABULARY_FILE
        )
        return cls(
            arguments.train_files,
            arguments.eval_files,
            len(vocabulary),
            vocabulary,
            arguments.model_run_dir,
            InitialModel.read(arguments.base_model) if arguments.base_model else None,
        )
