"""Recurrent layers of encoders, and cells of decoders that feed back their own output."""

import contextlib

import keras
from keras import ops

from keras_models.layers.loop_kernel import LoopKernel, multiply
from keras_models.layers.numerics import rowwise
from keras_models.layers.panels import product


def bidirectional(layer, **options):
    """`keras.layers.Bidirectional(layer, **options)`, which can be built while Keras loads a model.

    Bidirectional copies `layer` by its configuration and then drops it. While Keras loads a model,
    it knows what it has copied by `id` only; a later layer that gets the id of a dropped one is
    mistaken for it, and gets the other's copy ("Forward layer and backward layer should have
    different `go_backwards` value", or weights in common). Here the layer lives as long as the
    wrapper, so that no other object gets its id.
    """
    wrapper = keras.layers.Bidirectional(layer, **options)
    # Bypasses Keras' attributes, which are tracked and would be saved with the model.
    object.__setattr__(wrapper, "_copied_layer", layer)
    return wrapper


class _ProjectsInputs(keras.layers.RNN):
    """Projects all inputs in one product outside the loop.

    Keras' own layers multiply them step by step.

    Stands behind a Keras layer among the bases: that layer uses the accelerator's own
    implementation if there is one, and else calls this one. Its cell is one of those below.
    """

    state_dropout = 0.0

    def _replace_cell(self, kind, state_dropout):
        cell = self.cell
        if cell.dropout or cell.recurrent_dropout or not cell.use_bias:
            raise ValueError(
                "Keras' dropout inside the cell, and cells without a bias, are not supported."
            )
        self.state_dropout = state_dropout
        if state_dropout:
            self.state_seed = keras.random.SeedGenerator()
        # Deleted first, so that Keras stops tracking it.
        del self.cell
        self.cell = kind.from_config(cell.get_config())

    def inner_loop(self, sequences, initial_state, mask, training=False):
        """Runs the loop over projected inputs."""
        projected = self.cell.project(sequences)
        state_mask = None
        if training and self.state_dropout:
            state = keras.tree.flatten(initial_state)[0]
            # Drawn outside of the loop: one for all steps.
            state_mask = keras.random.dropout(
                ops.ones_like(state), self.state_dropout, seed=self.state_seed
            )
        with self.cell.in_loop(state_mask) if training else contextlib.nullcontext():
            return super().inner_loop(projected, initial_state, mask=mask, training=training)

    def drops_states(self, training):
        """Whether this call drops states, which no accelerator's own implementation does."""
        return bool(training and self.state_dropout)

    def get_config(self):
        return {**super().get_config(), "state_dropout": self.state_dropout}


class _ProjectedCell:
    """The common part of the cells below; comes before a Keras cell among the bases."""

    _loop_kernel = None
    _state_mask = None

    @contextlib.contextmanager
    def in_loop(self, state_mask=None):
        """Within it, a call's gradient is that of a loop's step: see `LoopKernel`.

        Args:
            state_mask: `[batch, units]`, multiplies the state before the kernel; or None.
        """
        # Bypasses Keras' attributes: this is not state of the cell.
        object.__setattr__(
            self, "_loop_kernel", LoopKernel(self.recurrent_kernel, self.compute_dtype)
        )
        object.__setattr__(self, "_state_mask", state_mask)
        try:
            yield
        finally:
            object.__setattr__(self, "_loop_kernel", None)
            object.__setattr__(self, "_state_mask", None)

    def _multiply_state(self, state):
        if self._state_mask is not None:
            state = state * self._state_mask
        return multiply(state, self._loop_kernel or self.recurrent_kernel)


