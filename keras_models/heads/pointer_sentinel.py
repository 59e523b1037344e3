"""Pointer sentinel mixture: a pointer that can leave the word to the vocabulary."""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.heads.label_smoothing import merged_mean, real_positions, smooth
from keras_models.layers.numerics import (
    LOG_ZERO,
    add_copies,
    copy_mass,
    log_add,
    masked_log_softmax,
    rowwise,
)
from keras_models.layers.vocabulary import VocabularySoftmax


@keras.saving.register_keras_serializable("verbatim")
class PointerSentinel(CopyHead):
    """Mixes softmax and pointer by a sentinel that competes with the source positions.

        q    = tanh(W h + b)                                                      (section 2.2)
        z_i  = q . m_i                                                            (eq. 1)
        a    = softmax([z; q . s])  over the source's tokens and the sentinel s   (section 2.4)
        g    = a_sentinel
        p(w) = g softmax(U h + c)_w + sum_{i: x_i = w} a_i                        (eq. 4 and 5)

    The factor 1 / (1 - g) of eq. 5 cancels against 1 - g of eq. 4. Ids below V are target words, id
    V + j is the source's token j; a word both in the vocabulary and in the source gets both masses.
    A source without tokens leaves g = 1. In the paper the states m_i are the recurrent network's
    own past outputs: see `PointerSentinelWindow`. Here they are an encoder's.

    Args:
        vocabulary_size: V.

    Call arguments:
        hidden: h, `[batch, target_length, hidden_size]`.
        memory_states: m, `[batch, source_length, memory_size]`.
        source_extended_ids: int `[batch, source_length]`, extended ids of the source tokens.
        targets: int `[batch, target_length]`, extended ids; or None.
        mask: bool `[batch, source_length]`, false at padding; None takes the mask that Keras
            attached to `memory_states`, if any.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import PointerSentinel
    >>> head = PointerSentinel(vocabulary_size=10)
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> tuple(head(np.ones((2, 3, 4)), np.ones((2, 5, 6)), source).shape)
    (2, 3, 15)

    References:
        Merity et al. 2016, "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843
    """

    scores_copies = True

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )

    def build(self, hidden_shape, memory_states_shape=None):
        size = (memory_states_shape or hidden_shape)[-1]
        self.query = keras.layers.Dense(
            size, activation="tanh", dtype=self.dtype_policy, name="query"
        )
        self.query.build(hidden_shape)
        if not self.vocabulary.built:
            self.vocabulary.build(hidden_shape)
        self.sentinel = self.add_weight(
            shape=(size,), initializer="glorot_uniform", name="sentinel"
        )
        self.built = True

    def call(
        self,
        hidden,
        memory_states,
        source_extended_ids,
        targets=None,
        mask=None,
        memory_states_mask=None,
    ):
        mask = memory_states_mask if mask is None else mask
        memory = {"states": memory_states, "extended_ids": source_extended_ids}
        if mask is not None:
            memory["mask"] = mask
        if targets is not None:
            return self.target_log_prob({"hidden": hidden}, memory, targets)
        log_weights, log_gate = self._attend(hidden, memory_states, memory.get("mask"))
        size = self.vocabulary_size + ops.shape(source_extended_ids)[1]
        return self._distributions(hidden, log_weights, log_gate, source_extended_ids, size)

    def compute_output_shape(
        self,
        hidden_shape,
        memory_states_shape,
        source_extended_ids_shape,
        targets_shape=None,
        mask_shape=None,
    ):
        if targets_shape is not None:
            return tuple(hidden_shape[:2])
        length = source_extended_ids_shape[-1]
        return (*hidden_shape[:2], None if length is None else self.vocabulary_size + length)

    def _attend(self, hidden, states, mask):
        """The pointer's distribution over positions and sentinel, in log space.

        Args:
            hidden: `[batch, time, hidden_size]`.
            states: `[batch, positions, memory_size]`.
            mask: bool, `[batch, positions]` or broadcasting to `[batch, time, positions]`, or None.

        Returns:
            float32 log a `[batch, time, positions]`, `LOG_ZERO` where the mask is false, and log g
            `[batch, time]`.
        """
        query = rowwise(self.query, hidden)
        sentinel = ops.cast(self.sentinel, query.dtype)
        pointed = ops.cast(
            ops.matmul(query, ops.transpose(ops.cast(states, query.dtype), (0, 2, 1))), "float32"
        )
        backed_off = ops.cast(
            rowwise(lambda rows: ops.matmul(rows, ops.expand_dims(sentinel, -1)), query), "float32"
        )
        if mask is not None:
            mask = ops.expand_dims(mask, 1) if len(mask.shape) == 2 else mask
            pointed = ops.where(mask, pointed, LOG_ZERO)
        log_probs = ops.log_softmax(ops.concatenate([pointed, backed_off], axis=-1), axis=-1)
        log_weights = log_probs[..., :-1]
        if mask is not None:
            log_weights = ops.where(mask, log_weights, LOG_ZERO)
        return log_weights, log_probs[..., -1]

    def _target_log_prob(
        self,
        hidden,
        log_weights,
        log_gate,
        extended_ids,
        targets,
        candidates=None,
        label_smoothing=0.0,
        real=None,
    ):
        """log p of one target per step; no tensor of size V + positions is built."""
        vocabulary, normaliser = self.vocabulary.score(hidden, targets, candidates)
        targets = ops.cast(targets, extended_ids.dtype)
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(extended_ids, -2)
        copies = ops.logsumexp(ops.where(matches, log_weights, LOG_ZERO), axis=-1)
        log_prob = log_add(log_gate + vocabulary, copies)
        if not label_smoothing:
            return log_prob
        source = (log_weights, extended_ids, real)
        mean = merged_mean(self.vocabulary, hidden, log_gate, normaliser, *source)
        return smooth(log_prob, mean, label_smoothing)

    def _distributions(self, hidden, log_weights, log_gate, extended_ids, size):
        """log p of all extended ids: `[batch, time, size]`. Time is folded into the batch."""
        batch, length, positions = ops.shape(log_weights)
        flat = ops.reshape(hidden, (batch * length, hidden.shape[-1]))
        vocabulary = self.vocabulary.log_probs(flat)
        extended = ops.pad(
            vocabulary, [[0, 0], [0, size - self.vocabulary_size]], constant_values=LOG_ZERO
        )
        # A position without a word has weight 0, so any id will do.
        ids = ops.repeat(ops.maximum(ops.cast(extended_ids, "int32"), 0), length, axis=0)
        mass = copy_mass(ops.reshape(log_weights, (batch * length, positions)), ids, size)
        log_probs = log_add(ops.reshape(log_gate, (batch * length, 1)) + extended, mass)
        return ops.reshape(log_probs, (batch, length, size))

    def copy_log_weights(self, state, memory):
        log_weights, _ = self._attend(state["hidden"], memory["states"], memory["mask"])
        return masked_log_softmax(log_weights, ops.expand_dims(memory["mask"], 1))

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        log_weights, log_gate = self._attend(state["hidden"], memory["states"], memory.get("mask"))
        return self._target_log_prob(
            state["hidden"],
            log_weights,
            log_gate,
            memory["extended_ids"],
            targets,
            memory.get("candidates"),
            label_smoothing,
            real_positions(memory) if label_smoothing else None,
        )

    def step_log_probs(self, state, memory):
        hidden = ops.expand_dims(state["hidden"], 1)
        log_weights, log_gate = self._attend(hidden, memory["states"], memory.get("mask"))
        log_weights = ops.squeeze(log_weights, 1)
        words = self.vocabulary.log_probs(state["hidden"], memory.get("shortlist"), log_gate)
        return add_copies(
            words, log_weights, memory["extended_ids"], memory.get("places")
        ), log_weights
