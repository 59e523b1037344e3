"""Trains the recipe's model on transformed examples."""

import dataclasses

import keras
import tensorflow as tf

from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from pipeline.features import preprocessing
from pipeline.recipes import views
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.training import (
    checkpoints,
    data_parallel,
    determinism,
    heat_maps,
    replicas,
    scheduled_sampling,
    segmentation_phases,
    training_callbacks,
    training_data,
)
from pipeline.training.optimizer import Adam


def head_options(recipe):
    """Returns the recipe's own arguments of its head."""
    model = recipe.model
    return {
        "pointer_softmax": {
            "inverse_temperature": model.inverse_temperature,
            "activation": model.switch_activation,
        },
        "joint_copy": {"tanh": model.copy_tanh},
        "span_copy": {"max_span": model.max_span, "copying_context": model.copying_context},
        "lexicon_bias": {"epsilon": model.lexicon_epsilon},
        "lexicon_linear": {"gate": model.lexicon_gate},
    }.get(model.head, {})


def segmentation_options(config):
    """Returns the recipe's arguments of its segmentation's policy and composer."""
    led_by_callback = ("warm_up_updates", "alternate_updates")
    return {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name not in led_by_callback
    }


def build_model(
    recipe,
    source_vocabulary_size,
    target_vocabulary_size,
    source_features=None,
    lexicon=None,
    characters=0,
):
    """Builds the untrained network that a recipe describes.

    Args:
        recipe: a `Recipe`.
        source_vocabulary_size, target_vocabulary_size: numbers of ids.
        source_features: what `preprocessing.encoder_feature_sizes` gives, or None.
        lexicon: what `preprocessing.read_lexicon` gives, for heads that read it.
        characters: number of character ids, where words are composed of them.
    """
    config, training = recipe.model, recipe.training
    options = {
        "source_vocabulary_size": source_vocabulary_size,
        "target_vocabulary_size": target_vocabulary_size,
        "head": config.head,
        "head_options": head_options(recipe),
        "source_features": source_features,
        "feature_size": config.feature_size,
        "embedding_size": config.embedding_size,
        "hidden_size": config.hidden_size,
        "encoder_layers": config.encoder_layers,
        "dropout": config.dropout,
        "coverage_loss_weight": training.coverage_loss_weight if config.coverage else 0.0,
        "large_vocabulary_size": training.large_vocabulary_size,
        "large_vocabulary_drawn": training.large_vocabulary_drawn,
        "scheduled_sampling": training.scheduled_sampling != "none",
        "lexicon_shape": lexicon[0].shape if lexicon else None,
        "composition": config.composition,
        "composition_options": {
            "word_length": config.word_length,
            "characters": characters,
            "buckets": config.ngram_buckets,
        },
        "dtype": "mixed_bfloat16" if training.mixed_precision else "float32",
    }
    if config.body == "transformer":
        model = TransformerSeq2Seq(
            decoder_layers=config.decoder_layers,
            attention_heads=config.attention_heads,
            feed_forward_size=config.feed_forward_size,
            **options,
        )
    else:
        model = RecurrentSeq2Seq(
            cell=config.cell,
            encoder=config.encoder,
            kernel_size=config.kernel_size,
            attention=config.attention,
            input_feeding=config.input_feeding,
            selective_read=config.selective_read,
            initial_range=config.initial_range,
            coverage=config.coverage,
            segmentation=segmentation_options(recipe.segmentation)
            if views.segments(recipe)
            else None,
            **options,
        )
    if lexicon:
        model.set_lexicon(*lexicon)
    return model


