"""Pointer softmax: a switch between a shortlist and a location (Gulcehre et al. 2016)."""

import keras
from keras import ops

from keras_models.heads.copy_head import POINTERS, CopyHead
from keras_models.heads.label_smoothing import floored, real_positions, smooth
from keras_models.layers.activations import make_activation
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO, attention_log_weights, is_empty, rowwise
from keras_models.layers.vocabulary import VocabularySoftmax

# In `target_pointers`: the word is generated; it is copied from the position with the highest
# attention (the paper, section 5.3).
GENERATED, MOST_ATTENDED = -1, -2


@keras.saving.register_keras_serializable("verbatim")
class PointerSoftmax(CopyHead):
    """Chooses between a word of the shortlist and a location of the source.

    The two are never added.

        d_t          = P(z_t = 1) = sigmoid(k f(c_t, s_t))                               (eq. 8)
        p(w, z = 1)  = d_t softmax(W hidden + b)_w                                       (eq. 6)
        p(j, z = 0)  = (1 - d_t) l_tj,   the attention l_t as location softmax           (eq. 7)
        f(c, s)      = w . (phi(W_2 u + b_2) + u) + b,   u = phi(W_1 [c; s] + b_1)

    z_t = 1 is the shortlist. The paper starts the switch's bias at -1 to favour the shortlist,
    which holds if its sigmoid is the probability of copying; here it is that of the shortlist, so
    the bias starts at +1. In training the switch is observed: a label below V is generated, a label
    V + j points at position j, the first that holds the word. In decoding the likeliest word or
    location is taken: id V + j is position j, whatever it holds. A source without any token leaves
    d_t = 1.

    Args:
        vocabulary_size: V, the size of the shortlist.
        switch_units: size of both hidden layers of f; default: that of the decoder's state.
        inverse_temperature: k; above 1 the switch is sharper (section 5.1 uses 2).
        activation: phi: `"noisy_tanh"` (Gulcehre et al. 2016b), `"tanh"` or `"relu"`.
        switch_bias: where b starts.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`, the decoder's output.
        context: `[batch, target_length, memory_size]`, attention's weighted sum.
        attention: `[batch, target_length, source_length]`, attention probabilities.
        targets: int `[batch, target_length]`, ids below V or V + position; or None.
        decoder_state: `[batch, target_length, state_size]`, for the switch; default `hidden`.
        mask: bool `[batch, source_length]`, false at padding; None believes `attention`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import PointerSoftmax
    >>> head = PointerSoftmax(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> tuple(head(np.ones((2, 3, 4)), np.ones((2, 3, 6)), attention).shape)
    (2, 3, 15)

    References:
        Gulcehre, Ahn, Nallapati, Zhou, Bengio 2016, "Pointing the Unknown Words",
        https://arxiv.org/abs/1603.08148
    """

    merges = False
    needs_attention = True

    def __init__(
        self,
        vocabulary_size,
        switch_units=None,
        inverse_temperature=1.0,
        activation="tanh",
        switch_bias=1.0,
        **kwargs,
    ):
        super().__init__(vocabulary_size, **kwargs)
        self.switch_units = switch_units
        self.inverse_temperature = inverse_temperature
        self.activation = activation
        self.switch_bias = switch_bias
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )

    def build(self, hidden_shape, context_shape, decoder_state_shape=None):
        self.vocabulary.build(hidden_shape)
        state_size = (decoder_state_shape or hidden_shape)[-1]
        units = self.switch_units or state_size
        policy = self.dtype_policy
        self.lower = keras.layers.Dense(units, dtype=policy, name="switch_lower")
        self.upper = keras.layers.Dense(units, dtype=policy, name="switch_upper")
        self.lower_activation = make_activation(self.activation, dtype=policy)
        self.upper_activation = make_activation(self.activation, dtype=policy)
        self.switch = keras.layers.Dense(
            1,
            bias_initializer=keras.initializers.Constant(self.switch_bias),
            dtype=policy,
            name="switch",
        )
        self.lower.build((None, context_shape[-1] + state_size))
        self.upper.build((None, units))
        self.lower_activation.build((None, units))
        self.upper_activation.build((None, units))
        self.switch.build((None, units))

    def call(
        self,
        hidden,
        context,
        attention,
        targets=None,
        decoder_state=None,
        training=False,
        mask=None,
    ):
        state = {
            "hidden": hidden,
            "context": context,
            "attention_log_weights": attention_log_weights(attention, mask),
        }
        if decoder_state is not None:
            state["decoder_state"] = decoder_state
        if targets is not None:
            return self.target_log_prob(state, {}, targets, training=training)
        return self._distribution(state, {})[0]

    def _log_switch(self, state, training=False):
        """Returns log P(shortlist) and log P(location), each `[...]`."""

        def switch(rows):
            lower = self.lower_activation(self.lower(rows), training=training)
            upper = self.upper_activation(self.upper(lower), training=training) + lower
            return self.switch(upper)

        parts = [state["context"], state.get("decoder_state", state["hidden"])]
        logit = ops.cast(rowwise(switch, ops.concatenate(parts, axis=-1)), "float32")[..., 0]
        logit = logit * self.inverse_temperature
        # A source without tokens has no location.
        empty = is_empty(state["attention_log_weights"])
        return (
            ops.where(empty, 0.0, ops.log_sigmoid(logit)),
            ops.where(empty, LOG_ZERO, ops.log_sigmoid(-logit)),
        )

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = ops.cast(targets, "int32")
        weights = state["attention_log_weights"]
        pointers = ops.where(
            targets >= self.vocabulary_size, targets - self.vocabulary_size, GENERATED
        )
        if labels and POINTERS in labels:
            pointers = ops.cast(labels[POINTERS], "int32")
            attended = ops.cast(ops.argmax(weights, axis=-1), "int32")
            pointers = ops.where(pointers == MOST_ATTENDED, attended, pointers)
        copied = pointers >= 0
        log_shortlist, log_location = self._log_switch(state, training)
        words = ops.where(copied, 0, targets)
        shortlist, normaliser = self.vocabulary.score(
            state["hidden"], words, memory.get("candidates")
        )
        location = take_along(weights, ops.expand_dims(ops.maximum(pointers, 0), -1))[..., 0]
        log_prob = ops.where(copied, log_location + location, log_shortlist + shortlist)
        log_prob = ops.maximum(log_prob, LOG_ZERO)
        if not label_smoothing:
            return log_prob
        # Each position of the source is an outcome.
        real = ops.cast(real_positions(memory), "float32")
        copies = floored(ops.expand_dims(log_location, -1) + weights) * ops.expand_dims(real, 1)
        words = floored(log_shortlist) - normaliser + self.vocabulary.mean_logit(state["hidden"])
        count = self.vocabulary_size + ops.sum(real, axis=-1, keepdims=True)
        mean = (self.vocabulary_size * words + ops.sum(copies, axis=-1)) / count
        return smooth(log_prob, mean, label_smoothing)

    def _distribution(self, state, memory):
        log_shortlist, log_location = self._log_switch(state)
        copies = ops.expand_dims(log_location, -1) + state["attention_log_weights"]
        # A sum of two zeros is still a zero, not half of one.
        copies = ops.maximum(copies, LOG_ZERO)
        words = self.vocabulary.log_probs(
            state["hidden"], memory.get("shortlist"), ops.expand_dims(log_shortlist, -1)
        )
        return ops.concatenate([words, copies], axis=-1), copies

    def step_log_probs(self, state, memory):
        return self._distribution(state, memory)

    def get_config(self):
        config = super().get_config()
        config.update(
            switch_units=self.switch_units,
            inverse_temperature=self.inverse_temperature,
            activation=self.activation,
            switch_bias=self.switch_bias,
        )
        return config
