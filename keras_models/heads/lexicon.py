"""Translation lexicons in the output distribution (Arthur et al. 2016)."""

import math

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.layers.numerics import (
    LOG_ZERO,
    add_copies,
    copy_mass,
    log_add,
    log_distribution,
    log_shares,
    project_parts,
)
from keras_models.layers.vocabulary import VocabularySoftmax


class LexiconHead(CopyHead):
    """What the lexicon heads share:
    p_l, the translations of the source words, weighted by attention.

        p_l(w) = sum over source positions j of a_j p(w | x_j)                     (Arthur 2018, eq.
        3.2)

    The lexicon is sparse: the K likeliest translations of each source word are known,
    `memory["lexicon_ids"]` (int) and `memory["lexicon_probabilities"]`, each `[batch,
    source_length, K]`, and no matrix of vocabulary by source is built in training. The
    probabilities of a source position sum to 1: what is left of the vocabulary, or all of a word
    that the lexicon does not know, is an entry of `[UNK]` (eq. 3.5). Places that are not needed
    have probability 0. (A sum that bfloat16 rounded is made 1 again.)

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
        self.supports_masking = True

    def get_config(self):
        return {**super().get_config(), "unknown_id": self.unknown_id}

    def compute_mask(self, hidden, previous_mask=None):
        """Returns None: the loss masks padding by the labels."""
        return None

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
    ):
        state = {"hidden": hidden, "attention_log_weights": log_distribution(attention)}
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
        # Fold time into the batch: one step's distribution for every target position.
        batch, length, source_length = ops.shape(attention)
        flat = {
            key: ops.reshape(value, (batch * length, value.shape[-1]))
            for key, value in state.items()
        }
        log_probs, _ = self.step_log_probs(
            flat, {k: ops.repeat(v, length, axis=0) for k, v in memory.items()}
        )
        size = self.vocabulary_size + source_length
        log_probs = ops.reshape(log_probs, (batch, length, size))
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
        """The lexicon's entries of each step:
        int32 ids and float32 log(a_j p(w | x_j)), both `[..., S * K]`.
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


def _is_empty(state):
    """Whether there is no source to attend to: bool, one axis less than the weights."""
    return ops.max(state["attention_log_weights"], axis=-1) <= LOG_ZERO


