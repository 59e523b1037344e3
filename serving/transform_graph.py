"""The Transform graph of the training features as part of a served model."""

import tensorflow as tf


def load(transform_output):
    """Returns the Transform graph, an object to be tracked by the module that serves it.

    Its `transform_fn` takes a dict of raw tensors and gives the dict of features. This is what `transform_features_layer` calls; but
    that is a layer of Keras 2, which saving a model traces once more, and which takes longer than all the rest.
    """
    return tf.saved_model.load(transform_output.transform_savedmodel_dir)
