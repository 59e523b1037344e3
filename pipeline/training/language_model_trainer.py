"""Training of the task `language_model`: transformed passages to one stream, the stream to a model."""

import math
import time

import keras
import numpy as np
import tensorflow as tf

from keras_models import language_modeling
from keras_models.models import LanguageModel
from pipeline.features import language_model_preprocessing, preprocessing
from pipeline.training import checkpoints, determinism, heat_maps


def build_model(recipe, vocabulary_size):
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
        tie_weights=settings.tie_weights,
        dtype="mixed_bfloat16" if recipe.training.mixed_precision else "float32",
    )


def fit_options(recipe):
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


def read_stream(file_patterns):
    """Reads transformed passages back into the stream that they were cut from.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.

    Returns:
        int32 `[words]`. What a passage repeats of the one before is left out.
    """
    features = {
        "ids": tf.io.RaggedFeature(tf.int64),
        "context": tf.io.FixedLenFeature([], tf.int64),
        "order": tf.io.FixedLenFeature([], tf.int64),
    }
    files = tf.data.Dataset.list_files(file_patterns, shuffle=False)
    records = tf.data.TFRecordDataset(files, compression_type="GZIP")
    passages = []
    for parsed in records.map(
        lambda record: tf.io.parse_single_example(record, features)
    ).as_numpy_iterator():
        passages.append(
            (int(parsed["order"]), parsed["ids"][int(parsed["context"]) :].astype("int32"))
        )
    # Beam keeps no order.
    passages.sort(key=lambda passage: passage[0])
    return np.concatenate([ids for _, ids in passages]) if passages else np.zeros(0, "int32")


def train(
    recipe, train_files, eval_files, vocabulary_size, log_directory=None, vocabulary=None, kept=None
):
    """Trains a recipe's model, from its last checkpoint if it was stopped before.

    Args:
        recipe: a `Recipe` of the task `language_model`.
        train_files, eval_files: lists of file patterns of transformed examples.
        vocabulary_size: V.
        log_directory: where TensorBoard's logs go, if given.
        vocabulary: the words by id, for the tokens beside TensorBoard's heat maps.
        kept: the `checkpoints.Checkpoints` to go on from and to write; None keeps none.

    Returns:
        The model with the weights of its best epoch, and a dict of facts: `head`, `curve`,
        `parameters`, `seconds`, `words`, `validation_perplexity`.

    Raises:
        ValueError: the text is too short, or no epoch ended with a finite perplexity.
    """
    keras.utils.set_random_seed(recipe.training.seed)
    train_ids, eval_ids = read_stream(train_files), read_stream(eval_files)
    model = build_model(recipe, vocabulary_size)
    options = fit_options(recipe)
    writer = tf.summary.create_file_writer(log_directory) if log_directory else None
    words = [vocabulary[number] if vocabulary else str(number) for number in eval_ids.tolist()]
    # Some words of the eval text, evenly from its end, for the heat maps.
    shown = (
        range(len(eval_ids) - 1, 0, -max(1, len(eval_ids) // heat_maps.SHOWN))
        if model.points
        else ()
    )

    def on_epoch(entry):
        if writer:
            with writer.as_default(step=entry["epoch"]):
                tf.summary.scalar("loss", entry["loss"])
                tf.summary.scalar("validation_perplexity", entry["perplexity"])
                for number, end in enumerate(shown):
                    found = heat_maps.pointer_map(model, eval_ids, words, end)
                    heat_maps.write_summary(f"pointer/{number + 1}", found, step=entry["epoch"])
        print(
            f"  {recipe.model.head}: epoch {entry['epoch']}/{options.max_epochs}  loss "
            f"{entry['loss']:.3f}  "
            f"validation perplexity {entry['perplexity']:.2f}  learning rate "
            f"{entry['learning_rate']:.2g}  "
            f"{entry['seconds']:.0f} s",
            flush=True,
        )

    kept = kept or checkpoints.Checkpoints()
    made_from = (recipe.to_dict(), train_ids, eval_ids, checkpoints.shapes_of(model))
    state = kept.load(checkpoints.digest_of(*made_from))
    if state:
        print(
            f"  {recipe.model.head}: goes on from a checkpoint, after {state['done']} updates.",
            flush=True,
        )

    def checkpoint(state_now, at_epoch_end):
        if kept.due(at_epoch_end):
            kept.save(state_now())

    started = time.monotonic() - (state["seconds"] if state else 0.0)
    try:
        with determinism.same_bits(recipe.training.deterministic):
            history = language_modeling.fit(
                model, train_ids, eval_ids, options, on_epoch, state, checkpoint
            )
    except ValueError:
        # Another attempt would end as this one.
        kept.clear()
        raise
    facts = {
        "head": recipe.model.head,
        "curve": [
            _point(entry) for entry in history if math.isfinite(entry["loss"] + entry["perplexity"])
        ],
        "parameters": int(model.count_params()),
        "seconds": round(time.monotonic() - started, 1),
        "updates": history[-1]["updates"],
        "words": {"train": len(train_ids), "eval": len(eval_ids)},
        "validation_perplexity": min(entry["perplexity"] for entry in history),
    }
    return model, facts


def _point(entry):
    """An epoch's point on the curve. (One whose loss is not finite has none:
    JSON has no word for it.)
    """
    point = {key: entry[key] for key in ("epoch", "seconds", "loss", "learning_rate", "perplexity")}
    return {**point, "eval_loss": float(np.log(entry["perplexity"]))}


def train_transformed(recipe, fn_args, transform_output, kept=None):
    """Trains on the files of TFX's `fn_args`; returns what `train` does."""
    vocabulary = preprocessing.read_vocabulary(
        transform_output, language_model_preprocessing.VOCABULARY_FILE
    )
    files = (fn_args.train_files, fn_args.eval_files)
    return train(
        recipe,
        *files,
        len(vocabulary),
        log_directory=fn_args.model_run_dir,
        vocabulary=vocabulary,
        kept=kept,
    )
