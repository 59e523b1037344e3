"""Attention over a source: additive, dot, bilinear, each with optional coverage."""

import keras
from keras import ops

from keras_models.layers.loop_kernel import LoopKernel, multiply
from keras_models.layers.numerics import masked_log_softmax, rowwise, weighted_sums


@keras.saving.register_keras_serializable("verbatim")
class SourceAttention(keras.layers.Layer):
    """Attention of queries over a source sequence, in log space.

    With query s, source states h_j and coverage c_j (the sum of the weights given to j so far):

        additive:  e_j = v . tanh(W h_j + U s + b [+ w_c c_j])   (Bahdanau et al. 2014)
        dot:       e_j = s . h_j [+ w_c c_j]                     (Luong et al. 2015)
        bilinear:  e_j = s . W h_j [+ w_c c_j]                   (Luong et al. 2015, "general")
        a = softmax(e),  context = sum_j a_j h_j

    c is coverage (See et al. 2017, eq. 11).

    Args:
        score: `"additive"`, `"dot"` or `"bilinear"`.
        units: size of the additive layer, and of the query for `"bilinear"`; ignored by `"dot"`.
        coverage: whether coverage enters the score.

    Call arguments:
        query: `[batch, query_size]`, or those of all steps at once, `[batch, target_length,
            query_size]`.
        memory: `[batch, source_length, memory_size]`.
        mask: bool `[batch, source_length]`, false at padding; or None.
        coverage: `[batch, source_length]`, with as many axes as the result, when the layer was made
            with `coverage=True`.
        keys: what `project_memory(memory)` returned, so that a loop computes it once.
        query_kernel: what `loop_kernel()` returned outside of the loop that is trained, for
            `[batch, query_size]` queries; None multiplies by the weights as they are.

    Returns:
        context `[batch, memory_size]` and log-weights `[batch, source_length]` (float32; exp gives
        exactly 0 at padding, and everywhere for an empty source); with the target's axis where the
        queries have it.

    Raises:
        ValueError: an unknown score, or sizes that `"dot"` cannot multiply.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import SourceAttention
    >>> attention = SourceAttention("additive", units=8)
    >>> context, log_weights = attention(np.ones((2, 4)), np.ones((2, 3, 6)))
    >>> tuple(context.shape), tuple(log_weights.shape)
    ((2, 6), (2, 3))

    References:
        Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473; Luong et al. 2015,
        https://arxiv.org/abs/1508.04025; See et al. 2017, https://arxiv.org/abs/1704.04368
    """

    SCORES = ("additive", "dot", "bilinear")

    def __init__(self, score="additive", units=128, coverage=False, **kwargs):
        super().__init__(**kwargs)
        if score not in self.SCORES:
            raise ValueError(f"score must be one of {', '.join(self.SCORES)}; got {score!r}.")
        self.score = score
        self.units = units
        self.coverage = coverage
        self.supports_masking = True

    def compute_mask(self, query, previous_mask):
        """Returns None: the mask is the source's, and neither result has its axes."""
        return None

    def build(self, query_shape, memory_shape):
        query_size, memory_size = query_shape[-1], memory_shape[-1]
        if self.score == "dot" and query_size != memory_size:
            raise ValueError(
                f"Dot attention needs equal sizes; the query has {query_size}, the memory "
                f"{memory_size}. Use 'bilinear'."
            )
        if self.score == "additive":
            self.memory_kernel = self.add_weight(
                shape=(memory_size, self.units), name="memory_kernel"
            )
            self.query_kernel = self.add_weight(shape=(query_size, self.units), name="query_kernel")
            self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")
            self.score_kernel = self.add_weight(shape=(self.units, 1), name="score_kernel")
        elif self.score == "bilinear":
            self.memory_kernel = self.add_weight(
                shape=(memory_size, query_size), name="memory_kernel"
            )
        if self.coverage:
            size = self.units if self.score == "additive" else 1
            # Zero: at the start coverage says nothing, and training decides how much it should.
            self.coverage_kernel = self.add_weight(
                shape=(size,), initializer="zeros", name="coverage_kernel"
            )

    def project_memory(self, memory):
        """Returns the keys `[batch, source_length, key_size]`.

        They are the part of the score that no query changes.
        """
        if self.score == "additive":
            return rowwise(lambda rows: ops.matmul(rows, self.memory_kernel), memory) + self.bias
        if self.score == "bilinear":
            return rowwise(lambda rows: ops.matmul(rows, self.memory_kernel), memory)
        return memory

    def step_kernels(self):
        """Returns the kernels that a query is multiplied by."""
        return [self.query_kernel] if self.score == "additive" else []

    def loop_kernel(self):
        """Returns the `LoopKernel` that a loop's queries are multiplied by, or None."""
        return (
            LoopKernel(self.query_kernel, self.compute_dtype) if self.score == "additive" else None
        )

    def call(self, query, memory, mask=None, coverage=None, keys=None, query_kernel=None):
        if keys is None:
            keys = self.project_memory(memory)
        if coverage is not None:
            coverage = ops.expand_dims(ops.cast(coverage, self.compute_dtype), -1)
        single = len(query.shape) == 2
        if not single and mask is not None:
            mask = ops.expand_dims(mask, 1)
        if self.score == "additive":
            query_kernel = self.query_kernel if query_kernel is None else query_kernel
            query = rowwise(lambda rows: multiply(rows, query_kernel), query)
            inner = (keys if single else ops.expand_dims(keys, 1)) + ops.expand_dims(query, -2)
            if self.coverage:
                inner = inner + coverage * self.coverage_kernel
            scores = weighted_sums(ops.tanh(inner), self.score_kernel)
        else:
            if single:
                scores = ops.squeeze(ops.matmul(keys, ops.expand_dims(query, -1)), -1)
            else:
                scores = ops.matmul(query, ops.transpose(keys, (0, 2, 1)))
            if self.coverage:
                scores = scores + ops.squeeze(coverage, -1) * self.coverage_kernel
        log_weights = masked_log_softmax(scores, mask)
        weights = ops.cast(ops.exp(log_weights), memory.dtype)
        if single:
            return ops.squeeze(ops.matmul(ops.expand_dims(weights, 1), memory), 1), log_weights
        return ops.matmul(weights, memory), log_weights

    def compute_output_shape(self, query_shape, memory_shape):
        return (*query_shape[:-1], memory_shape[-1]), (*query_shape[:-1], memory_shape[1])

    def get_config(self):
        config = super().get_config()
        config.update(score=self.score, units=self.units, coverage=self.coverage)
        return config
