"""Training of the task `language_model`: passages to one stream, the stream to a model."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from numpy.typing import NDArray

from keras_models import language_modeling
from keras_models.models import LanguageModel
from pipeline.common import progress
from pipeline.features import vocabulary_files
from pipeline.recipes.recipe import Recipe
from pipeline.training import determinism, heat_maps, initial_weights, precision, stored_streams
from pipeline.training.checkpoints import Checkpoints, digest_of, shapes_of
from pipeline.training.language_model_inputs import LanguageModelInputs
from pipeline.training.trainer_arguments import TrainerArguments
from pipeline.training.trainer_outputs import CurvePoint, TrainingFacts


def build_model(recipe: Recipe, vocabulary_size: int) -> LanguageModel:
    """Builds the untrained network that a recipe describes."""
    settings = recipe.language_model
    return LanguageModel(
        vocabulary_size,
        head=recipe.model.head,
        window=settings.window,
        embedding_size=recipe.model.embedding_size,
        hidden_size=recipe.model.hidden_size,
        recurrent_layers=settings.recurrent_layers,
        dropout=recipe.model.dropout,
        zoneout_hidden=settings.zoneout_hidden,
        zoneout_cell=settings.zoneout_cell,
        tie_weights=settings.tie_weights or recipe.model.tie_embeddings == "target",
        unit_embeddings=settings.first_embeddings == "unit",
        dtype=precision.policy(recipe.training),
    )


def fit_options(recipe: Recipe) -> language_modeling.FitOptions:
    """Returns the `FitOptions` of a recipe."""
    settings = recipe.language_model
    return language_modeling.FitOptions(
        batch_size=settings.batch_size,
        stride=settings.stride,
        carry=settings.carry,
        optimizer=settings.optimizer,
        learning_rate=recipe.training.learning_rate,
        clip_norm=recipe.training.gradient_clip_norm,
        max_epochs=recipe.training.epochs,
        patience=settings.patience,
        evaluation_batch_size=settings.evaluation_batch_size,
        max_seconds=recipe.training.max_seconds or None,
        # On a GPU the loop over time is launched as one program; on a CPU compiling it gains
        # nothing.
        jit_compile=bool(tf.config.list_physical_devices("GPU")),
    )


def train(
    recipe: Recipe, inputs: LanguageModelInputs, checkpoints: Checkpoints | None = None
) -> tuple[LanguageModel, TrainingFacts]:
    """Trains a recipe's model, from its last checkpoint if it was stopped before.

    Args:
        recipe: a `Recipe` of the task `language_model`.
        inputs: files, and the vocabulary.
        checkpoints: those to resume from and to write; None keeps none.

    Returns:
        The model with the weights of its best epoch, and the facts of its training.

    Raises:
        ValueError: the text is too short, or no epoch ended with a finite perplexity.
    """
    keras.utils.set_random_seed(recipe.training.seed)
    checkpoints = checkpoints or Checkpoints()
    train_ids, eval_ids = (
        stored_streams.read_stream(files, checkpoints.scratch())
        for files in (inputs.train_files, inputs.eval_files)
    )
    model = build_model(recipe, inputs.vocabulary_size)
    options = fit_options(recipe)
    initial = None
    if inputs.initial:
        words = {vocabulary_files.TARGET_VOCABULARY_FILE: inputs.vocabulary or ()}
        initial = initial_weights.take(model, inputs.initial, words, is_language_model=True)
        options = dataclasses.replace(options, keep_first=True)
    weights = inputs.initial.weights if inputs.initial else ()
    state = checkpoints.load(
        digest_of(recipe.to_dict(), train_ids, eval_ids, shapes_of(model), *weights)
    )
    done = state["done"] if state else 0
    if state:
        progress.say(f"{recipe.model.head}: resumes from a checkpoint, after {done} updates.")
    watcher = _EpochWatcher(recipe, model, eval_ids, inputs)
    started = time.monotonic() - (state["seconds"] if state else 0.0)
    try:
        total = _most_updates(model, train_ids, options)
        label = f"training {recipe.model.head}"
        with (
            determinism.same_bits(recipe.training.deterministic),
            progress.counted(label, total, "updates", done) as advance,
        ):

            def after_update(state_now: Callable[[], dict[str, Any]], at_epoch_end: bool) -> None:
                advance(1)
                if checkpoints.due(at_epoch_end):
                    checkpoints.save(state_now())

            history = language_modeling.fit(
                model, train_ids, eval_ids, options, watcher, state, after_update
            )
    except ValueError:
        # Another attempt would end as this one.
        checkpoints.clear()
        raise
    finite = [entry for entry in history if math.isfinite(entry["loss"] + entry["perplexity"])]
    facts: TrainingFacts = {
        "head": recipe.model.head,
        "curve": [_point(entry) for entry in finite],
        "parameters": int(model.count_params()),
        "seconds": round(time.monotonic() - started, 1),
        "updates": history[-1]["updates"],
        "words": {"train": len(train_ids), "eval": len(eval_ids)},
        "validation_perplexity": min(entry["perplexity"] for entry in history),
    }
    if initial:
        facts["initialized_from"] = initial
    return model, facts


def train_transformed(
    recipe: Recipe,
    arguments: TrainerArguments,
    transform_output: tft.TFTransformOutput,
    checkpoints: Checkpoints | None = None,
) -> tuple[LanguageModel, TrainingFacts]:
    """Trains on the files of TFX's Trainer; returns what `train` does."""
    return train(recipe, LanguageModelInputs.of(arguments, transform_output), checkpoints)


