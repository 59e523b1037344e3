"""Saves the weights of a Keras model inside a `tf.Module`."""

import keras
import tensorflow as tf


def keep(module: tf.Module, model: keras.Model) -> None:
    """Sets `module.model`, so that a SavedModel holds its weights as plain TensorFlow variables.

    A Keras 3 variable wraps TensorFlow's. If a SavedModel tracks the wrapper, the graph restores a
    copy of the variable and computes with another, which is never filled. Python's loader restores
    objects and works; TensorFlow Serving runs the graph and cannot answer a request. So the model
    itself is hidden from tracking.

    Args:
        module: a `tf.Module`.
        model: a Keras model that is built.
    """
    object.__setattr__(module, "model", model)
    module.model_weights = [variable.value for variable in model.variables]