def _load_examples(files, name, recipe):
    """Returns a split's pairs, their digest, their number, and how many of them fit no bucket;
    says so if there are any.
    """
    config = recipe.training
    training_data.check_head(recipe.model.head, files, name)
    features = (
        *preprocessing.ID_FEATURES,
        *preprocessing.label_features(recipe),
        *preprocessing.encoder_features(recipe),
    )
    if config.scheduled_sampling != "none":
        features = (*features, "source_feed_ids")
    examples, digest = training_data.read_examples_and_digest(files, features)
    longest = config.bucket_lengths[-1]
    too_long, pairs = training_data.count_too_long(examples, config.bucket_lengths)
    if too_long == pairs:
        raise ValueError(
            f"None of the {pairs} {name} pairs has at most {longest} tokens: raise the last of "
            "training.bucket_lengths."
        )
    if too_long:
        print(
            f"  {too_long} of {pairs} {name} pairs are longer than {longest} tokens and left out "
            "(training.bucket_lengths).",
            flush=True,
        )
    return examples, digest, pairs, too_long


def train(
    recipe,
    train_files,
    eval_files,
    source_vocabulary_size,
    target_vocabulary_size,
    log_directory=None,
    source_features=None,
    lexicon=None,
    characters=0,
    target_vocabulary=None,
    kept=None,
    workers=None,
):
    """Trains a recipe's model, from its last checkpoint if it was stopped before.

    Args:
        recipe: a `Recipe`.
        train_files, eval_files: lists of file patterns of transformed examples.
        source_vocabulary_size, target_vocabulary_size: numbers of ids.
        log_directory: where TensorBoard's logs go, if given.
        source_features, lexicon, characters: see `build_model`.
        target_vocabulary: the target's words by id, for the tokens beside TensorBoard's heat maps.
        kept: the `checkpoints.Checkpoints` to go on from and to write; None keeps none.
        workers: the `data_parallel.Workers` to train with; None trains alone.

    Returns:
        The model with the weights of its best epoch by eval loss, and a dict of facts: `curve`,
        `parameters`, `seconds`, `updates`, `too_long` (training pairs left out because no bucket
        holds them), `pairs`.

    Raises:
        ValueError: no pair fits the buckets, the head cannot output a pair's target, or no epoch
            ended with a finite loss.
    """
    config = recipe.training
    keras.utils.set_random_seed(config.seed)
    examples, digest, pairs, too_long = _load_examples(train_files, "training", recipe)
    eval_examples, eval_digest, _, _ = _load_examples(eval_files, "eval", recipe)
    sizes = (config.bucket_lengths, config.batch_tokens)
    eval_batches = training_data.make_batches(eval_examples, *sizes)
    steps_per_epoch = sum(1 for _ in training_data.make_batches(examples, *sizes, config.seed))

    def batches_of(epoch):
        return training_data.make_batches(examples, *sizes, config.seed, epoch)

    # Several workers have plain variables: see `data_parallel`.
    strategy = tf.distribute.get_strategy() if workers else replicas.strategy()
    is_chief = workers is None or workers.is_chief
    with strategy.scope():
        vocabulary_sizes = (source_vocabulary_size, target_vocabulary_size)
        model = build_model(recipe, *vocabulary_sizes, source_features, lexicon, characters)
        model.compile(
            optimizer=Adam(
                config.learning_rate, config.gradient_clip_norm or None, config.accumulated_batches
            ),
            loss=replicas.loss(strategy.num_replicas_in_sync),
            # XLA on a CPU gains nothing here, and compiles each of the many bucket shapes anew.
            jit_compile=False,
        )
        # With all variables there, the first step's graph is made once; TensorFlow makes one that
        # creates variables twice.
        model.optimizer.build(model.trainable_variables)
    progress = training_callbacks.Progress(recipe.model.head if is_chief else None, config.epochs)
    schedule = training_callbacks.Schedule(config, steps_per_epoch)
    callbacks = [
        schedule,
        progress,
        training_callbacks.BestWeights(config.epochs),
        keras.callbacks.TerminateOnNaN(),
    ]
    if config.scheduled_sampling != "none":
        callbacks.append(scheduled_sampling.ScheduledSampling(config))
    if views.segments(recipe):
        callbacks.append(
            segmentation_phases.SegmentationPhases(recipe.segmentation, config.accumulated_batches)
        )
    if log_directory and is_chief:
        callbacks.append(keras.callbacks.TensorBoard(log_directory))
        names = (
            "source_ids",
            "source_extended_ids",
            "source_feed_ids",
            *preprocessing.encoder_features(recipe),
        )
        if shown := heat_maps.read_shown(eval_files, names):
            callbacks.append(heat_maps.AttentionPictures(log_directory, *shown, target_vocabulary))
    kept = kept or checkpoints.Checkpoints()
    shapes = checkpoints.shapes_of(model)
    count = workers.count if workers else strategy.num_replicas_in_sync
    made_from = checkpoints.digest_of(
        recipe.to_dict(), digest, eval_digest, *(lexicon or ()), count, shapes
    )
    state = kept.load(made_from)
    if state and is_chief:
        done = state["callbacks"]["Schedule"]["batches"] // config.accumulated_batches
        print(
            f"  {recipe.model.head}: goes on from a checkpoint, after {done} updates.", flush=True
        )
    checkpointing = training_callbacks.Checkpointing(kept, state, callbacks, steps_per_epoch)
    del state  # As large as model and optimizer together.
    arguments = (batches_of, eval_batches, config.epochs, [*callbacks, checkpointing])
    with determinism.same_bits(config.deterministic):
        if workers:
            data_parallel.fit(model, workers, *arguments, made_from)
        else:
            _fit(model, *arguments)
    if not progress.curve:
        kept.clear()
        raise ValueError("The training gave no finite loss: lower training.learning_rate.")
    facts = {
        "head": recipe.model.head,
        "curve": progress.curve,
        "parameters": int(model.count_params()),
        "seconds": round(checkpointing.seconds, 1),
        "steps_per_epoch": steps_per_epoch,
        "updates": schedule.updates,
        "workers": count,
        "pairs": pairs,
        "too_long": too_long,
    }
    return model, facts


