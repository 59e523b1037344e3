"""The Transform graph of the training features as part of a served model."""

from collections.abc import Mapping

import tensorflow as tf

# Registers the operations that the graph may use; the Exporter may be alone in its process.
import tensorflow_text  # noqa: F401
import tensorflow_transform as tft


class TransformGraph(tf.Module):
    """A loaded Transform graph, called with those of its raw inputs that the caller has.

    `TFTransformOutput.transform_features_layer` does the same, but is a layer of Keras 2, which is
    traced again when a model is saved; that takes longer than all the rest.

    Args:
        transform_output: `tft.TFTransformOutput`.
    """

    def __init__(self, transform_output: tft.TFTransformOutput) -> None:
        super().__init__(name="transform")
        self._graph = tf.saved_model.load(transform_output.transform_savedmodel_dir)
        functions = getattr(
            self._graph.transform_fn, "concrete_functions", [self._graph.transform_fn]
        )
        ((self._specs,), _) = functions[0].structured_input_signature

    def __call__(self, raw: Mapping[str, tf.Tensor]) -> dict[str, tf.SparseTensor]:
        """Returns the dict of features of a dict of raw tensors `[batch, 1]`.

        Missing inputs, such as the line of a training pair in its file, are empty, and no feature
        depends on them.
        """
        batch = tf.shape(next(iter(raw.values())))[0]
        missing = {
            name: _empty(spec, batch) for name, spec in self._specs.items() if name not in raw
        }
        features: dict[str, tf.SparseTensor] = self._graph.transform_fn({**raw, **missing})
        return features


def _empty(spec: tf.TypeSpec, batch: tf.Tensor) -> tf.Tensor | tf.SparseTensor:
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse.from_dense(tf.zeros([batch, 0], spec.dtype))
    return tf.fill(
        [batch, *spec.shape[1:]], tf.zeros([], spec.dtype) if spec.dtype != tf.string else ""
    )