class _ProjectedGRUCell(_ProjectedCell, keras.layers.GRUCell):
    """Keras' cell, whose call takes `project(inputs)` instead of inputs."""

    def project(self, inputs):
        return rowwise(lambda rows: ops.matmul(rows, self.kernel) + self.bias[0], inputs)

    def call(self, projected, states, training=False):
        (state,) = states
        recurrent = self._multiply_state(state) + self.bias[1]
        update, reset, candidate = ops.split(projected, 3, axis=-1)
        recurrent_update, recurrent_reset, recurrent_candidate = ops.split(recurrent, 3, axis=-1)
        update = self.recurrent_activation(update + recurrent_update)
        reset = self.recurrent_activation(reset + recurrent_reset)
        candidate = self.activation(candidate + reset * recurrent_candidate)
        state = update * state + (1 - update) * candidate
        return state, [state]


class _ProjectedLSTMCell(_ProjectedCell, keras.layers.LSTMCell):
    """Keras' cell, whose call takes `project(inputs)` instead of inputs."""

    def project(self, inputs):
        return rowwise(lambda rows: ops.matmul(rows, self.kernel) + self.bias, inputs)

    def call(self, projected, states, training=False):
        state, memory = states
        gates = projected + self._multiply_state(state)
        write, keep, candidate, output = ops.split(gates, 4, axis=-1)
        memory = self.recurrent_activation(keep) * memory + self.recurrent_activation(
            write
        ) * self.activation(candidate)
        state = self.recurrent_activation(output) * self.activation(memory)
        return state, [state, memory]


@keras.saving.register_keras_serializable("verbatim")
class GRU(keras.layers.GRU, _ProjectsInputs):
    """`keras.layers.GRU` with the same weights and outputs, faster on processors:
    x W of a whole sequence is one product outside the loop.

    Args:
        units, **kwargs: those of Keras' layer.
        state_dropout: share of h's units dropped in the product h U, with one mask for all steps of
            a sequence (Gal and Ghahramani 2016). The state that the next step carries stays whole.

    Raises:
        ValueError: Keras' dropout inside the cell, no bias, or `reset_after=False`.
    """

    def __init__(self, units, state_dropout=0.0, **kwargs):
        super().__init__(units, **kwargs)
        if not self.cell.reset_after:
            raise ValueError("reset_after=False is not supported.")
        self._replace_cell(_ProjectedGRUCell, state_dropout)

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if self.drops_states(training):
            return _ProjectsInputs.inner_loop(self, sequences, initial_state, mask, training)
        return super().inner_loop(sequences, initial_state, mask, training)


@keras.saving.register_keras_serializable("verbatim")
class LSTM(keras.layers.LSTM, _ProjectsInputs):
    """`keras.layers.LSTM` with the same weights and outputs, faster on processors:
    x W of a whole sequence is one product outside the loop.

    Args:
        units, **kwargs: those of Keras' layer.
        state_dropout: see `GRU`.

    Raises:
        ValueError: Keras' dropout inside the cell, or no bias.
    """

    def __init__(self, units, state_dropout=0.0, **kwargs):
        super().__init__(units, **kwargs)
        self._replace_cell(_ProjectedLSTMCell, state_dropout)

    def inner_loop(self, sequences, initial_state, mask, training=False):
        if self.drops_states(training):
            return _ProjectsInputs.inner_loop(self, sequences, initial_state, mask, training)
        return super().inner_loop(sequences, initial_state, mask, training)


