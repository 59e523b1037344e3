"""Vectors of tokens."""

import keras


def token_embedding(size, units, dtype, name, stddev=1.0):
    """Returns an `Embedding` layer, built, whose numbers are drawn from N(0, stddev^2).

    The kernels that read them are Glorot's, which expect inputs of variance 1. Keras' own initial
    embeddings, uniform within 0.05, have a thousandth of it: gates then hardly see the words, and a
    decoder that does not copy stays at the entropy of single words for hundreds of updates.

    Args:
        size: number of ids.
        units: size of the vectors.
        dtype: the layer's policy.
        name: the layer's name.
        stddev: less than 1 if their reader scales them first, as a Transformer does.
    """
    initializer = keras.initializers.RandomNormal(stddev=stddev)
    layer = keras.layers.Embedding(
        size, units, embeddings_initializer=initializer, dtype=dtype, name=name
    )
    layer.build((None, None))
    return layer
