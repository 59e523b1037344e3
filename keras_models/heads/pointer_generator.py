"""Pointer-generator: a gate between generating and copying (See et al. 2017)."""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.heads.label_smoothing import merged_mean, real_positions, smooth
from keras_models.layers.numerics import (
    LOG_ZERO,
    add_copies,
    is_empty,
    log_add,
    project_parts,
)
from keras_models.layers.vocabulary import VocabularySoftmax


@keras.saving.register_keras_serializable("verbatim")
class PointerGenerator(CopyHead):
    """Mixes a vocabulary softmax with attention, which copies.

        p_gen = sigmoid(w_c . context + w_s . state + w_x . inputs + b)                    (eq. 8)
        P(w)  = p_gen softmax(W hidden + b)_w + (1 - p_gen) sum_{j: x_j = w} a_j           (eq. 9)

    over the extended vocabulary: ids below V are target words, id V + j is the source's token j. A
    word that is both in the vocabulary and in the source gets both masses. All of it is computed in
    log space; for a source without any token p_gen is 1. Coverage (eq. 10 to 13) belongs to the
    attention: see `SourceAttention` and `losses.coverage_loss`.

    Args:
        vocabulary_size: V.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`, the decoder's output.
        context: `[batch, target_length, memory_size]`, attention's weighted sum.
        attention: `[batch, target_length, source_length]`, attention probabilities.
        source_extended_ids: int `[batch, source_length]`, extended ids of the source tokens.
        targets: int `[batch, target_length]`, extended ids; or None.
        inputs: `[batch, target_length, embedding_size]`, embedded previous tokens; optional, for
            the gate.
        decoder_state: `[batch, target_length, state_size]`, the recurrent state, for the gate;
            default `hidden`.
        mask: bool `[batch, source_length]`, false at padding; None believes `attention`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import PointerGenerator
    >>> head = PointerGenerator(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> log_prob = head(np.ones((2, 3, 4)), np.ones((2, 3, 6)), attention, source)
    >>> tuple(log_prob.shape)
    (2, 3, 15)

    References:
        See, Liu, Manning 2017, "Get To The Point", https://arxiv.org/abs/1704.04368
    """

    needs_attention = True

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )
        self.gate = keras.layers.Dense(1, dtype=self.dtype_policy, name="gate")

    def build(self, hidden_shape, context_shape, inputs_shape=None, decoder_state_shape=None):
        self.vocabulary.build(hidden_shape)
        size = context_shape[-1] + (decoder_state_shape or hidden_shape)[-1]
        size += inputs_shape[-1] if inputs_shape is not None else 0
        self.gate.build((*hidden_shape[:-1], size))

    def compute_output_shape(
        self,
        hidden_shape,
        context_shape,
        attention_shape,
        source_extended_ids_shape,
        targets_shape=None,
        inputs_shape=None,
        decoder_state_shape=None,
    ):
        if targets_shape is not None:
            return tuple(hidden_shape[:2])
        length = attention_shape[-1]
        return (*hidden_shape[:2], None if length is None else self.vocabulary_size + length)

    def _log_gate(self, state):
        """Returns log p_gen and log(1 - p_gen), each `[...]`."""
        parts = [state["context"], state.get("decoder_state", state["hidden"])]
        if "inputs" in state:
            parts.append(state["inputs"])
        logit = ops.cast(project_parts(self.gate, parts), "float32")[..., 0]
        # A source without tokens leaves nothing to copy: all the mass goes to the vocabulary.
        empty = is_empty(state["attention_log_weights"])
        return (
            ops.where(empty, 0.0, ops.log_sigmoid(logit)),
            ops.where(empty, LOG_ZERO, ops.log_sigmoid(-logit)),
        )

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        log_generate, log_copy = self._log_gate(state)
        vocabulary, normaliser = self.vocabulary.score(
            state["hidden"], targets, memory.get("candidates")
        )
        targets = ops.cast(targets, memory["extended_ids"].dtype)
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(memory["extended_ids"], -2)
        copies = ops.logsumexp(
            ops.where(matches, state["attention_log_weights"], LOG_ZERO), axis=-1
        )
        log_prob = log_add(log_generate + vocabulary, log_copy + copies)
        if not label_smoothing:
            return log_prob
        weights = ops.expand_dims(log_copy, -1) + state["attention_log_weights"]
        source = (memory["extended_ids"], real_positions(memory))
        mean = merged_mean(
            self.vocabulary, state["hidden"], log_generate, normaliser, weights, *source
        )
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        log_generate, log_copy = self._log_gate(state)
        log_generate, log_copy = ops.expand_dims(log_generate, -1), ops.expand_dims(log_copy, -1)
        weights = state["attention_log_weights"]
        words = self.vocabulary.log_probs(state["hidden"], memory.get("shortlist"), log_generate)
        copies = log_copy + weights
        return add_copies(words, copies, memory["extended_ids"], memory.get("places")), copies