def _fit(model, batches_of, eval_batches, epochs, callbacks):
    """Trains a model from where the last of the callbacks, a `Checkpointing`, says, to the end of
    the epochs.
    """
    checkpointing = callbacks[-1]
    skipped, stopped = checkpointing.batch, checkpointing.stopped
    one = training_callbacks.OneTraining(
        callbacks, add_history=True, model=model, verbose=0, epochs=epochs
    )
    one.begin()
    # Each epoch is a fit of its own: how often Keras begins the batches anew within one, and so
    # which order comes next, is its own affair.
    for epoch in range(checkpointing.epoch, epochs):
        if stopped:
            break
        batches = batches_of(epoch).skip(skipped)
        # Without their number Keras asks for a batch too many, and random generators may or may not
        # move on before its end is found.
        batches = batches.apply(
            tf.data.experimental.assert_cardinality(checkpointing.steps_per_epoch - skipped)
        )
        options = {"initial_epoch": epoch, "epochs": epoch + 1, "verbose": 0}
        model.fit(batches, validation_data=eval_batches, callbacks=one, **options)
        skipped, stopped = 0, model.stop_training
    one.end()


def train_transformed(recipe, fn_args, transform_output, kept=None, workers=None):
    """Trains on the files of TFX's `fn_args`; returns what `train` does."""
    names = (preprocessing.SOURCE_VOCABULARY_FILE, preprocessing.TARGET_VOCABULARY_FILE)
    vocabularies = [preprocessing.read_vocabulary(transform_output, name) for name in names]
    return train(
        recipe,
        fn_args.train_files,
        fn_args.eval_files,
        *map(len, vocabularies),
        log_directory=fn_args.model_run_dir,
        source_features=preprocessing.encoder_feature_sizes(transform_output, recipe),
        lexicon=preprocessing.read_lexicon(transform_output)
        if recipe.model.head in LEXICON_HEADS
        else None,
        characters=preprocessing.count_characters(transform_output)
        if views.composes(recipe)
        else 0,
        target_vocabulary=vocabularies[1],
        kept=kept,
        workers=workers,
    )
