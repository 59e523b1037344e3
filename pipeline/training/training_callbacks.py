"""The callbacks of a recipe's training."""

import dataclasses

import keras
import tensorflow as tf

from pipeline.features import feature_names
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.training.attention_pictures import AttentionPictures, read_shown
from pipeline.training.average_weights import TrainedWeights, make_average
from pipeline.training.best_weights import BestWeights
from pipeline.training.eval_decoding import DecodedMetric, EvalDecoding
from pipeline.training.progress_callback import Progress
from pipeline.training.schedule import Schedule
from pipeline.training.scheduled_sampling import ScheduledSampling
from pipeline.training.segmentation_phases import SegmentationPhases
from pipeline.training.selection import Selection
from pipeline.training.training_inputs import TrainingInputs


@dataclasses.dataclass(frozen=True)
class TrainingCallbacks:
    """The callbacks of a training, without its `Checkpointing`.

    Attributes:
        schedule, progress: those that are asked afterwards how it went.
        all: these and the others, in their order.
    """

    schedule: Schedule
    progress: Progress
    all: list[keras.callbacks.Callback]

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        inputs: TrainingInputs,
        steps_per_epoch: int,
        is_chief: bool,
        eval_batches: tf.data.Dataset,
    ) -> "TrainingCallbacks":
        """Returns those of a recipe.

        Args:
            recipe: the `Recipe`.
            inputs: the training's.
            steps_per_epoch: batches of an epoch.
            is_chief: whether this process says how the training goes, and writes its logs.
            eval_batches: the batches of the eval split.
        """
        config = recipe.training
        selection = Selection.of_training(config)
        average = make_average(config)
        decoded = _decoded_metric(recipe, inputs, selection)

        def measure() -> dict[str, float]:
            measured = best.model.evaluate(eval_batches, verbose=0, return_dict=True)
            logs = {"val_loss": measured["loss"]}
            return {**logs, selection.log: decoded.measure()} if decoded else logs

        best = BestWeights(
            selection,
            config.patience or config.epochs,
            measure,
            inputs.initial is not None,
            config.average_epochs if config.average == "best" else 0,
        )
        schedule = Schedule(config, steps_per_epoch, best)
        progress = Progress(recipe.model.head if is_chief else None, schedule, selection)
        callbacks: list[keras.callbacks.Callback] = [
            *([average] if average else []),
            *([decoded] if decoded else []),
            best,
            schedule,
            progress,
            keras.callbacks.TerminateOnNaN(),
        ]
        if config.scheduled_sampling != "none":
            callbacks.append(ScheduledSampling(config))
        if views.segments(recipe):
            callbacks.append(SegmentationPhases(recipe.segmentation, config.accumulated_batches))
        if inputs.log_directory and is_chief:
            callbacks.append(keras.callbacks.TensorBoard(inputs.log_directory))
            callbacks += _pictures(recipe, inputs, inputs.log_directory)
        if average:
            callbacks.append(TrainedWeights(average))
        return cls(schedule, progress, callbacks)


def _decoded_metric(
    recipe: Recipe, inputs: TrainingInputs, selection: Selection
) -> DecodedMetric | None:
    if selection.name == "loss":
        return None
    assert inputs.target_vocabulary is not None, "a metric of outputs needs the target's words"
    pairs = EvalDecoding.of(recipe, inputs.eval_files, inputs.target_vocabulary)
    return DecodedMetric(pairs, selection)


def _pictures(
    recipe: Recipe, inputs: TrainingInputs, log_directory: str
) -> list[keras.callbacks.Callback]:
    names = (
        "source_ids",
        "source_extended_ids",
        "source_feed_ids",
        *feature_names.encoder_features(recipe),
    )
    shown = read_shown(inputs.eval_files, names)
    if not shown:
        return []
    return [AttentionPictures(log_directory, *shown, inputs.target_vocabulary)]
