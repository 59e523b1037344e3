"""A translation lexicon beside softmax and copying."""

import keras
from keras import ops

from keras_models.heads.label_smoothing import merged_mean, real_positions, smooth
from keras_models.heads.lexicon_head import LexiconHead
from keras_models.layers.numerics import (
    LOG_ZERO,
    add_at,
    add_copies,
    is_empty,
    log_add,
    project_parts,
)


@keras.saving.register_keras_serializable("verbatim")
class LexiconCopy(LexiconHead):
    """Generates, translates by the lexicon, or copies. Ours.

    Copying is the lexicon that maps each word to itself.

        [g, l, c] = softmax(W_g [context; state] + b_g)
        p(w) = g softmax(W hidden + b)_w + l p_l(w) + c sum_{j: x_j = w} a_j

    over the extended vocabulary. The probability that the lexicon gives to `[UNK]` is not lost for
    a word that can be copied: if the lexicon does not know x_j, its share goes to the copy of x_j.
    Without a source g is 1.

    Args:
        vocabulary_size: V.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden, attention, lexicon_ids, lexicon_probabilities, source_extended_ids, targets,
            context, decoder_state, mask: as of `LexiconLinear`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import LexiconCopy
    >>> head = LexiconCopy(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> context = np.ones((2, 3, 6))
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> hidden = np.ones((2, 3, 4))
    >>> tuple(head(hidden, attention, ids, probabilities, source, context=context).shape)
    (2, 3, 15)
    """

    copies = True

    def __init__(self, vocabulary_size, unknown_id=1, **kwargs):
        super().__init__(vocabulary_size, unknown_id, **kwargs)
        self.gate = keras.layers.Dense(3, dtype=self.dtype_policy, name="gate")

    def build(self, hidden_shape, context_shape, decoder_state_shape=None):
        self.vocabulary.build(hidden_shape)
        self.gate.build(
            (*hidden_shape[:-1], context_shape[-1] + (decoder_state_shape or hidden_shape)[-1])
        )

    def _log_gates(self, state):
        """Returns log g, log l and log c, each `[...]`."""
        parts = [state["context"], state.get("decoder_state", state["hidden"])]
        logits = ops.log_softmax(ops.cast(project_parts(self.gate, parts), "float32"), axis=-1)
        empty = is_empty(state["attention_log_weights"])
        return (
            ops.where(empty, 0.0, logits[..., 0]),
            ops.where(empty, LOG_ZERO, logits[..., 1]),
            ops.where(empty, LOG_ZERO, logits[..., 2]),
        )

    def _split(self, state, memory, gates):
        """Splits the lexicon's entries into words and copies.

        Returns the entries without `[UNK]`'s, and the log-probability that position j is copied,
        `[..., S]`.
        """
        _, log_lexicon, log_copy = gates
        weights = state["attention_log_weights"]
        ids, entries = self._entries(state, memory)
        unknown = ids == self.unknown_id
        shape = ops.shape(weights)
        lost = ops.reshape(
            ops.where(unknown, entries, LOG_ZERO), (*shape, memory["lexicon_ids"].shape[-1])
        )
        lost = ops.logsumexp(lost, axis=-1)
        copies = log_add(
            ops.expand_dims(log_lexicon, -1) + lost, ops.expand_dims(log_copy, -1) + weights
        )
        return ids, ops.where(unknown, LOG_ZERO, entries), ops.maximum(copies, LOG_ZERO)

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        gates = self._log_gates(state)
        ids, entries, copies = self._split(state, memory, gates)
        vocabulary, normaliser = self.vocabulary.score(
            state["hidden"], targets, memory.get("candidates")
        )
        targets = ops.cast(targets, memory["extended_ids"].dtype)
        lexicon = ops.logsumexp(
            ops.where(ids == ops.expand_dims(targets, -1), entries, LOG_ZERO), axis=-1
        )
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(memory["extended_ids"], -2)
        copied = ops.logsumexp(ops.where(matches, copies, LOG_ZERO), axis=-1)
        log_prob = log_add(log_add(gates[0] + vocabulary, gates[1] + lexicon), copied)
        if not label_smoothing:
            return log_prob
        # A word may be a translation and a copy.
        weights = ops.concatenate([ops.expand_dims(gates[1], -1) + entries, copies], axis=-1)
        source, translations = ops.cast(memory["extended_ids"], "int32"), ids[:, 0]
        words = ops.concatenate([translations, source], axis=-1)
        real = ops.concatenate(
            [ops.ones_like(translations, dtype="bool"), real_positions(memory)], axis=-1
        )
        mean = merged_mean(
            self.vocabulary, state["hidden"], gates[0], normaliser, weights, words, real
        )
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        gates = self._log_gates(state)
        ids, entries, copies = self._split(state, memory, gates)
        log_generate = ops.expand_dims(gates[0], -1)
        generated = self.vocabulary.log_probs(
            state["hidden"], memory.get("shortlist"), log_generate
        )
        words = add_at(generated, ops.expand_dims(gates[1], -1) + entries, ids)
        log_probs = add_copies(words, copies, memory["extended_ids"], memory.get("places"))
        return log_probs, copies
