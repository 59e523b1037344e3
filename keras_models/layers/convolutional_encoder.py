"""Convolutional encoder: stacked gated convolutions (Gehring et al. 2017)."""

import keras
from keras import ops

from keras_models.layers.dropout import Dropout
from keras_models.layers.numerics import rowwise


@keras.saving.register_keras_serializable("verbatim")
class ConvolutionalEncoder(keras.layers.Layer):
    """Encodes a sequence by gated convolutions, all positions at once.

        x_j = W_e (w_j + p_j) + b_e                        embedded word and learned position
        [a_j; b_j] = W [x_{j-k/2}; ...; x_{j+k/2}] + b     convolution of width k
        x_j <- (a_j sigmoid(b_j) + x_j) sqrt(1/2)          gated linear unit, residual; each layer

    Words beyond the sequence's end and padding count as zeros in every layer, so a padded sequence
    gets the states of the unpadded one. A layer sees k // 2 neighbours on either side: `layers` of
    them reach `layers * (k // 2)` words.

    Args:
        units: size of the states.
        layers: number of convolutions.
        kernel_size: k, odd.
        dropout: share of units dropped before each convolution.
        max_positions: number of position embeddings; later positions share the last.

    Call arguments:
        inputs: `[batch, length, size]`, embedded words.
        source_mask: bool `[batch, length]`, false at padding.

    Returns:
        `[batch, length, units]`, 0 at padding.

    Raises:
        ValueError: an even `kernel_size`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import ConvolutionalEncoder
    >>> encoder = ConvolutionalEncoder(units=6, layers=2)
    >>> tuple(encoder(np.ones((2, 5, 4)), source_mask=np.ones((2, 5), "bool")).shape)
    (2, 5, 6)

    References:
        Gehring, Auli, Grangier, Yarats, Dauphin 2017, "Convolutional Sequence to Sequence
        Learning", sections 3.1 to 3.3, https://arxiv.org/abs/1705.03122; Gehring, Auli, Grangier,
        Dauphin 2017, "A Convolutional Encoder Model for Neural Machine Translation",
        https://arxiv.org/abs/1611.02344
    """

    def __init__(self, units, layers=3, kernel_size=3, dropout=0.0, max_positions=1024, **kwargs):
        super().__init__(**kwargs)
        if kernel_size % 2 == 0:
            raise ValueError(
                f"kernel_size must be odd, as many words on either side; got {kernel_size}."
            )
        self.units = units
        self.layers = layers
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.max_positions = max_positions
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, inputs_shape):
        size = inputs_shape[-1]
        self.positions = self.add_weight(
            shape=(self.max_positions, size),
            initializer=keras.initializers.RandomNormal(stddev=0.05),
            name="positions",
        )
        self.embedding_kernel = self.add_weight(shape=(size, self.units), name="embedding_kernel")
        self.embedding_bias = self.add_weight(
            shape=(self.units,), initializer="zeros", name="embedding_bias"
        )
        # Keeps the variance through a gated linear unit behind dropout (section 3.5).
        scale = 4.0 * (1.0 - self.dropout)
        self.kernels, self.biases = [], []
        for index in range(self.layers):
            self.kernels.append(
                self.add_weight(
                    shape=(self.kernel_size * self.units, 2 * self.units),
                    initializer=keras.initializers.VarianceScaling(
                        scale, distribution="untruncated_normal"
                    ),
                    name=f"kernel_{index}",
                )
            )
            self.biases.append(
                self.add_weight(shape=(2 * self.units,), initializer="zeros", name=f"bias_{index}")
            )

    def call(self, inputs, source_mask, training=False):
        length = ops.shape(inputs)[1]
        real = ops.expand_dims(ops.cast(source_mask, inputs.dtype), -1)
        positions = ops.minimum(ops.arange(length, dtype="int32"), self.max_positions - 1)
        embedded = inputs + ops.cast(ops.take(self.positions, positions, axis=0), inputs.dtype)
        states = rowwise(
            lambda rows: (
                ops.matmul(rows, ops.cast(self.embedding_kernel, rows.dtype))
                + ops.cast(self.embedding_bias, rows.dtype)
            ),
            embedded,
        )
        states = states * real
        side = self.kernel_size // 2
        for kernel, bias in zip(self.kernels, self.biases):
            kernel, bias = ops.cast(kernel, inputs.dtype), ops.cast(bias, inputs.dtype)
            padded = ops.pad(self.drop(states, training=training), [[0, 0], [side, side], [0, 0]])
            windows = [padded[:, shift : shift + length] for shift in range(self.kernel_size)]
            # One product over the windows side by side: this works on every backend in every float
            # type.
            values, gates = ops.split(
                rowwise(
                    lambda rows, kernel=kernel, bias=bias: ops.matmul(rows, kernel) + bias,
                    ops.concatenate(windows, axis=-1),
                ),
                2,
                axis=-1,
            )
            states = (values * ops.sigmoid(gates) + states) * (0.5**0.5) * real
        return states

    def compute_output_shape(self, inputs_shape, source_mask_shape=None):
        return (*inputs_shape[:-1], self.units)

    def get_config(self):
        config = super().get_config()
        config.update(
            units=self.units,
            layers=self.layers,
            kernel_size=self.kernel_size,
            dropout=self.dropout,
            max_positions=self.max_positions,
        )
        return config
