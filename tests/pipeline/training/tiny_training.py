"""Tiny trainings for tests: pairs, a recipe, a clock, and what TensorBoard was told."""

import types

from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DataConfig, ModelConfig, TrainingConfig

VOCABULARY = 20
#: The words of both sides, by id.
WORDS = ["[PAD]", "[UNK]", "[START]", "[END]", *(f"word{n}" for n in range(4, VOCABULARY))]
TINY = ModelConfig(embedding_size=8, hidden_size=8, dropout=0.0)


def write_pairs(path, count=36, length=5):
    """Pairs whose target repeats their source: half known words, half copies.

    `recipe` makes batches of 6: with a multiple of it there is one shape, hence one trace.
    """
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for number in range(count):
            known = [10 + (number + place) % 5 for place in range(length)]
            extended = [
                VOCABULARY + place if place % 2 else word for place, word in enumerate(known)
            ]
            ids = {
                "source_ids": known,
                "source_extended_ids": extended,
                "source_feed_ids": known,
                "target_input_ids": [2, *known],
                "target_extended_ids": [*extended, 3],
            }
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
                for name, value in ids.items()
            }
            tokens = [f"token{place}".encode() for place in range(length)]
            features["source_tokens"] = tf.train.Feature(
                bytes_list=tf.train.BytesList(value=tokens)
            )
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )
    return [str(path)]


def recipe(**training):
    options = {
        "epochs": 4,
        "batch_tokens": 96,
        "learning_rate": 0.02,
        "warmup_steps": 2,
        "bucket_lengths": (4, 8),
    }
    data = DataConfig(max_tokens=7)
    return Recipe(
        name="tiny", data=data, model=TINY, training=TrainingConfig(**{**options, **training})
    )


def train(made, train_files, eval_files, log_directory=None, checkpoints=None):
    """Trains a recipe on files of `write_pairs`; returns what `trainer.train` does."""
    from pipeline.training import trainer
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.training_inputs import TrainingInputs

    sizes = ModelInputs(VOCABULARY, VOCABULARY)
    inputs = TrainingInputs(train_files, eval_files, sizes, WORDS, log_directory)
    return trainer.train(made, inputs, checkpoints)


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


def summaries(directory):
    """Returns the names of TensorBoard's curves, and a dict from the name of a picture to its
    (step, pixels).
    """
    import tensorflow as tf
    from tensorflow.python.summary.summary_iterator import summary_iterator

    curves, pictures = set(), {}
    for path in sorted(directory.rglob("events.out.tfevents.*")):
        for event in summary_iterator(str(path)):
            for value in event.summary.value:
                kind = value.metadata.plugin_data.plugin_name
                if kind == "scalars":
                    curves.add(value.tag)
                if kind == "images":
                    # Width, height, then a PNG for each picture.
                    png = tf.make_ndarray(value.tensor)[2]
                    pictures.setdefault(value.tag, []).append(
                        (event.step, tf.io.decode_png(png).numpy())
                    )
    return curves, pictures


def fn_args(folder, name, made):
    """What TFX hands to a Trainer, on the pairs in a folder."""
    assets = folder / "graph" / "transform_fn" / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for vocabulary in ("source_vocabulary.txt", "target_vocabulary.txt"):
        (assets / vocabulary).write_text("".join(f"word{number}\n" for number in range(VOCABULARY)))
    return types.SimpleNamespace(
        train_files=[str(folder / "train*.gz")],
        eval_files=[str(folder / "eval*.gz")],
        transform_graph_path=str(folder / "graph"),
        serving_model_dir=str(folder / name / "model"),
        model_run_dir=str(folder / name / "run"),
        hyperparameters=None,
        custom_config={"recipe": made.to_json(), "checkpoints": str(folder / name / "checkpoints")},
    )


def weights_of(arguments):
    """The weights of the network that a Trainer wrote."""
    import keras

    # The first one registers the network's classes.
    from pipeline.training import model_building, trainer_outputs  # noqa: F401

    model = keras.saving.load_model(
        trainer_outputs.model_path(arguments.serving_model_dir), compile=False
    )
    return [variable.numpy() for variable in model.trainable_variables]