@keras.saving.register_keras_serializable("verbatim")
class FeedbackCell(keras.layers.Layer):
    """GRU or LSTM cell with a second, fed-back input.

    The first input is projected for all steps at once.

    With input x, feedback f (the decoder's last output; Luong et al. 2015, section 3.3) and state
    h:

        GRU (Cho et al. 2014, reset after the product as in cuDNN), its columns the gates z and r
        and the candidate n:
            [a_z a_r a_n] = x W + f F + b,   [u_z u_r u_n] = h U + b'
            z = sigmoid(a_z + u_z),  r = sigmoid(a_r + u_r)
            n = tanh(a_n + r u_n),  h' = z h + (1 - z) n
        LSTM, gates i, f, g, o:
            [i f g o] = x W + f F + h U + b
            c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')

    x W for a whole target is one large product outside the loop; only products that depend on the
    last step stay inside.

    Args:
        units: size of the state.
        cell: `"gru"` or `"lstm"`.
        feedback: whether there is a feedback input.

    Call arguments:
        projected: `[batch, gates * units]`, one step of `project(inputs)`.
        states: list of `[batch, units]` tensors: `[h]`, or `[h, c]` for an LSTM.
        feedback: `[batch, feedback_size]`, or None.
        kernels: what `loop_kernels()` returned outside of the loop that is trained; None multiplies
            by the weights as they are.
        state_mask: `[batch, units]`, what h is multiplied by in h U (Gal and Ghahramani 2016), the
            same at all steps; or None.

    Returns:
        The new list of states; the first is the output.

    Raises:
        ValueError: an unknown cell.
    """

    GATES = {"gru": 3, "lstm": 4}

    def __init__(self, units, cell="gru", feedback=True, **kwargs):
        super().__init__(**kwargs)
        if cell not in self.GATES:
            raise ValueError(f"cell must be one of {', '.join(self.GATES)}; got {cell!r}.")
        self.units = units
        self.cell = cell
        self.feedback = feedback

    def build(self, inputs_size, feedback_size=None):
        """Makes the weights; sizes are ints, since the layer is called step by step."""
        width = self.GATES[self.cell] * self.units
        self.kernel = self.add_weight(shape=(inputs_size, width), name="kernel")
        if self.feedback:
            self.feedback_kernel = self.add_weight(
                shape=(feedback_size, width), name="feedback_kernel"
            )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, width), initializer="orthogonal", name="recurrent_kernel"
        )
        self.bias = self.add_weight(shape=(width,), initializer="zeros", name="bias")
        if self.cell == "gru":
            self.recurrent_bias = self.add_weight(
                shape=(width,), initializer="zeros", name="recurrent_bias"
            )
        self.built = True

    def project(self, inputs):
        """Returns x W + b for inputs `[..., inputs_size]`: `[..., gates * units]`."""
        return rowwise(lambda rows: product(rows, self.kernel), inputs) + self.bias

    def step_kernels(self):
        """Returns the kernels that `call` multiplies by."""
        feedback = [self.feedback_kernel] if self.feedback else []
        return [self.recurrent_kernel, *feedback]

    def loop_kernels(self):
        """Returns the `LoopKernel`s that a loop's calls multiply by.

        One is for the state, one for the feedback if there is one.
        """
        kernels = {"recurrent": LoopKernel(self.recurrent_kernel, self.compute_dtype)}
        if self.feedback:
            kernels["feedback"] = LoopKernel(self.feedback_kernel, self.compute_dtype)
        return kernels

    def call(self, projected, states, feedback=None, kernels=None, state_mask=None):
        kernels = kernels or {}
        if self.feedback:
            projected = projected + multiply(
                feedback, kernels.get("feedback", self.feedback_kernel)
            )
        read = states[0] if state_mask is None else states[0] * state_mask
        recurrent = multiply(read, kernels.get("recurrent", self.recurrent_kernel))
        if self.cell == "gru":
            update, reset, candidate = ops.split(projected, 3, axis=-1)
            recurrent_update, recurrent_reset, recurrent_candidate = ops.split(
                recurrent + self.recurrent_bias, 3, axis=-1
            )
            update = ops.sigmoid(update + recurrent_update)
            reset = ops.sigmoid(reset + recurrent_reset)
            candidate = ops.tanh(candidate + reset * recurrent_candidate)
            return [update * states[0] + (1 - update) * candidate]
        write, keep, candidate, output = ops.split(projected + recurrent, 4, axis=-1)
        memory = ops.sigmoid(keep) * states[1] + ops.sigmoid(write) * ops.tanh(candidate)
        return [ops.sigmoid(output) * ops.tanh(memory), memory]

    def get_config(self):
        config = super().get_config()
        config.update(units=self.units, cell=self.cell, feedback=self.feedback)
        return config
