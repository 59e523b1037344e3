"""TFX Trainer's entry: trains the recipe's model on transformed examples."""

import dataclasses
import json
import math
import os
import time

import keras
import tensorflow as tf
import tensorflow_transform as tft

from keras_models import losses
from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from pipeline import configs, heat_maps, preprocessing, scheduled_sampling, segmentation_phases, tasks, training_data
from pipeline.recipe_choices import LEXICON_HEADS

HISTORY_FILE = "history.json"  # of a training: see `read_history`


def head_options(recipe):
    """Returns the recipe's own arguments of its head."""
    model = recipe.model
    return {
        "pointer_softmax": {"inverse_temperature": model.inverse_temperature, "activation": model.switch_activation},
        "joint_copy": {"tanh": model.copy_tanh},
        "span_copy": {"max_span": model.max_span, "copying_context": model.copying_context},
        "lexicon_bias": {"epsilon": model.lexicon_epsilon},
        "lexicon_linear": {"gate": model.lexicon_gate},
    }.get(model.head, {})


def segmentation_options(config):
    """Returns the recipe's arguments of its segmentation's policy and composer."""
    led_by_callback = ("warm_up_updates", "alternate_updates")
    return {name: value for name, value in dataclasses.asdict(config).items() if name not in led_by_callback}


def build_model(
    recipe, source_vocabulary_size, target_vocabulary_size, source_features=None, lexicon=None, characters=0
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
            coverage=config.coverage,
            segmentation=segmentation_options(recipe.segmentation) if configs.segments(recipe) else None,
            **options,
        )
    if lexicon:
        model.set_lexicon(*lexicon)
    return model


def learning_rate_at(progress, step, config):
    """Linear warm-up over steps times a half cosine over progress.

        rate = learning_rate * min(1, step / warmup_steps) * (f + (1 - f) (1 + cos(pi progress)) / 2)

    Args:
        progress: share of the training done, 0 to 1.
        step: update number, from 1.
        config: the recipe's training section; f is `final_learning_rate_share`.
    """
    floor = config.final_learning_rate_share
    decay = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return config.learning_rate * min(1.0, step / max(config.warmup_steps, 1)) * decay


class Schedule(keras.callbacks.Callback):
    """Sets the learning rate by progress, and ends the training when its time is used up.

    Progress is the larger of the share of the epochs and the share of `max_seconds`, so that on a slow machine the rate still
    falls to its end instead of being cut off in the middle.
    """

    def __init__(self, config, steps_per_epoch):
        super().__init__()
        self.config = config
        self.steps_per_epoch = steps_per_epoch
        self.step = 0
        self.updates = 0
        self.started = None

    def _progress(self):
        share = self.step / (self.steps_per_epoch * self.config.epochs)
        if self.config.max_seconds:
            share = max(share, (time.monotonic() - self.started) / self.config.max_seconds)
        return share

    def on_train_begin(self, logs=None):
        self.started = time.monotonic()

    def on_train_batch_begin(self, batch, logs=None):
        self.step += 1
        self.model.optimizer.learning_rate.assign(learning_rate_at(self._progress(), self.step, self.config))

    def on_train_batch_end(self, batch, logs=None):
        # Not the optimizer's number: Keras begins one step more an epoch, which finds no batch.
        self.updates += 1
        if self.config.max_seconds and time.monotonic() - self.started > self.config.max_seconds:
            self.model.stop_training = True


class Progress(keras.callbacks.Callback):
    """Says on standard output how the training goes, and keeps the curve."""

    def __init__(self, label, epochs):
        super().__init__()
        self.label = label
        self.epochs = epochs
        self.curve = []

    def on_train_begin(self, logs=None):
        self.started = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        point = {
            "epoch": epoch + 1,
            "seconds": round(time.monotonic() - self.started, 1),
            "loss": float(logs["loss"]),
            "eval_loss": float(logs["val_loss"]),
        }
        # A loss that is not finite ends the training (TerminateOnNaN); JSON has no word for it, and a curve no point.
        if math.isfinite(point["loss"]) and math.isfinite(point["eval_loss"]):
            self.curve.append(point)
        print(
            f"  {self.label}: epoch {point['epoch']}/{self.epochs}  loss {point['loss']:.3f}  "
            f"eval loss {point['eval_loss']:.3f}  {point['seconds']:.0f} s",
            flush=True,
        )


def _strategy():
    """One replica a GPU where there are several; else no strategy's overhead."""
    gpus = tf.config.list_physical_devices("GPU")
    return tf.distribute.MirroredStrategy() if len(gpus) > 1 else tf.distribute.get_strategy()


