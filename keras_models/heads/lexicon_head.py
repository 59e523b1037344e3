"""Base of the heads that translate by a lexicon (Arthur et al. 2016)."""

from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.layers.numerics import (
    LOG_ZERO,
    attention_log_weights,
    copy_mass,
    log_distribution,
)
from keras_models.layers.vocabulary import VocabularySoftmax


class LexiconHead(CopyHead):
    """Base of the lexicon heads: translations of the source words, weighted by attention.

        p_l(w) = sum over source positions j of a_j p(w | x_j)            (Arthur 2018, eq. 3.2)

    The lexicon is sparse: the K likeliest translations of each source word are known,
    `memory["lexicon_ids"]` (int) and `memory["lexicon_probabilities"]`, each `[batch,
    source_length, K]`, and no matrix of vocabulary by source is built in training. The
    probabilities of a source position sum to 1: the remaining probability, or all of it for a word
    that the lexicon does not know, is an entry of `[UNK]` (eq. 3.5). Unused places have probability
    0. (A sum that bfloat16 rounded is normalised to 1 again.)

    Args:
        vocabulary_size: V.
        unknown_id: the id of `[UNK]`, as which a head without copying is trained on targets outside
            the vocabulary.

    References:
        Arthur, Neubig, Nakamura 2016, "Incorporating Discrete Translation Lexicons into Neural
        Machine Translation", https://arxiv.org/abs/1606.02006; Arthur 2018, "Learning Lexical
        Representations for Neural Machine Translation", chapter 3
    """

    copies = False
    needs_attention = True
    needs_lexicon = True

    def __init__(self, vocabulary_size, unknown_id=1, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.unknown_id = unknown_id
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )

    def get_config(self):
        return {**super().get_config(), "unknown_id": self.unknown_id}

    def call(
        self,
        hidden,
        attention,
        lexicon_ids,
        lexicon_probabilities,
        source_extended_ids,
        targets=None,
        context=None,
        decoder_state=None,
        mask=None,
    ):
        state = {
            "hidden": hidden,
            "attention_log_weights": attention_log_weights(attention, mask),
        }
        state.update(
            {
                k: v
                for k, v in (("context", context), ("decoder_state", decoder_state))
                if v is not None
            }
        )
        memory = {
            "extended_ids": source_extended_ids,
            "lexicon_ids": lexicon_ids,
            "lexicon_probabilities": lexicon_probabilities,
        }
        if targets is not None:
            return self.target_log_prob(state, memory, targets)
        log_probs = self.fold_time(state, memory)
        return log_probs if self.copies else log_probs[:, :, : self.vocabulary_size]

    def compute_output_shape(
        self,
        hidden_shape,
        attention_shape,
        lexicon_ids_shape,
        lexicon_probabilities_shape,
        source_extended_ids_shape,
        targets_shape=None,
        context_shape=None,
        decoder_state_shape=None,
    ):
        if targets_shape is not None:
            return tuple(hidden_shape[:2])
        length = attention_shape[-1] if self.copies else 0
        return (*hidden_shape[:2], None if length is None else self.vocabulary_size + length)

    def _known(self, targets):
        """Targets outside the vocabulary as `[UNK]`."""
        return ops.where(targets < self.vocabulary_size, targets, self.unknown_id)

    def _entries(self, state, memory):
        """The lexicon's entries of each step.

        Returns int32 ids and float32 log(a_j p(w | x_j)), both `[..., S * K]`.
        """
        weights = state["attention_log_weights"]
        ids, log_probs = (
            ops.cast(memory["lexicon_ids"], "int32"),
            log_distribution(memory["lexicon_probabilities"]),
        )
        if len(weights.shape) == 3:
            ids, log_probs = ops.expand_dims(ids, 1), ops.expand_dims(log_probs, 1)
        entries = ops.maximum(ops.expand_dims(weights, -1) + log_probs, LOG_ZERO)
        shape = ops.shape(entries)
        flat = (*shape[:-2], shape[-2] * shape[-1])
        return ops.reshape(ops.broadcast_to(ids, shape), flat), ops.reshape(entries, flat)

    def _target_mass(self, state, memory, targets):
        """log p_l of the targets, float32 `[batch, target_length]`."""
        ids, entries = self._entries(state, memory)
        return ops.logsumexp(
            ops.where(ids == ops.expand_dims(targets, -1), entries, LOG_ZERO), axis=-1
        )

    def _step_mass(self, state, memory, size):
        """log p_l of all words, float32 `[batch, size]`."""
        ids, entries = self._entries(state, memory)
        return copy_mass(entries, ids, size)

    def _without_copies(self, log_probs, memory):
        """Adds the ids that this head cannot output."""
        no_copy = ops.full_like(ops.cast(memory["extended_ids"], "float32"), LOG_ZERO)
        return ops.concatenate([log_probs, no_copy], axis=-1), no_copy