@keras.saving.register_keras_serializable("verbatim")
class LexiconBias(LexiconHead):
    """Adds the lexicon to the logits.

        p(w) = softmax(W hidden + b + log(p_l(w) + epsilon))_w                     (eq. 3.3)

    The sum of the softmax is epsilon times that of the plain one plus the lexicon's own entries, so
    that training builds nothing of the vocabulary's size but the logits. The large-vocabulary trick
    does not apply: the sum is always over all words.

    Args:
        vocabulary_size: V.
        epsilon: what every word has beside its translations' probability; smaller trusts the
            lexicon more.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`, the decoder's output.
        attention: `[batch, target_length, source_length]`, attention probabilities.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`, see `LexiconHead`.
        source_extended_ids: int `[batch, source_length]`, extended ids of the source tokens.
        targets: int `[batch, target_length]`, extended ids; or None.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V]`.

    Raises:
        ValueError: epsilon is not above 0.

    Example:

    >>> head = LexiconBias(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> head(np.ones((2, 3, 4)), attention, ids, probabilities, np.tile(np.arange(10, 15), (2, 1))).shape
    TensorShape([2, 3, 10])
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

    def target_log_prob(self, state, memory, targets, labels=None, training=False):
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
        return chosen + log_add(mass, ops.full_like(mass, log_epsilon)) - normaliser

    def step_log_probs(self, state, memory):
        logits = self.vocabulary.logits(state["hidden"], memory.get("shortlist"))
        mass = self._step_mass(state, memory, logits.shape[-1])
        bias = log_add(mass, ops.full_like(mass, math.log(self.epsilon)))
        return self._without_copies(log_shares(logits + bias), memory)


@keras.saving.register_keras_serializable("verbatim")
class LexiconLinear(LexiconHead):
    """Interpolates the lexicon with the softmax.

        p(w) = lambda p_l(w) + (1 - lambda) softmax(W hidden + b)_w,   lambda = sigmoid(x)
        (eq. 3.4)

    Gate `"constant"` learns one x, from 0 (lambda = 0.5); gate `"state"` (ours) reads it off each
    step: x = w . [context; state] + b. Without a source lambda is 0.

    Args:
        vocabulary_size: V.
        gate: `"constant"` or `"state"`.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden, attention, lexicon_ids, lexicon_probabilities, source_extended_ids, targets: as of
            `LexiconBias`.
        context: `[batch, target_length, memory_size]`, attention's weighted sum, for gate
            `"state"`.
        decoder_state: `[batch, target_length, state_size]`, the recurrent state, for gate
            `"state"`; default `hidden`.

    Returns:
        As `LexiconBias`.

    Raises:
        ValueError: an unknown gate.

    Example:

    >>> head = LexiconLinear(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> head(np.ones((2, 3, 4)), attention, ids, probabilities, np.tile(np.arange(10, 15), (2, 1))).shape
    TensorShape([2, 3, 10])
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
        empty = _is_empty(state)
        if self.gate_layer is None:
            logit = ops.zeros_like(state["attention_log_weights"][..., 0]) + self.gate_logit
        else:
            parts = [state["context"], state.get("decoder_state", state["hidden"])]
            logit = ops.cast(project_parts(self.gate_layer, parts), "float32")[..., 0]
        return ops.where(empty, LOG_ZERO, ops.log_sigmoid(logit)), ops.where(
            empty, 0.0, ops.log_sigmoid(-logit)
        )

    def target_log_prob(self, state, memory, targets, labels=None, training=False):
        targets = self._known(targets)
        log_lexicon, log_generate = self._log_gate(state)
        vocabulary = self.vocabulary.target_log_prob(
            state["hidden"], targets, memory.get("candidates")
        )
        return log_add(
            log_lexicon + self._target_mass(state, memory, targets), log_generate + vocabulary
        )

    def step_log_probs(self, state, memory):
        log_lexicon, log_generate = (ops.expand_dims(gate, -1) for gate in self._log_gate(state))
        generated = self.vocabulary.log_probs(
            state["hidden"], memory.get("shortlist"), log_generate
        )
        lexicon = self._step_mass(state, memory, generated.shape[-1])
        log_probs = log_add(log_lexicon + lexicon, generated)
        return self._without_copies(log_probs, memory)


@keras.saving.register_keras_serializable("verbatim")
class LexiconCopy(LexiconHead):
    """Generates, translates by the lexicon, or copies:
    copying is the lexicon that maps each word to itself. Ours.

        [g, l, c] = softmax(W_g [context; state] + b_g)
        p(w) = g softmax(W hidden + b)_w + l p_l(w) + c sum_{j: x_j = w} a_j

    over the extended vocabulary. The probability that the lexicon gives to `[UNK]` is not lost on a
    word that can be copied: where the lexicon does not know x_j, its share goes to the copy of x_j.
    Without a source g is 1.

    Args:
        vocabulary_size: V.
        unknown_id: the id of `[UNK]`.

    Call arguments:
        hidden, attention, lexicon_ids, lexicon_probabilities, source_extended_ids, targets,
            context, decoder_state: as of `LexiconLinear`.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> head = LexiconCopy(vocabulary_size=10)
    >>> attention = np.full((2, 3, 5), 0.2)
    >>> ids, probabilities = np.full((2, 5, 1), 7), np.ones((2, 5, 1))
    >>> context = np.ones((2, 3, 6))
    >>> source = np.tile(np.arange(10, 15), (2, 1))
    >>> head(np.ones((2, 3, 4)), attention, ids, probabilities, source, context=context).shape
    TensorShape([2, 3, 15])
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
        empty = _is_empty(state)
        return (
            ops.where(empty, 0.0, logits[..., 0]),
            ops.where(empty, LOG_ZERO, logits[..., 1]),
            ops.where(empty, LOG_ZERO, logits[..., 2]),
        )

    def _split(self, state, memory, gates):
        """The lexicon's entries without `[UNK]`'s, and the log-probability that position j is
        copied, `[..., S]`.
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

    def target_log_prob(self, state, memory, targets, labels=None, training=False):
        gates = self._log_gates(state)
        ids, entries, copies = self._split(state, memory, gates)
        vocabulary = self.vocabulary.target_log_prob(
            state["hidden"], targets, memory.get("candidates")
        )
        targets = ops.cast(targets, memory["extended_ids"].dtype)
        lexicon = ops.logsumexp(
            ops.where(ids == ops.expand_dims(targets, -1), entries, LOG_ZERO), axis=-1
        )
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(memory["extended_ids"], -2)
        copied = ops.logsumexp(ops.where(matches, copies, LOG_ZERO), axis=-1)
        return log_add(log_add(gates[0] + vocabulary, gates[1] + lexicon), copied)

    def step_log_probs(self, state, memory):
        gates = self._log_gates(state)
        ids, entries, copies = self._split(state, memory, gates)
        log_generate = ops.expand_dims(gates[0], -1)
        generated = self.vocabulary.log_probs(
            state["hidden"], memory.get("shortlist"), log_generate
        )
        lexicon = ops.expand_dims(gates[1], -1) + copy_mass(entries, ids, generated.shape[-1])
        words = log_add(generated, lexicon)
        log_probs = add_copies(words, copies, memory["extended_ids"], memory.get("places"))
        return log_probs, copies