def _load_batches(files, name, recipe, shuffle_seed=None):
    """Returns a split's batches, its number of pairs, and how many of these fit no bucket; says so if there are any."""
    config = recipe.training
    training_data.check_head(recipe.model.head, files, name)
    features = (
        *preprocessing.ID_FEATURES,
        *preprocessing.label_features(recipe),
        *preprocessing.encoder_features(recipe),
    )
    if config.scheduled_sampling != "none":
        features = (*features, "source_feed_ids")
    examples = training_data.read_examples(files, features)
    longest = config.bucket_lengths[-1]
    too_long, pairs = training_data.count_too_long(examples, config.bucket_lengths)
    if too_long == pairs:
        raise ValueError(
            f"None of the {pairs} {name} pairs has at most {longest} tokens: raise the last of training.bucket_lengths."
        )
    if too_long:
        print(
            f"  {too_long} of {pairs} {name} pairs are longer than {longest} tokens and left out (training.bucket_lengths).",
            flush=True,
        )
    batches = training_data.make_batches(examples, config.bucket_lengths, config.batch_tokens, shuffle_seed)
    return batches, pairs, too_long


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
):
    """Trains a recipe's model.

    Args:
        recipe: a `Recipe`.
        train_files, eval_files: lists of file patterns of transformed examples.
        source_vocabulary_size, target_vocabulary_size: numbers of ids.
        log_directory: where TensorBoard's logs go, if given.
        source_features, lexicon, characters: see `build_model`.
        target_vocabulary: the target's words by id, for the tokens beside TensorBoard's heat maps.

    Returns:
        The model with the weights of its best epoch by eval loss, and a dict of facts: `curve`, `parameters`, `seconds`, `updates`,
        `too_long` (training pairs left out because no bucket holds them), `pairs`.

    Raises:
        ValueError: no pair fits the buckets, the head cannot output a pair's target, or no epoch ended with a finite loss.
    """
    config = recipe.training
    keras.utils.set_random_seed(config.seed)
    batches, pairs, too_long = _load_batches(train_files, "training", recipe, config.seed)
    eval_batches, _, _ = _load_batches(eval_files, "eval", recipe)
    steps_per_epoch = sum(1 for _ in batches)
    with _strategy().scope():
        sizes = (source_vocabulary_size, target_vocabulary_size)
        model = build_model(recipe, *sizes, source_features, lexicon, characters)
        model.compile(
            optimizer=keras.optimizers.Adam(config.learning_rate, global_clipnorm=config.gradient_clip_norm or None),
            loss=losses.negative_log_likelihood,
            # XLA on a CPU gains nothing here, and compiles each of the many bucket shapes anew.
            jit_compile=False,
        )
        # With all variables there, the first step's graph is made once; TensorFlow makes one that creates variables twice.
        model.optimizer.build(model.trainable_variables)
    progress = Progress(recipe.model.head, config.epochs)
    schedule = Schedule(config, steps_per_epoch)
    callbacks = [
        schedule,
        progress,
        keras.callbacks.EarlyStopping("val_loss", patience=config.epochs, restore_best_weights=True),
        keras.callbacks.TerminateOnNaN(),
    ]
    if config.scheduled_sampling != "none":
        callbacks.append(scheduled_sampling.ScheduledSampling(config))
    if configs.segments(recipe):
        callbacks.append(segmentation_phases.SegmentationPhases(recipe.segmentation))
    if log_directory:
        callbacks.append(keras.callbacks.TensorBoard(log_directory))
        names = ("source_ids", "source_extended_ids", "source_feed_ids", *preprocessing.encoder_features(recipe))
        if shown := heat_maps.read_shown(eval_files, names):
            callbacks.append(heat_maps.AttentionPictures(log_directory, *shown, target_vocabulary))
    started = time.monotonic()
    model.fit(batches, validation_data=eval_batches, epochs=config.epochs, callbacks=callbacks, verbose=0)
    if not progress.curve:
        raise ValueError("The training gave no finite loss: lower training.learning_rate.")
    facts = {
        "head": recipe.model.head,
        "curve": progress.curve,
        "parameters": int(model.count_params()),
        "seconds": round(time.monotonic() - started, 1),
        "steps_per_epoch": steps_per_epoch,
        "updates": schedule.updates,
        "pairs": pairs,
        "too_long": too_long,
    }
    return model, facts


def train_transformed(recipe, fn_args, transform_output):
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
        lexicon=preprocessing.read_lexicon(transform_output) if recipe.model.head in LEXICON_HEADS else None,
        characters=preprocessing.count_characters(transform_output) if configs.composes(recipe) else 0,
        target_vocabulary=vocabularies[1],
    )


def model_path(directory):
    """Returns where in the folder of a Trainer's model the trained network is."""
    return os.path.join(directory, "model.keras")


def run_fn(fn_args):
    """Trains; called by TFX's Trainer. Exporter makes of the network what is served.

    Args:
        fn_args: TFX's; `custom_config["recipe"]` is what `Recipe.to_json` gives.
    """
    recipe = configs.Recipe.from_json(fn_args.custom_config["recipe"])
    model, facts = tasks.train(recipe, fn_args, tft.TFTransformOutput(fn_args.transform_graph_path))
    for directory in (fn_args.serving_model_dir, fn_args.model_run_dir):
        tf.io.gfile.makedirs(directory)
    model.save(model_path(fn_args.serving_model_dir))
    with tf.io.gfile.GFile(os.path.join(fn_args.model_run_dir, HISTORY_FILE), "w") as file:
        json.dump(facts, file, indent=1)


def read_history(model_run):
    """Returns the facts of a training from its `model_run` artifact: `head`, `curve`, `parameters`, `seconds`, `updates` and more."""
    with open(os.path.join(model_run, HISTORY_FILE), encoding="utf-8") as file:
        return json.load(file)
