"""Pointer sentinel mixture:
attention over past positions that may hand the word to the vocabulary (Merity et al. 2016).
"""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.layers.numerics import LOG_ZERO, add_copies, copy_mass, log_add, rowwise
from keras_models.layers.vocabulary import VocabularySoftmax

NO_WORD = -1  # in a window's words: nothing stands at that position yet


@keras.saving.register_keras_serializable("verbatim")
class PointerSentinel(CopyHead):
    """Mixes a vocabulary softmax with a pointer by a sentinel that competes with the source
    positions.

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
        mask: bool `[batch, source_length]`, false at padding; None takes every position.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets, or, without targets,
        `[batch, target_length, V + source_length]`.

    Example:

    >>> head = PointerSentinel(vocabulary_size=10)
    >>> head(np.ones((2, 3, 4)), np.ones((2, 5, 6)), np.tile(np.arange(10, 15), (2, 1))).shape
    TensorShape([2, 3, 15])

    References:
        Merity et al. 2016, "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843
    """

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )
        self.supports_masking = True

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

    def compute_mask(self, *arguments, **keywords):
        """Returns None: the loss masks padding by the labels."""
        return None

    def call(self, hidden, memory_states, source_extended_ids, targets=None, mask=None):
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
        self, hidden, log_weights, log_gate, extended_ids, targets, candidates=None
    ):
        """log p of one target a step;
        the vocabulary is normalised, but nothing of size V + positions is built.
        """
        vocabulary = self.vocabulary.target_log_prob(hidden, targets, candidates)
        targets = ops.cast(targets, extended_ids.dtype)
        matches = ops.expand_dims(targets, -1) == ops.expand_dims(extended_ids, -2)
        copies = ops.logsumexp(ops.where(matches, log_weights, LOG_ZERO), axis=-1)
        return log_add(log_gate + vocabulary, copies)

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

    def target_log_prob(self, state, memory, targets, labels=None, training=False):
        log_weights, log_gate = self._attend(state["hidden"], memory["states"], memory.get("mask"))
        return self._target_log_prob(
            state["hidden"],
            log_weights,
            log_gate,
            memory["extended_ids"],
            targets,
            memory.get("candidates"),
        )

    def step_log_probs(self, state, memory):
        hidden = ops.expand_dims(state["hidden"], 1)
        log_weights, log_gate = self._attend(hidden, memory["states"], memory.get("mask"))
        log_weights = ops.squeeze(log_weights, 1)
        words = self.vocabulary.log_probs(state["hidden"], memory.get("shortlist"), log_gate)
        return add_copies(
            words, log_weights, memory["extended_ids"], memory.get("places")
        ), log_weights


