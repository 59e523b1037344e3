"""Sequential copying: a span of the source as one decision (SeqCopyNet, Zhou et al. 2018)."""

import keras
from keras import ops

from keras_models.heads.copy_head import SPAN_LENGTHS, SPAN_STARTS, CopyHead
from keras_models.heads.label_smoothing import floored, smooth
from keras_models.layers.activations import maxout
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO, masked_log_softmax, rowwise, weighted_sums
from keras_models.layers.vocabulary import VocabularySoftmax


@keras.saving.register_keras_serializable("verbatim")
class SpanCopy(CopyHead):
    """Generates a word or copies a span of up to `max_span` source tokens.

    With the memory vector m = [inputs; decoder_state; context]:

        p_copy = sigmoid(W_2 tanh(W_1 m + b_1) + b_2)
        generate:  P(w) = (1 - p_copy) softmax(W_o maxout(W_r m) + b_o)_w
        start:     q_s = tanh(W_s m + b_s),  P(i) = softmax_i e(q_s, h_i),  c_s the copying context
        transducer: g_0 = tanh(W_g m + b_g),  q_e = GRU(c_s, g_0)
        end:       P(j | i) = softmax of e(q_e, h_j) over i <= j < i + max_span
        copy:      P(i, j) = p_copy P(i) P(j | i)

    e is additive, v . tanh(W_h h + W_q q), with weights of its own for start and end. Words and
    spans are outcomes side by side: the same text may arise in several ways, which are not added.
    The decoder runs over every copied word (Copy Run): in training because the body does so anyway,
    in decoding because a span is output one token per step, see `keras_models.decoding.actions`.

    The paper's text has lost the numbers of the equations; they follow its section "Sequential
    Copying Mechanism".

    Args:
        vocabulary_size: V.
        max_span: the longest span, in tokens.
        units: size of the hidden layers, of the maxout layer and of the transducer; default: that
            of the decoder's state.
        copying_context: the transducer's input: `"start"`, the state of the span's first token,
            h_i; or `"expected"`, sum_i P(i) h_i, which is the same for every start and so cheaper
            in decoding. The paper leaves it open; `docs/results/span_copy.md` compares them.

    Call arguments:
        inputs: `[batch, target_length, embedding_size]`, embedded previous tokens.
        decoder_state: `[batch, target_length, state_size]`; default `hidden`.
        context: `[batch, target_length, memory_size]`, attention's weighted sum.
        memory_states: `[batch, source_length, memory_size]`, the encoded source.
        targets: int `[batch, target_length]`, ids below V or V + position; or None.
        span_starts: int `[batch, target_length]`: where a span begins in the target, its first
            source position; else -1.
        span_lengths: int `[batch, target_length]`: where a span begins its length, at its other
            tokens -1, 0 at generated words. Without both, a target V + j is a span of one token.
        mask: bool `[batch, source_length]`, false at padding; None takes the mask that Keras
            attached to `memory_states`, if any.
        hidden: `[batch, target_length, hidden_size]`, the decoder's output; read only where
            `decoder_state` is missing. By name, like every argument that the head does not read.

    Returns:
        float32 log-probabilities: `[batch, target_length]` of the targets (of a span at its first
        token, 0 at its others), or, without targets, `[batch, target_length, V + max_span *
        source_length]` over actions.

    Raises:
        ValueError: an unknown copying context, or `max_span` below 1.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import SpanCopy
    >>> head = SpanCopy(vocabulary_size=10, max_span=2)
    >>> context, states = np.ones((2, 3, 8)), np.ones((2, 5, 8))
    >>> tuple(head(np.ones((2, 3, 4)), np.ones((2, 3, 6)), context, states).shape)
    (2, 3, 20)

    References:
        Zhou, Yang, Wei, Zhou 2018, "Sequential Copying Networks", https://arxiv.org/abs/1807.02301
    """

    COPYING_CONTEXTS = ("start", "expected")
    merges = False
    _tied = None

    def __init__(
        self, vocabulary_size, max_span=5, units=None, copying_context="expected", **kwargs
    ):
        super().__init__(vocabulary_size, **kwargs)
        if copying_context not in self.COPYING_CONTEXTS:
            names = ", ".join(self.COPYING_CONTEXTS)
            raise ValueError(f"copying_context must be one of {names}; got {copying_context!r}.")
        if max_span < 1:
            raise ValueError(f"max_span must be at least 1; got {max_span}.")
        self.max_span = max_span
        self.units = units
        self.copying_context = copying_context

    def build(self, inputs_shape, decoder_state_shape, context_shape, memory_states_shape):
        units = self.units or decoder_state_shape[-1]
        memory_size = memory_states_shape[-1]
        size = inputs_shape[-1] + decoder_state_shape[-1] + context_shape[-1]
        policy = self.dtype_policy

        def dense(name, units, **kwargs):
            layer = keras.layers.Dense(units, dtype=policy, name=name, **kwargs)
            layer.build((None, size))
            return layer

        self.switch_hidden = dense("switch_hidden", units, activation="tanh")
        self.switch = keras.layers.Dense(1, dtype=policy, name="switch")
        self.switch.build((None, units))
        self.readout = dense("readout", 2 * units, use_bias=False)
        self.vocabulary = VocabularySoftmax(self.vocabulary_size, dtype=policy, name="vocabulary")
        if self._tied is not None:
            self.vocabulary.tie(self._tied)
        self.vocabulary.build((None, units))
        self.start_query = dense("start_query", units, activation="tanh")
        self.transducer_state = dense("transducer_state", units, activation="tanh")
        self.transducer = keras.layers.GRUCell(units, dtype=policy, name="transducer")
        self.transducer.build((None, memory_size))
        for which in ("start", "end"):
            setattr(
                self,
                f"{which}_memory",
                self.add_weight(shape=(memory_size, units), name=f"{which}_memory"),
            )
            setattr(
                self,
                f"{which}_kernel",
                self.add_weight(shape=(units, units), name=f"{which}_kernel"),
            )
            setattr(
                self, f"{which}_score", self.add_weight(shape=(units, 1), name=f"{which}_score")
            )

    def tie(self, embedding):
        # Its softmax is made when sizes are known.
        self._tied = embedding

    def __call__(self, *arguments, **keywords):
        """As that of every head; without `decoder_state`, `hidden` stands for it."""
        if len(arguments) < 2 and keywords.get("decoder_state") is None and "hidden" in keywords:
            keywords["decoder_state"] = keywords["hidden"]
        return super().__call__(*arguments, **keywords)

    def call(
        self,
        inputs,
        decoder_state,
        context,
        memory_states,
        targets=None,
        span_starts=None,
        span_lengths=None,
        mask=None,
        memory_states_mask=None,
    ):
        mask = memory_states_mask if mask is None else mask
        state = {"inputs": inputs, "decoder_state": decoder_state, "context": context}
        memory = {"states": memory_states, "mask": mask, **self.prepare(memory_states)}
        if targets is not None:
            labels = (
                None
                if span_starts is None
                else {SPAN_STARTS: span_starts, SPAN_LENGTHS: span_lengths}
            )
            return self.target_log_prob(state, memory, targets, labels)
        return self.fold_time(state, memory)

    def compute_output_shape(
        self,
        inputs_shape,
        decoder_state_shape,
        context_shape,
        memory_states_shape,
        targets_shape=None,
        span_starts_shape=None,
        span_lengths_shape=None,
        mask_shape=None,
    ):
        if targets_shape is not None:
            return tuple(inputs_shape[:2])
        length = memory_states_shape[1]
        size = None if length is None else self.vocabulary_size + self.max_span * length
        return (*inputs_shape[:2], size)

    def prepare(self, states):
        def keys(kernel):
            return rowwise(lambda rows: ops.matmul(rows, ops.cast(kernel, rows.dtype)), states)

        return {"start_keys": keys(self.start_memory), "end_keys": keys(self.end_memory)}

    # The parts. `...` is [batch] or [batch, target_length]; keys are [batch, source_length, units].

    @staticmethod
    def _memory_vector(state):
        return ops.concatenate([state["inputs"], state["decoder_state"], state["context"]], axis=-1)

    def _log_switch(self, vector, memory):
        """log(1 - p_copy) and log p_copy, each `[...]`."""
        logit = ops.cast(
            rowwise(lambda rows: self.switch(self.switch_hidden(rows)), vector), "float32"
        )[..., 0]
        log_generate, log_copy = ops.log_sigmoid(-logit), ops.log_sigmoid(logit)
        if memory["mask"] is None:
            return log_generate, log_copy
        # A source without tokens leaves nothing to copy.
        some = ops.any(memory["mask"], axis=-1)
        some = some if len(vector.shape) == 2 else ops.expand_dims(some, -1)
        return ops.where(some, log_generate, 0.0), ops.where(some, log_copy, LOG_ZERO)

    def _maxout(self, vector):
        return rowwise(lambda rows: maxout(self.readout(rows)), vector)

    @staticmethod
    def _scores(query, keys, kernel, score):
        """Additive scores of `query [..., units]` and `keys [batch, source_length, units]`, float32
        `[..., source_length]`.
        """
        query = rowwise(lambda rows: ops.matmul(rows, ops.cast(kernel, rows.dtype)), query)
        if len(query.shape) == 3:
            keys = ops.expand_dims(keys, 1)
        return ops.cast(
            weighted_sums(ops.tanh(keys + ops.expand_dims(query, -2)), score), "float32"
        )

    def _end_query(self, vector, copying_context):
        """q_e, from matrices `[rows, ...]`."""
        output, _ = self.transducer(copying_context, [self.transducer_state(vector)])
        return output

    def _log_start(self, vector, memory):
        query = rowwise(self.start_query, vector)
        scores = self._scores(query, memory["start_keys"], self.start_kernel, self.start_score)
        mask = memory["mask"]
        if mask is not None and len(vector.shape) == 3:
            mask = ops.expand_dims(mask, 1)
        return masked_log_softmax(scores, mask)

    @staticmethod
    def _expected(log_start, states):
        weights = ops.cast(ops.exp(log_start), states.dtype)
        if len(log_start.shape) == 2:
            return ops.squeeze(ops.matmul(ops.expand_dims(weights, 1), states), 1)
        return ops.matmul(weights, states)

    # The protocol.

    def is_choice(self, targets, labels):
        """Where it chooses something: not inside a span."""
        real = super().is_choice(targets, labels)
        if SPAN_LENGTHS not in (labels or {}):
            return real
        return ops.logical_and(real, labels[SPAN_LENGTHS] >= 0)

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = ops.cast(targets, "int32")
        if labels and SPAN_STARTS in labels:
            starts, lengths = (
                ops.cast(labels[name], "int32") for name in (SPAN_STARTS, SPAN_LENGTHS)
            )
        else:
            starts = ops.where(targets >= self.vocabulary_size, targets - self.vocabulary_size, -1)
            lengths = ops.cast(starts >= 0, "int32")
        vector = self._memory_vector(state)
        log_generate, log_copy = self._log_switch(vector, memory)
        words = ops.where(lengths == 0, targets, 0)
        readout = self._maxout(vector)
        word, normaliser = self.vocabulary.score(readout, words, memory.get("candidates"))

        log_start = self._log_start(vector, memory)
        start = ops.expand_dims(ops.maximum(starts, 0), -1)
        states = memory["states"]
        batch, target_length, source_length = ops.shape(log_start)
        if self.copying_context == "start":
            copying = take_along(states, start[..., 0])
        else:
            copying = self._expected(log_start, states)
        rows = batch * target_length
        query = self._end_query(
            ops.reshape(vector, (rows, vector.shape[-1])),
            ops.reshape(copying, (rows, states.shape[-1])),
        )
        query = ops.reshape(query, (batch, target_length, query.shape[-1]))
        scores = self._scores(query, memory["end_keys"], self.end_kernel, self.end_score)
        position = ops.reshape(ops.arange(source_length, dtype="int32"), (1, 1, -1))
        allowed = ops.logical_and(position >= start, position < start + self.max_span)
        if memory["mask"] is not None:
            allowed = ops.logical_and(allowed, ops.expand_dims(memory["mask"], 1))
        log_end = masked_log_softmax(scores, allowed)
        end = ops.clip(
            start + ops.expand_dims(ops.maximum(lengths, 1), -1) - 1, 0, source_length - 1
        )
        span = log_copy + take_along(log_start, start)[..., 0] + take_along(log_end, end)[..., 0]
        log_prob = ops.where(lengths > 0, span, ops.where(lengths < 0, 0.0, log_generate + word))
        log_prob = ops.maximum(log_prob, LOG_ZERO)
        if not label_smoothing:
            return log_prob
        generated = floored(log_generate) - normaliser + self.vocabulary.mean_logit(readout)
        spans, number = self._sum_of_spans(
            ops.expand_dims(log_copy, -1) + log_start, scores, memory["mask"]
        )
        size = self.vocabulary_size
        mean = (size * generated + spans) / (size + number)
        # Inside a span nothing is chosen.
        return smooth(log_prob, ops.where(lengths < 0, 0.0, mean), label_smoothing)

    def _sum_of_spans(self, log_starts, scores, mask):
        """Sums the log-probabilities of all spans, `LOG_FLOOR` at least each.

        Args:
            log_starts: float32 `[batch, target_length, source_length]`, of a copy from there.
            scores: float32 like `log_starts`, of the ends.
            mask: bool `[batch, source_length]`, or None.

        Returns:
            float32 `[batch, target_length]`, and how many spans there are, float32 `[batch, 1]`.
        """
        if self.copying_context == "start":
            raise ValueError(
                'Label smoothing of SpanCopy needs copying_context="expected": with "start" each '
                "start has ends of its own, all of which would have to be scored."
            )
        mask = ops.ones_like(log_starts[:, 0], dtype="bool") if mask is None else mask
        reachable = self._windows(mask, False)
        scores = ops.moveaxis(self._windows(ops.moveaxis(scores, 1, 2), 0.0), 3, 1)
        scores = ops.where(ops.expand_dims(reachable, 1), scores, LOG_ZERO)
        log_ends = ops.log_softmax(scores, axis=2)
        # A span has a first token and a last one.
        some = ops.logical_and(reachable, ops.expand_dims(mask, 1))
        spans = floored(ops.expand_dims(log_starts, 2) + log_ends)
        total = ops.sum(ops.where(ops.expand_dims(some, 1), spans, 0.0), axis=(2, 3))
        return total, ops.sum(ops.cast(some, "float32"), axis=(1, 2))[:, None]

    def _windows(self, tensor, fill):
        """`[rows, source_length, ...]` to `[rows, max_span, source_length, ...]`:
        what lies 0, 1, ... places on.
        """
        length = ops.shape(tensor)[1]
        padding = [[0, 0], [0, self.max_span - 1]] + [[0, 0]] * (len(tensor.shape) - 2)
        padded = ops.pad(tensor, padding, constant_values=fill)
        return ops.stack(
            [padded[:, shift : shift + length] for shift in range(self.max_span)], axis=1
        )

    def step_log_probs(self, state, memory):
        vector = self._memory_vector(state)
        log_generate, log_copy = self._log_switch(vector, memory)
        log_total = ops.expand_dims(log_generate, -1)
        words = self.vocabulary.log_probs(self._maxout(vector), memory.get("shortlist"), log_total)
        log_start = self._log_start(vector, memory)
        states = memory["states"]
        rows, source_length = ops.shape(log_start)
        mask = memory["mask"]
        if mask is None:
            mask = ops.ones_like(log_start, dtype="bool")

        if self.copying_context == "start":
            # One query per start, scored only against the ends within its reach.
            size = vector.shape[-1]
            repeated = ops.reshape(
                ops.repeat(ops.expand_dims(vector, 1), source_length, axis=1),
                (rows * source_length, size),
            )
            query = self._end_query(
                repeated, ops.reshape(states, (rows * source_length, states.shape[-1]))
            )
            query = ops.matmul(query, ops.cast(self.end_kernel, query.dtype))
            query = ops.reshape(query, (rows, 1, source_length, query.shape[-1]))
            keys = self._windows(memory["end_keys"], 0)
            scores = weighted_sums(ops.tanh(keys + query), self.end_score)
            scores = ops.cast(scores, "float32")
        else:
            query = self._end_query(vector, self._expected(log_start, states))
            scores = self._windows(
                self._scores(query, memory["end_keys"], self.end_kernel, self.end_score), 0.0
            )
        reachable = self._windows(mask, False)
        scores = ops.where(reachable, scores, LOG_ZERO)
        log_end = ops.where(reachable, ops.log_softmax(scores, axis=1), LOG_ZERO)
        spans = ops.expand_dims(ops.expand_dims(log_copy, -1) + log_start, 1) + log_end
        spans = ops.reshape(ops.maximum(spans, LOG_ZERO), (rows, self.max_span * source_length))
        copies = ops.maximum(ops.expand_dims(log_copy, -1) + log_start, LOG_ZERO)
        return ops.concatenate([words, spans], axis=-1), copies

    def get_config(self):
        config = super().get_config()
        config.update(
            max_span=self.max_span, units=self.units, copying_context=self.copying_context
        )
        return config
