"""Joint normalisation over vocabulary and source (CopyNet, Gu et al. 2016)."""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.heads.label_smoothing import merged_mean, real_positions, smooth
from keras_models.layers.numerics import (
    LOG_ZERO,
    add_copies,
    log_add,
    log_shares,
    masked_log_softmax,
    rowwise,
)
from keras_models.layers.vocabulary import VocabularySoftmax


@keras.saving.register_keras_serializable("verbatim")
class JointCopy(CopyHead):
    """One softmax over the words of the vocabulary and the positions of the source.

        psi_g(w) = (W hidden + b)_w              a word of the vocabulary
        psi_c(j) = h_j . U s                     position j, `tanh=False` (Jia and Liang 2016)
        psi_c(j) = tanh(h_j U) . s               position j, `tanh=True` (CopyNet, eq. 8)
        P(w) = (exp psi_g(w) + sum over j with x_j = w of exp psi_c(j)) / Z         (eq. 4 to 6)

    with the decoder's state s and Z the sum of all, so that generating and copying compete in one
    softmax instead of through a gate. A word in both vocabulary and source gets both masses, over
    all its occurrences.

    Args:
        vocabulary_size: V.
        tanh: whether the score of a position passes through tanh.

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
    >>> from keras_models.heads import JointCopy
    >>> head = JointCopy(vocabulary_size=10)
    >>> log_prob = head(np.ones((2, 3, 4)), np.ones((2, 5, 6)), np.tile(np.arange(10, 15), (2, 1)))
    >>> tuple(log_prob.shape)
    (2, 3, 15)

    References:
        Gu, Lu, Li, Li 2016, "Incorporating Copying Mechanism in Sequence-to-Sequence Learning",
        https://arxiv.org/abs/1603.06393; Jia and Liang 2016, https://arxiv.org/abs/1606.03622
    """

    scores_copies = True

    def __init__(self, vocabulary_size, tanh=True, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.tanh = tanh
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )

    def build(self, hidden_shape, memory_states_shape, decoder_state_shape=None):
        memory_size = memory_states_shape[-1]
        self.vocabulary.build(hidden_shape)
        self.copy_kernel = self.add_weight(
            shape=(memory_size, (decoder_state_shape or hidden_shape)[-1]), name="copy_kernel"
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

    def compute_output_shape(
        self,
        hidden_shape,
        memory_states_shape,
        source_extended_ids_shape,
        targets_shape=None,
        mask_shape=None,
        decoder_state_shape=None,
    ):
        if targets_shape is not None:
            return tuple(hidden_shape[:2])
        length = memory_states_shape[1]
        return (*hidden_shape[:2], None if length is None else self.vocabulary_size + length)

    def prepare(self, states):
        keys = rowwise(
            lambda rows: ops.matmul(rows, ops.cast(self.copy_kernel, rows.dtype)), states
        )
        return {"copy_keys": ops.tanh(keys) if self.tanh else keys}

    def copy_scores(self, decoder_state, memory):
        """psi_c, float32 `[..., source_length]`, `LOG_ZERO` at padding."""
        return source_scores(decoder_state, memory["copy_keys"], memory["mask"])

    def copy_log_weights(self, state, memory):
        scores, mask = self.copy_scores(state["decoder_state"], memory), memory["mask"]
        return masked_log_softmax(scores, ops.expand_dims(mask, 1))

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = ops.cast(targets, "int32")
        scores = self.copy_scores(state["decoder_state"], memory)
        word, generate = self.vocabulary.target_logits(
            state["hidden"], targets, memory.get("candidates")
        )
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(
            ops.cast(memory["extended_ids"], "int32"), -2
        )
        copies = ops.logsumexp(ops.where(matches, scores, LOG_ZERO), axis=-1)
        total = log_add(generate, ops.logsumexp(scores, axis=-1))
        log_prob = ops.maximum(log_add(word, copies) - total, LOG_ZERO)
        if not label_smoothing:
            return log_prob
        weights = scores - ops.expand_dims(total, -1)
        source = (memory["extended_ids"], real_positions(memory))
        mean = merged_mean(
            self.vocabulary, state["hidden"], generate - total, generate, weights, *source
        )
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        scores = self.copy_scores(state["decoder_state"], memory)
        # One softmax, which subtracts the largest score first, so that the sum is 1 for scores of
        # any size.
        logits = self.vocabulary.logits(state["hidden"], memory.get("shortlist"))
        joint = log_shares(ops.concatenate([logits, scores], axis=-1))
        number = logits.shape[-1]
        words, copies = joint[:, :number], ops.where(scores > LOG_ZERO, joint[:, number:], LOG_ZERO)
        return add_copies(words, copies, memory["extended_ids"], memory.get("places")), copies

    def get_config(self):
        config = super().get_config()
        config["tanh"] = self.tanh
        return config


def source_scores(queries, keys, mask):
    """Dot products of queries with source positions.

    Args:
        queries: `[batch, size]` or `[batch, target_length, size]`.
        keys: `[batch, source_length, size]`.
        mask: bool `[batch, source_length]`, or None.

    Returns:
        float32 `[batch, source_length]` or `[batch, target_length, source_length]`, `LOG_ZERO` at
        padding.
    """
    if len(queries.shape) == 2:
        scores = ops.squeeze(ops.matmul(keys, ops.expand_dims(queries, -1)), -1)
    else:
        scores = ops.matmul(queries, ops.transpose(keys, (0, 2, 1)))
        mask = None if mask is None else ops.expand_dims(mask, 1)
    scores = ops.cast(scores, "float32")
    return scores if mask is None else ops.where(mask, scores, LOG_ZERO)
