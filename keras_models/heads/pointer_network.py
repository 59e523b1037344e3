"""Pointer network: an output of source positions only (Vinyals et al. 2015)."""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.heads.label_smoothing import merged_sum, real_positions, smooth
from keras_models.layers.numerics import (
    LOG_ZERO,
    copy_mass,
    log_add,
    masked_log_softmax,
    rowwise,
    weighted_sums,
)


@keras.saving.register_keras_serializable("verbatim")
class PointerNetwork(CopyHead):
    """Points at a source position, or ends.

        u_j = v . tanh(W_1 h_j + W_2 s)          (eq. 3),   h_end learned
        P(j) = softmax([u_1 ... u_S, u_end])_j

    The mass of a word is that of all its positions; no other word can be output but the end. A
    target that does not occur in the source is impossible (log-probability `LOG_ZERO`): such data
    need a head with a vocabulary.

    Args:
        vocabulary_size: V; ids below it are the words of the target vocabulary.
        units: size of the score's hidden layer; default: that of the decoder's state.
        end_id: id of the end.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`, the decoder's output.
        memory_states: `[batch, source_length, memory_size]`, the encoded source.
        source_extended_ids: int `[batch, source_length]`, extended ids of the source tokens.
        targets: int `[batch, target_length]`, extended ids; or None.
        mask: bool `[batch, source_length]`, false at padding; None takes the mask that Keras
            attached to `memory_states`, if any.
        decoder_state: `[batch, target_length, state_size]`, s; default `hidden`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import PointerNetwork
    >>> head = PointerNetwork(vocabulary_size=10)
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> tuple(head(np.ones((2, 3, 4)), np.ones((2, 5, 6)), source).shape)
    (2, 3, 15)

    References:
        Vinyals, Fortunato, Jaitly 2015, "Pointer Networks", https://arxiv.org/abs/1506.03134
    """

    scores_copies = True

    def __init__(self, vocabulary_size, units=None, end_id=3, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.units = units
        self.end_id = end_id

    def build(self, hidden_shape, memory_states_shape, decoder_state_shape=None):
        memory_size = memory_states_shape[-1]
        state_size = (decoder_state_shape or hidden_shape)[-1]
        units = self.units or state_size
        self.memory_kernel = self.add_weight(shape=(memory_size, units), name="memory_kernel")
        self.query_kernel = self.add_weight(shape=(state_size, units), name="query_kernel")
        self.score_kernel = self.add_weight(shape=(units, 1), name="score_kernel")
        self.end_state = self.add_weight(
            shape=(1, memory_size), initializer="random_normal", name="end_state"
        )

    def call(
        self,
        hidden,
        memory_states,
        source_extended_ids,
        targets=None,
        mask=None,
        decoder_state=None,
        memory_states_mask=None,
    ):
        mask = memory_states_mask if mask is None else mask
        state = {
            "hidden": hidden,
            "decoder_state": hidden if decoder_state is None else decoder_state,
        }
        memory = {"extended_ids": source_extended_ids, "mask": mask, **self.prepare(memory_states)}
        if targets is not None:
            return self.target_log_prob(state, memory, targets)
        return self.fold_time(state, memory)

    def prepare(self, states):
        end = ops.broadcast_to(
            ops.expand_dims(self.end_state, 0), (ops.shape(states)[0], 1, states.shape[-1])
        )
        states = ops.concatenate([states, ops.cast(end, states.dtype)], axis=1)
        kernel = ops.cast(self.memory_kernel, states.dtype)
        return {"pointer_keys": rowwise(lambda rows: ops.matmul(rows, kernel), states)}

    def _log_pointers(self, decoder_state, memory):
        """float32 `[..., source_length + 1]`, the end last."""
        keys = memory["pointer_keys"]
        query = rowwise(
            lambda rows: ops.matmul(rows, ops.cast(self.query_kernel, rows.dtype)), decoder_state
        )
        if len(decoder_state.shape) == 3:
            keys = ops.expand_dims(keys, 1)
        scores = weighted_sums(ops.tanh(keys + ops.expand_dims(query, -2)), self.score_kernel)
        mask = memory["mask"]
        if mask is not None:
            mask = ops.concatenate([mask, ops.ones_like(mask[:, :1])], axis=-1)
            mask = ops.expand_dims(mask, 1) if len(decoder_state.shape) == 3 else mask
        return masked_log_softmax(scores, mask)

    def copy_log_weights(self, state, memory):
        log_pointers = self._log_pointers(state["decoder_state"], memory)[..., :-1]
        return masked_log_softmax(log_pointers, ops.expand_dims(memory["mask"], 1))

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        log_pointers = self._log_pointers(state["decoder_state"], memory)
        ids = ops.cast(memory["extended_ids"], "int32")
        ids = ops.concatenate([ids, ops.full_like(ids[:, :1], self.end_id)], axis=-1)
        matches = ops.expand_dims(ops.cast(targets, "int32"), -1) == ops.expand_dims(ids, -2)
        log_prob = ops.logsumexp(ops.where(matches, log_pointers, LOG_ZERO), axis=-1)
        if not label_smoothing:
            return log_prob
        real = real_positions(memory)
        real = ops.concatenate([real, ops.ones_like(real[:, :1])], axis=-1)
        total, number = merged_sum(log_pointers, ids, real)
        return smooth(log_prob, total / number, label_smoothing)

    def step_log_probs(self, state, memory):
        log_pointers = self._log_pointers(state["decoder_state"], memory)
        copies, end = log_pointers[:, :-1], log_pointers[:, -1:]
        size = self.vocabulary_size + ops.shape(copies)[-1]
        mass = copy_mass(copies, memory["extended_ids"], size)
        is_end = ops.expand_dims(ops.equal(ops.arange(size, dtype="int32"), self.end_id), 0)
        return log_add(ops.where(is_end, end, LOG_ZERO), mass), copies

    def get_config(self):
        config = super().get_config()
        config.update(units=self.units, end_id=self.end_id)
        return config
