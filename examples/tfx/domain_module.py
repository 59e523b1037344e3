"""A user's module file for TFX's Transform and Trainer: it guesses the domain of an English text.

`own_trainer.py` runs it. Nothing in it is Verbatim's.
"""

import keras
import tensorflow as tf
import tensorflow_transform as tft
import tfx.v1 as tfx
from tfx_bsl.public import tfxio

LENGTH = 16
WORDS, DOMAINS = "words", "domains"


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the ids of the first words of a text, 0 where there is none, and of its domain."""
    words = tf.strings.split(tf.strings.lower(tf.reshape(inputs["source"], [-1])))
    ids = tft.compute_and_apply_vocabulary(
        words.to_sparse(), num_oov_buckets=1, vocab_filename=WORDS
    )
    padded = tf.sparse.to_dense(ids, default_value=-1)[:, :LENGTH] + 1
    padded = tf.pad(padded, [[0, 0], [0, LENGTH - tf.shape(padded)[1]]])
    return {
        "ids": tf.ensure_shape(padded, [None, LENGTH]),
        "domain_id": tft.compute_and_apply_vocabulary(inputs["domain"], vocab_filename=DOMAINS),
    }


def run_fn(arguments: tfx.components.FnArgs) -> None:
    """Trains a model, and saves it with the signature that takes and gives text."""
    transform_output = tft.TFTransformOutput(arguments.transform_graph_path)

    def read(files: list[str]) -> tf.data.Dataset:
        options = tfxio.TensorFlowDatasetOptions(batch_size=32, label_key="domain_id")
        return arguments.data_accessor.tf_dataset_factory(
            files, options, transform_output.transformed_metadata.schema
        )

    domains = transform_output.vocabulary_by_name(DOMAINS)
    ids = keras.Input([LENGTH], dtype="int64", name="ids")
    vectors = keras.layers.Embedding(
        transform_output.vocabulary_size_by_name(WORDS) + 2, 16, mask_zero=True
    )(ids)
    mean = keras.layers.GlobalAveragePooling1D()(vectors)
    model = keras.Model({"ids": ids}, keras.layers.Dense(len(domains), "softmax")(mean))
    model.compile(
        optimizer=keras.optimizers.Adam(0.05),
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    model.fit(
        read(arguments.train_files),
        steps_per_epoch=arguments.train_steps,
        validation_data=read(arguments.eval_files),
        validation_steps=arguments.eval_steps,
        verbose=2,
    )
    served = _Served(transform_output, model, domains)
    tf.saved_model.save(
        served, arguments.serving_model_dir, signatures={"serving_default": served.guess}
    )


class _Served(tf.Module):
    """The Transform graph before the model, and the domains' names behind it."""

    def __init__(
        self, transform_output: tft.TFTransformOutput, model: keras.Model, domains: list[bytes]
    ) -> None:
        super().__init__()
        self._transform = transform_output.transform_features_layer()
        self._model = model
        self._domains = tf.constant(domains)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def guess(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the likeliest domain of each text."""
        features = self._transform({"source": source[:, tf.newaxis]})
        found = tf.argmax(self._model({"ids": features["ids"]}), axis=-1)
        return {"domain": tf.gather(self._domains, found)}
