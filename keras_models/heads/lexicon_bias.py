"""A translation lexicon added to the logits (Arthur et al. 2016)."""

import math

import keras
from keras import ops

from keras_models.heads.label_smoothing import merge, smooth
from keras_models.heads.lexicon_head import LexiconHead
from keras_models.layers.numerics import LOG_ZERO, first_places, log_add, log_shares


@keras.saving.register_keras_serializable("verbatim")
class LexiconBias(LexiconHead):
    """Adds the lexicon to the logits.

        p(w) = softmax(W hidden + b + log(p_l(w) + epsilon))_w                     (eq. 3.3)

    The sum of the softmax is epsilon times that of the plain one plus the lexicon's own entries, so
    that training builds no tensor of the vocabulary's size except the logits. The large-vocabulary
    trick does not apply: the sum is always over all words.

    Args:
        vocabulary_size: V.
        epsilon: added to the lexicon's probability of every word; a smaller one trusts the lexicon
            more.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`, the decoder's output.
        attention: `[batch, target_length, source_length]`, attention probabilities.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`, see `LexiconHead`.
        source_extended_ids: int `[batch, source_length]`, extended ids of the source tokens.
        targets: int `[batch, target_length]`, extended ids; or None.
        mask: bool `[batch, source_length]`, false at padding; None believes `attention`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V]`.

    Raises:
        ValueError: epsilon is not above 0.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import LexiconBias
    >>> head = LexiconBias(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> tuple(head(np.ones((2, 3, 4)), attention, ids, probabilities, source).shape)
    (2, 3, 10)
    """

    def __init__(self, vocabulary_size, epsilon=0.001, unknown_id=1, **kwargs):
        super().__init__(vocabulary_size, unknown_id, **kwargs)
        if epsilon <= 0:
            raise ValueError(f"epsilon must be above 0; got {epsilon}.")
        self.epsilon = epsilon

    def build(self, hidden_shape):
        self.vocabulary.build(hidden_shape)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = self._known(targets)
        log_epsilon = math.log(self.epsilon)
        chosen, plain = self.vocabulary.target_logits(state["hidden"], targets)
        ids, entries = self._entries(state, memory)
        # A row's entries are of the same words at each of its positions.
        logits = self.vocabulary.logits_of(state["hidden"], ids[:, 0])
        weighted = ops.where(entries > LOG_ZERO, logits + entries, LOG_ZERO)
        normaliser = log_add(log_epsilon + plain, ops.logsumexp(weighted, axis=-1))
        mass = ops.logsumexp(
            ops.where(ids == ops.expand_dims(targets, -1), entries, LOG_ZERO), axis=-1
        )
        log_prob = chosen + log_add(mass, ops.full_like(mass, log_epsilon)) - normaliser
        if not label_smoothing:
            return log_prob
        # log(p_l + epsilon) is log(epsilon), and for the lexicon's words more by a softplus. Later
        # positions of a word have no mass.
        masses = merge(entries, first_places(ids[:, 0]))
        added = ops.sum(ops.softplus(masses - log_epsilon), axis=-1) / self.vocabulary_size
        mean = self.vocabulary.mean_logit(state["hidden"]) + log_epsilon + added - normaliser
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        logits = self.vocabulary.logits(state["hidden"], memory.get("shortlist"))
        mass = self._step_mass(state, memory, logits.shape[-1])
        bias = log_add(mass, ops.full_like(mass, math.log(self.epsilon)))
        return self._without_copies(log_shares(logits + bias), memory)
