"""A translation lexicon interpolated with the softmax (Arthur et al. 2016)."""

import keras
from keras import ops

from keras_models.heads.label_smoothing import merged_mean, smooth
from keras_models.heads.lexicon_head import LexiconHead
from keras_models.layers.numerics import LOG_ZERO, add_at, is_empty, log_add, project_parts


@keras.saving.register_keras_serializable("verbatim")
class LexiconLinear(LexiconHead):
    """Interpolates the lexicon with the softmax.

        p(w) = lambda p_l(w) + (1 - lambda) softmax(W hidden + b)_w                  (eq. 3.4)
        lambda = sigmoid(x)

    Gate `"constant"` learns one x, from 0 (lambda = 0.5); gate `"state"` (ours) reads it off each
    step: x = w . [context; state] + b. Without a source lambda is 0.

    Args:
        vocabulary_size: V.
        gate: `"constant"` or `"state"`.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden, attention, lexicon_ids, lexicon_probabilities, source_extended_ids, targets, mask:
            as of `LexiconBias`.
        context: `[batch, target_length, memory_size]`, attention's weighted sum, for gate
            `"state"`.
        decoder_state: `[batch, target_length, state_size]`, the recurrent state, for gate
            `"state"`; default `hidden`.

    Returns:
        As `LexiconBias`.

    Raises:
        ValueError: an unknown gate.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import LexiconLinear
    >>> head = LexiconLinear(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> tuple(head(np.ones((2, 3, 4)), attention, ids, probabilities, source).shape)
    (2, 3, 10)
    """

    def __init__(self, vocabulary_size, gate="constant", unknown_id=1, **kwargs):
        super().__init__(vocabulary_size, unknown_id, **kwargs)
        if gate not in ("constant", "state"):
            raise ValueError(f"gate must be one of constant, state; got {gate!r}.")
        self.gate = gate
        self.gate_layer = (
            keras.layers.Dense(1, dtype=self.dtype_policy, name="gate") if gate == "state" else None
        )

    def build(self, hidden_shape, context_shape=None, decoder_state_shape=None):
        self.vocabulary.build(hidden_shape)
        if self.gate_layer is None:
            self.gate_logit = self.add_weight(
                shape=(), initializer="zeros", dtype="float32", autocast=False, name="gate_logit"
            )
        else:
            size = context_shape[-1] + (decoder_state_shape or hidden_shape)[-1]
            self.gate_layer.build((*hidden_shape[:-1], size))

    def get_config(self):
        return {**super().get_config(), "gate": self.gate}

    def _log_gate(self, state):
        """Returns log lambda and log(1 - lambda), each `[...]`."""
        empty = is_empty(state["attention_log_weights"])
        if self.gate_layer is None:
            logit = ops.zeros_like(state["attention_log_weights"][..., 0]) + self.gate_logit
        else:
            parts = [state["context"], state.get("decoder_state", state["hidden"])]
            logit = ops.cast(project_parts(self.gate_layer, parts), "float32")[..., 0]
        return ops.where(empty, LOG_ZERO, ops.log_sigmoid(logit)), ops.where(
            empty, 0.0, ops.log_sigmoid(-logit)
        )

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = self._known(targets)
        log_lexicon, log_generate = self._log_gate(state)
        vocabulary, normaliser = self.vocabulary.score(
            state["hidden"], targets, memory.get("candidates")
        )
        log_prob = log_add(
            log_lexicon + self._target_mass(state, memory, targets), log_generate + vocabulary
        )
        if not label_smoothing:
            return log_prob
        ids, entries = self._entries(state, memory)
        weights, ids = ops.expand_dims(log_lexicon, -1) + entries, ids[:, 0]
        known = ops.ones_like(ids, dtype="bool")
        mean = merged_mean(
            self.vocabulary, state["hidden"], log_generate, normaliser, weights, ids, known
        )
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        log_lexicon, log_generate = (ops.expand_dims(gate, -1) for gate in self._log_gate(state))
        generated = self.vocabulary.log_probs(
            state["hidden"], memory.get("shortlist"), log_generate
        )
        ids, entries = self._entries(state, memory)
        return self._without_copies(add_at(generated, log_lexicon + entries, ids), memory)