class _EpochWatcher:
    """Reports the end of each epoch, and writes its numbers and heat maps to TensorBoard."""

    def __init__(
        self,
        recipe: Recipe,
        model: LanguageModel,
        eval_ids: NDArray[np.int32],
        inputs: LanguageModelInputs,
    ) -> None:
        self._recipe = recipe
        self._model = model
        self._eval_ids = eval_ids
        self._writer = None
        if inputs.log_directory:
            self._writer = tf.summary.create_file_writer(inputs.log_directory)
        vocabulary = inputs.vocabulary
        self._words = [
            vocabulary[number] if vocabulary else str(number) for number in eval_ids.tolist()
        ]
        # Some words of the eval text, evenly from its end, for the heat maps.
        step = max(1, len(eval_ids) // heat_maps.SHOWN)
        self._shown = range(len(eval_ids) - 1, 0, -step) if model.points else range(0)

    def __call__(self, entry: dict[str, Any]) -> None:
        if self._writer:
            with self._writer.as_default(step=entry["epoch"]):
                self._write(entry)
        progress.say(
            f"{self._recipe.model.head}: epoch {entry['epoch']}/{self._recipe.training.epochs}  "
            f"loss {entry['loss']:.3f}  validation perplexity {entry['perplexity']:.2f}  "
            f"learning rate {entry['learning_rate']:.2g}  {entry['seconds']:.0f} s"
        )

    def _write(self, entry: dict[str, Any]) -> None:
        tf.summary.scalar("loss", entry["loss"])
        tf.summary.scalar("validation_perplexity", entry["perplexity"])
        for number, end in enumerate(self._shown):
            heat_map = heat_maps.pointer_map(self._model, self._eval_ids, self._words, end)
            heat_maps.write_summary(f"pointer/{number + 1}", heat_map, step=entry["epoch"])


def _most_updates(
    model: LanguageModel, train_ids: NDArray[np.int32], options: language_modeling.FitOptions
) -> int:
    """Returns how many updates all epochs have; patience may end the training sooner.

    Raises:
        ValueError: the text is too short.
    """
    rows = language_modeling.Rows(train_ids, options.batch_size)
    stride = options.stride or model.window
    walk = language_modeling.updates_of(rows.length, model.window, stride, options.carry)
    return len(walk) * options.max_epochs


def _point(entry: dict[str, Any]) -> CurvePoint:
    """Returns an epoch's point on the curve."""
    return {
        "epoch": entry["epoch"],
        "seconds": entry["seconds"],
        "loss": entry["loss"],
        "learning_rate": entry["learning_rate"],
        "perplexity": entry["perplexity"],
        "eval_loss": float(np.log(entry["perplexity"])),
    }
