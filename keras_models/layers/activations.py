"""Activations that Keras lacks: maxout and noisy tanh."""

import math

import keras
from keras import ops


def maxout(inputs, pieces=2):
    """Largest of each `pieces` neighbouring units (Goodfellow et al. 2013).

    `[..., pieces * size]` becomes `[..., size]`.

    Raises:
        ValueError: the last axis is not a multiple of `pieces`.
    """
    *leading, size = ops.shape(inputs)
    if size % pieces:
        raise ValueError(
            f"maxout over {pieces} pieces needs a last axis that is a multiple of it; got {size}."
        )
    return ops.max(ops.reshape(inputs, (*leading, size // pieces, pieces)), axis=-1)


@keras.saving.register_keras_serializable("verbatim")
class NoisyTanh(keras.layers.Layer):
    """Hard tanh with learned noise where it saturates (Gulcehre et al. 2016b, "Noisy activation
    functions").

        h(x) = clip(x, -1, 1),  u(x) = x,  delta = h(x) - u(x)
        sigma(x) = c (sigmoid(p delta) - 1/2)^2,   d(x) = -sgn(x) sgn(1 - alpha)
        phi(x) = alpha h(x) + (1 - alpha) u(x) + d(x) sigma(x) e,    e = |N(0, 1)|

    Where h is linear, delta and with it the noise are 0. Outside training e is its mean, sqrt(2 /
    pi).

    Args:
        alpha: share of the hard function; above 1 gradients flow back out of saturation.
        scale: c.

    Call arguments:
        inputs: `[..., size]`; p is learned, one for each unit, from 1.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import NoisyTanh
    >>> tuple(NoisyTanh()(np.array([[-0.5, 0.25, 0.5]])).shape)
    (1, 3)

    References:
        Gulcehre, Moczulski, Denil, Bengio 2016, https://arxiv.org/abs/1603.00391, eq. 9 to 13
    """

    def __init__(self, alpha=1.15, scale=0.5, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha
        self.scale = scale
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape):
        self.steepness = self.add_weight(
            shape=(input_shape[-1],), initializer="ones", name="steepness"
        )

    def call(self, inputs, training=False):
        hard = ops.clip(inputs, -1.0, 1.0)
        sigma = self.scale * ops.square(ops.sigmoid(self.steepness * (hard - inputs)) - 0.5)
        if training:
            noise = keras.random.normal(
                ops.shape(inputs), dtype=self.compute_dtype, seed=self.seed_generator
            )
            noise = ops.abs(noise)
        else:
            noise = math.sqrt(2.0 / math.pi)
        direction = -ops.sign(inputs) * (1.0 if self.alpha < 1 else -1.0 if self.alpha > 1 else 0.0)
        return self.alpha * hard + (1.0 - self.alpha) * inputs + direction * sigma * noise

    def get_config(self):
        config = super().get_config()
        config.update(alpha=self.alpha, scale=self.scale)
        return config


def make_activation(name, dtype=None):
    """Returns a layer for `"noisy_tanh"` or any activation of Keras."""
    return (
        NoisyTanh(dtype=dtype)
        if name == "noisy_tanh"
        else keras.layers.Activation(name, dtype=dtype)
    )
