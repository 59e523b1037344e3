"""LSTM regularised by zoneout, and dropout whose mask is locked across time."""

import keras
from keras import ops

from keras_models.layers.recurrent import FeedbackCell


@keras.saving.register_keras_serializable("verbatim")
class VariationalDropout(keras.layers.Layer):
    """Dropout with one mask for all time steps of a sequence (Gal 2015).

        y_t = x_t * m / (1 - rate)       m ~ Bernoulli(1 - rate), one for each sequence and unit
        y_t = x_t                        at inference

    Args:
        rate: share of units dropped.
        seed: of the random masks; None for any.

    Call arguments:
        inputs: `[batch, time, size]`.
        training: whether to drop.

    Returns:
        A tensor like `inputs`.

    Raises:
        ValueError: the rate is not in 0..1 (1 excluded).

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import VariationalDropout
    >>> tuple(VariationalDropout(0.5)(np.ones((2, 3, 4)), training=True).shape)
    (2, 3, 4)

    References:
        Gal, Ghahramani 2015, https://arxiv.org/abs/1512.05287
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and below 1; got {rate}.")
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def build(self, inputs_shape=None):
        """Nothing: there are no weights."""

    def mask(self, batch_size, size):
        """Draws `[batch, size]` factors, each 0 or 1 / (1 - rate).

        A loop multiplies each step by them.
        """
        ones = ops.ones((batch_size, size), dtype=self.compute_dtype)
        return (
            keras.random.dropout(ones, self.rate, seed=self.seed_generator) if self.rate else ones
        )

    def call(self, inputs, training=False):
        if not training or not self.rate:
            return inputs
        return inputs * ops.expand_dims(self.mask(ops.shape(inputs)[0], inputs.shape[-1]), 1)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}


@keras.saving.register_keras_serializable("verbatim")
class ZoneoutLSTM(keras.layers.Layer):
    """LSTM of which random units keep their value of the last step (Krueger et al. 2016).

        [i f g o] = x_t W + h_{t-1} U + b
        c' = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),   h' = sigmoid(o) tanh(c')
        c_t = d_c c_{t-1} + (1 - d_c) c'                d_c ~ Bernoulli(zoneout_cell) anew each step
        h_t = d_h h_{t-1} + (1 - d_h) h'                d_h ~ Bernoulli(zoneout_hidden)

    h' reads c', not c_t, as in the paper. At inference each d is its expectation. x W of a whole
    sequence is one product outside the loop.

    Args:
        units: size of h and c.
        zoneout_hidden: share of h kept from the last step.
        zoneout_cell: share of c kept from the last step.
        seed: of the random masks; None for any.

    Call arguments:
        inputs: `[batch, time, size]`, at least one step.
        states: `[h, c]`, each `[batch, units]`; zeros if None.
        training: whether units are zoned out at random.

    Returns:
        outputs: `[batch, time, units]`, every h_t.
        cells: `[batch, time, units]`, every c_t. The state after step t, from which a later call
            continues, is `[outputs[:, t], cells[:, t]]`.

    Raises:
        ValueError: a rate is not in 0..1.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import ZoneoutLSTM
    >>> outputs, cells = ZoneoutLSTM(5, zoneout_hidden=0.025, zoneout_cell=0.25)(np.ones((2, 3, 4)))
    >>> tuple(outputs.shape), tuple(cells.shape)
    ((2, 3, 5), (2, 3, 5))

    References:
        Krueger et al. 2016, https://arxiv.org/abs/1606.01305
    """

    def __init__(self, units, zoneout_hidden=0.0, zoneout_cell=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        for name, rate in (("zoneout_hidden", zoneout_hidden), ("zoneout_cell", zoneout_cell)):
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} must be between 0 and 1; got {rate}.")
        self.units = units
        self.zoneout_hidden = zoneout_hidden
        self.zoneout_cell = zoneout_cell
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.cell = FeedbackCell(
            units, "lstm", feedback=False, dtype=self.dtype_policy, name="cell"
        )

    def build(self, inputs_shape, states_shape=None):
        self.cell.build(inputs_shape[-1])
        self.built = True

    def initial_states(self, batch_size):
        """Returns `[h, c]` of zeros, each `[batch, units]`."""
        return [ops.zeros((batch_size, self.units), dtype=self.compute_dtype) for _ in range(2)]

    def zoneout_masks(self, length, batch_size):
        """Draws the masks of training.

        Returns two bool tensors `[length, batch, units]`, for h and for c.

        They are drawn before the loop: a random generator inside it would have to be one of the
        loop's carried tensors.
        """
        shape = (length, batch_size, self.units)
        return [
            keras.random.uniform(shape, dtype="float32", seed=self.seed_generator) < rate
            for rate in (self.zoneout_hidden, self.zoneout_cell)
        ]

    def step(self, inputs, states, masks=None):
        """One step, for a loop of the caller.

        Args:
            inputs: `[batch, size]`.
            states: `[h, c]`.
            masks: one step of `zoneout_masks`, in training; None takes the expectation.

        Returns:
            The new `[h, c]`; h is the output.
        """
        return self._advance(
            self.cell.project(ops.cast(inputs, self.compute_dtype)), list(states), masks
        )

    def _advance(self, projected, states, masks=None, kernels=None):
        new = self.cell(projected, states, kernels=kernels)
        if masks is not None:
            return [ops.where(keep, old, value) for keep, old, value in zip(masks, states, new)]
        rates = (self.zoneout_hidden, self.zoneout_cell)
        return [rate * old + (1 - rate) * value for rate, old, value in zip(rates, states, new)]

    def call(self, inputs, states=None, training=False):
        length, batch_size = ops.shape(inputs)[1], ops.shape(inputs)[0]
        states = list(states) if states is not None else self.initial_states(batch_size)
        projected = ops.transpose(self.cell.project(inputs), (1, 0, 2))
        random = training and (self.zoneout_hidden or self.zoneout_cell)
        if random:
            # One tensor: TensorFlow's scan fails for several whose length is not known while
            # tracing (Keras 3.12).
            masks = [
                ops.cast(mask, projected.dtype) for mask in self.zoneout_masks(length, batch_size)
            ]
            projected = ops.concatenate([projected, *masks], axis=-1)

        kernels = self.cell.loop_kernels() if training else None

        def advance(states, step):
            masks = None
            if random:
                step, *masks = ops.split(step, [4 * self.units, 5 * self.units], axis=-1)
                masks = [mask > 0 for mask in masks]
            states = self._advance(step, states, masks, kernels)
            return states, states

        _, sequences = ops.scan(advance, states, projected)
        return tuple(ops.transpose(sequence, (1, 0, 2)) for sequence in sequences)

    def compute_output_shape(self, inputs_shape, states_shape=None):
        shape = (*inputs_shape[:2], self.units)
        return shape, shape

    def get_config(self):
        config = super().get_config()
        config.update(
            units=self.units,
            zoneout_hidden=self.zoneout_hidden,
            zoneout_cell=self.zoneout_cell,
            seed=self.seed,
        )
        return config