@keras.saving.register_keras_serializable("verbatim")
class PointerSentinelWindow(PointerSentinel):
    """The pointer sentinel of a language model: it points at the last L words of its own past.

    Position i of the window carries the pair (h_i, w_i), where h_i is the recurrent network's
    output after reading w_i, and the pointer's mass a_i goes to that word w_i. Step t has read w_t
    and predicts w_{t+1}: its query is made of h_t, and it sees the L pairs t-L+1, ..., t, hence
    itself too; the paper projects the query because of just that (section 2.2: "the most recent
    word (since this word may be repeated)"). With L positions or fewer read, it sees those that
    there are.

        q_t  = tanh(W h_t + b),   z_i = q_t . h_i  for i = t-L+1..t
        a    = softmax([z; q_t . s]),   g = a_sentinel
        p(w_{t+1} = w) = g softmax(U h_t + c)_w + sum_{i: w_i = w} a_i

    All steps of a chunk are computed at once, with a banded mask over the window carried in and the
    chunk itself. Words are ids below V, or extended ids of words that have none; these get
    probability from the pointer alone.

    Args:
        vocabulary_size: V.
        window: L.

    Call arguments:
        hidden: `[batch, time, hidden_size]`, h_t.
        words: int `[batch, time]`, the words that were read, w_t; `NO_WORD` (-1) at padding, which
            nothing points at.
        window: dict of `states` `[batch, L, hidden_size]` and `words` int `[batch, L]`: what the
            last chunk returned; None is an empty one.
        targets: int `[batch, n]`, w_{t+1} for the last n steps; None asks for whole distributions.
        last: n, how many of the chunk's last steps are asked for; all if None. The softmax is
            computed for these alone.
        lengths: after how many steps of this chunk the returned window ends: an int, or int
            `[batch]`; all if None.
        size: number of extended ids of whole distributions, default V. It must exceed every word.

    Returns:
        log_probs: float32 `[batch, n]` of the targets, or `[batch, n, size]`.
        window: the L pairs that the last of `lengths` steps saw, oldest first.

    Example:

    >>> head = PointerSentinelWindow(vocabulary_size=10, window=4)
    >>> words = np.array([[5, 6, 7]])
    >>> log_prob, window = head(np.ones((1, 3, 8)), words, targets=np.array([[6, 7, 5]]))
    >>> log_prob.shape
    TensorShape([1, 3])
    >>> np.asarray(window["words"]).tolist()
    [[-1, 5, 6, 7]]

    References:
        Merity et al. 2016, "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843
    """

    def __init__(self, vocabulary_size, window=100, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        if window < 1:
            raise ValueError(f"window must be at least 1; got {window}.")
        self.window = window

    def build(self, hidden_shape):
        super().build(hidden_shape)

    def initial_window(self, batch_size, hidden_size):
        """Returns a window in which nothing stands yet."""
        return {
            "states": ops.zeros((batch_size, self.window, hidden_size), dtype=self.compute_dtype),
            "words": ops.full((batch_size, self.window), NO_WORD, dtype="int32"),
        }

    def call(self, hidden, words, window=None, targets=None, last=None, lengths=None, size=None):
        batch, length = ops.shape(words)
        if window is None:
            window = self.initial_window(batch, hidden.shape[-1])
        states = ops.concatenate([ops.cast(window["states"], hidden.dtype), hidden], axis=1)
        words = ops.concatenate([window["words"], ops.cast(words, "int32")], axis=1)
        first = 0 if last is None else length - last
        queries = hidden if last is None else hidden[:, -last:]
        # Chunk step t stands at position L + t; it sees positions t + 1 .. t + L.
        steps = ops.expand_dims(ops.arange(first, length, dtype="int32"), 1)
        positions = ops.expand_dims(ops.arange(self.window + length, dtype="int32"), 0)
        band = ops.logical_and(positions > steps, positions <= steps + self.window)
        mask = ops.logical_and(ops.expand_dims(band, 0), ops.expand_dims(words >= 0, 1))
        log_weights, log_gate = self._attend(queries, states, mask)
        if targets is not None:
            # A target of NO_WORD must not meet the empty positions; these have weight 0 in any
            # case.
            log_probs = self._target_log_prob(
                queries, log_weights, log_gate, words, ops.maximum(targets, 0)
            )
        else:
            log_probs = self._distributions(
                queries,
                log_weights,
                log_gate,
                words,
                self.vocabulary_size if size is None else size,
            )
        return log_probs, self._window_after(states, words, length if lengths is None else lengths)

    def _window_after(self, states, words, lengths):
        if len(getattr(lengths, "shape", ())) == 0:
            return {
                "states": states[:, lengths : lengths + self.window],
                "words": words[:, lengths : lengths + self.window],
            }
        index = ops.expand_dims(ops.cast(lengths, "int32"), 1) + ops.arange(
            self.window, dtype="int32"
        )
        return {
            "states": ops.take_along_axis(states, ops.expand_dims(index, -1), axis=1),
            "words": ops.take_along_axis(words, index, axis=1),
        }

    def step(self, hidden, words, window, size=None):
        """One step of generation.

        Args:
            hidden: `[batch, hidden_size]`, h_t.
            words: int `[batch]`, w_t, the words just read.
            window: what `call` or the last `step` returned.
            size: number of extended ids, default V.

        Returns:
            log_probs: float32 `[batch, size]`.
            copy_log_probs: float32 `[batch, L]`, log a_i for the positions of the new window.
            window: the new window, of which the last position is this step.
        """
        window = {
            "states": ops.concatenate(
                [window["states"][:, 1:], ops.cast(hidden, self.compute_dtype)[:, None]], axis=1
            ),
            "words": ops.concatenate(
                [window["words"][:, 1:], ops.cast(words, "int32")[:, None]], axis=1
            ),
        }
        queries = ops.expand_dims(hidden, 1)
        log_weights, log_gate = self._attend(queries, window["states"], window["words"] >= 0)
        size = self.vocabulary_size if size is None else size
        log_probs = self._distributions(queries, log_weights, log_gate, window["words"], size)
        return ops.squeeze(log_probs, 1), ops.squeeze(log_weights, 1), window

    def compute_output_shape(
        self, hidden_shape, words_shape, window_shape=None, targets_shape=None, **options
    ):
        batch, length = hidden_shape[:2]
        length = length if options.get("last") is None else options["last"]
        log_probs = (
            (batch, length) if targets_shape is not None else (batch, length, self.vocabulary_size)
        )
        return log_probs, {
            "states": (batch, self.window, hidden_shape[-1]),
            "words": (batch, self.window),
        }

    def get_config(self):
        return {**super().get_config(), "window": self.window}
