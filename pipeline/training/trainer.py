"""Trains the recipe's model on transformed examples."""

import keras
import tensorflow as tf
import tensorflow_transform as tft

from keras_models.models.seq2seq import Seq2Seq
from pipeline.common import progress
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import TrainingConfig
from pipeline.training import (
    data_parallel,
    determinism,
    initial_weights,
    replicas,
)
from pipeline.training.checkpointing import Checkpointing, TrainingState, load_state
from pipeline.training.checkpoints import Checkpoints, digest_of, shapes_of
from pipeline.training.ensemble_training import train_members
from pipeline.training.fitting import Fitting
from pipeline.training.learning_shares import freeze, shares
from pipeline.training.loaded_split import LoadedSplit
from pipeline.training.model_building import build_model
from pipeline.training.optimizer import make_optimizer
from pipeline.training.trainer_arguments import TrainerArguments
from pipeline.training.trainer_outputs import InitialFacts, TrainingFacts
from pipeline.training.training_callbacks import TrainingCallbacks
from pipeline.training.training_inputs import TrainingInputs
from pipeline.training.unknown_words import hide_words
from pipeline.training.workers import Workers


def train(
    recipe: Recipe,
    inputs: TrainingInputs,
    checkpoints: Checkpoints | None = None,
    workers: Workers | None = None,
) -> tuple[keras.Model, TrainingFacts]:
    """Trains a recipe's model, from its last checkpoint if it was stopped before.

    Args:
        recipe: a `Recipe`.
        inputs: files, and what the network must know of them.
        checkpoints: those to resume from and to write; None keeps none.
        workers: those to train with; None trains alone.

    Returns:
        The model with the weights that `training.keep` chooses, and the facts of its training.

    Raises:
        ValueError: no pair fits the buckets, the head cannot output a pair's target, or no epoch
            ended with a finite loss.
        InitialModelError: the network cannot begin with the weights of the given model.
    """
    config = recipe.training
    keras.utils.set_random_seed(config.seed)
    checkpoints = checkpoints or Checkpoints()
    folder = checkpoints.scratch()
    training = LoadedSplit.read(
        inputs.train_files, "training", recipe, config.seed, folder, inputs.cutting
    )
    held_out = LoadedSplit.read(inputs.eval_files, "eval", recipe, folder=folder)
    steps_per_epoch = training.batches.steps
    eval_batches = held_out.batches.epoch()

    def batches_of(epoch: int, first: int) -> tf.data.Dataset:
        batches = training.batches.epoch(epoch, first)
        return hide_words(batches, config.unknown_word_rate, config.seed, epoch, first)

    # Several workers have plain variables: see `data_parallel`.
    strategy = tf.distribute.get_strategy() if workers else replicas.strategy()
    with strategy.scope():
        model = build_model(recipe, inputs.model)
        initial = _begin_with(model, inputs)
        _compile(model, config, strategy.num_replicas_in_sync)
    is_chief = workers is None or workers.is_chief
    callbacks = TrainingCallbacks.of(recipe, inputs, steps_per_epoch, is_chief, eval_batches)
    count = workers.count if workers else strategy.num_replicas_in_sync
    digest = digest_of(
        recipe.to_dict(),
        training.digest,
        held_out.digest,
        *inputs.model.arrays(),
        *(inputs.initial.weights if inputs.initial else ()),
        count,
        shapes_of(model),
    )
    state = load_state(checkpoints, digest)
    done = _updates_done(state, config.accumulated_batches)
    if state and is_chief:
        progress.say(f"{recipe.model.head}: resumes from a checkpoint, after {done} updates.")
    checkpointing = Checkpointing(checkpoints, state, callbacks.all, steps_per_epoch)
    # As large as model and optimizer together.
    del state
    fitting = Fitting(model, batches_of, eval_batches, config.epochs, callbacks.all, checkpointing)
    with determinism.same_bits(config.deterministic), callbacks.progress.counted(done):
        if workers:
            data_parallel.fit(fitting, workers, digest)
        else:
            fitting.run()
    if not callbacks.progress.curve:
        checkpoints.clear()
        raise ValueError("The training gave no finite loss: lower training.learning_rate.")
    facts: TrainingFacts = {
        "head": recipe.model.head,
        "curve": callbacks.progress.curve,
        "parameters": int(model.count_params()),
        "seconds": round(checkpointing.seconds, 1),
        "steps_per_epoch": steps_per_epoch,
        "updates": callbacks.schedule.updates,
        "workers": count,
        "pairs": training.pairs,
        "too_long": training.too_long,
    }
    if training.batches.corpora:
        facts["corpora"] = training.batches.corpora
    if initial:
        facts["initialized_from"] = initial
    return model, facts


def train_transformed(
    recipe: Recipe,
    arguments: TrainerArguments,
    transform_output: tft.TFTransformOutput,
    checkpoints: Checkpoints | None = None,
    workers: Workers | None = None,
) -> tuple[keras.Model, TrainingFacts]:
    """Trains on the files of TFX's Trainer; returns what `train`, or `train_members`, does."""
    inputs = TrainingInputs.of(recipe, arguments, transform_output)
    if recipe.training.ensemble == 1:
        return train(recipe, inputs, checkpoints, workers)
    return train_members(
        recipe,
        inputs,
        checkpoints or Checkpoints(),
        lambda member, own, kept: train(member, own, kept, workers),
    )


def _begin_with(model: keras.Model, inputs: TrainingInputs) -> InitialFacts | None:
    """Gives the network the weights of the model that it goes on from, if there is one."""
    return initial_weights.take(model, inputs.initial, inputs.words) if inputs.initial else None


def _compile(model: Seq2Seq, config: TrainingConfig, replica_count: int) -> None:
    freeze(model, config.frozen)
    optimizer = make_optimizer(config)
    if config.layer_decay != 1.0:
        optimizer.slow_down(shares(model, config.layer_decay))
    model.compile(
        optimizer=optimizer,
        loss=replicas.loss(replica_count),
        # XLA on a CPU gains nothing here, and compiles each of the many bucket shapes anew.
        jit_compile=False,
    )
    # With all variables there, the first step's graph is made one time; TensorFlow makes one that
    # creates variables twice.
    optimizer.build(model.trainable_variables)


def _updates_done(state: TrainingState | None, accumulated_batches: int) -> int:
    if state is None:
        return 0
    batches: int = state["callbacks"]["Schedule"]["batches"]
    return batches // accumulated_batches
