"""Layers of a Transformer with caches for decoding (Vaswani et al. 2017), pre-norm or post-norm."""

import math

import keras
from keras import ops

from keras_models.layers.caches import entries, write_step
from keras_models.layers.dropout import Dropout
from keras_models.layers.numerics import LOG_ZERO, rowwise
from keras_models.layers.panels import Dense, product

# Added to the variance that a normalisation divides by.
EPSILON = 1e-5


def sinusoidal_positions(positions, size):
    """Position encodings (Vaswani et al. 2017, section 3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i / size)),  PE(pos, 2i + 1) = cos(pos / 10000^(2i / size))

    Args:
        positions: int tensor `[length]`.
        size: even number of units.

    Returns:
        float32 `[length, size]`.
    """
    rates = ops.exp(ops.arange(0, size, 2, dtype="float32") * (-math.log(10000.0) / size))
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * rates
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    return ops.reshape(pairs, (ops.shape(angles)[0], size))


@keras.saving.register_keras_serializable("verbatim")
class MultiHeadAttention(keras.layers.Layer):
    """Scaled dot-product attention with several heads, whose keys and values can be kept.

        MultiHead(Q, M) = Concat(head_1, ..., head_h) W_O
        head_i = softmax(Q W_Q,i (M W_K,i)^T / sqrt(d)) M W_V,i

    (section 3.2.2 and eq. 1) with d = size / h. A query of which every key is masked gets zeros.

    Args:
        heads: h, a divisor of the query's size.
        dropout: share of the weights dropped, each head's by itself.

    Call arguments:
        query: `[batch, length, size]`.
        keys, values: `[batch, heads, memory_length, size / heads]`, what `project_memory(memory)`
            returned.
        allowed: bool, broadcasts to `[batch, heads, length, memory_length]`: which keys each query
            may see.
        training: whether dropout is on.

    Returns:
        `[batch, length, size]`.

    Raises:
        ValueError: `heads` does not divide the query's size.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import MultiHeadAttention
    >>> attention = MultiHeadAttention(heads=2)
    >>> attention.build((None, None, 4), (None, None, 4))
    >>> keys, values = attention.project_memory(np.ones((1, 3, 4), "float32"))
    >>> query, allowed = np.ones((1, 5, 4), "float32"), np.ones((1, 1, 1, 3), "bool")
    >>> tuple(attention(query, keys=keys, values=values, allowed=allowed).shape)
    (1, 5, 4)

    References:
        Vaswani et al. 2017, "Attention Is All You Need", https://arxiv.org/abs/1706.03762
    """

    def __init__(self, heads, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads
        self.dropout = dropout
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, query_shape, memory_shape):
        size, memory_size = query_shape[-1], memory_shape[-1]
        if size % self.heads:
            raise ValueError(
                f"The number of attention heads ({self.heads}) must divide the size ({size})."
            )
        self.size = size
        self.query_kernel = self.add_weight(shape=(size, size), name="query_kernel")
        self.key_kernel = self.add_weight(shape=(memory_size, size), name="key_kernel")
        self.value_kernel = self.add_weight(shape=(memory_size, size), name="value_kernel")
        self.output_kernel = self.add_weight(shape=(size, size), name="output_kernel")

    def _project(self, inputs, kernel):
        return rowwise(lambda rows: product(rows, ops.cast(kernel, rows.dtype), kernel), inputs)

    def _split(self, inputs):
        """`[batch, length, size]` to `[batch, heads, length, size / heads]`."""
        batch, length = ops.shape(inputs)[:2]
        parts = ops.reshape(inputs, (batch, length, self.heads, self.size // self.heads))
        return ops.transpose(parts, (0, 2, 1, 3))

    def project_memory(self, memory):
        """Returns the keys and values of `memory [batch, memory_length, memory_size]`.

        No query changes them.
        """
        return (
            self._split(self._project(memory, self.key_kernel)),
            self._split(self._project(memory, self.value_kernel)),
        )

    def call(self, query, keys, values, allowed, training=False):
        batch, length = ops.shape(query)[:2]
        query = self._split(self._project(query, self.query_kernel))
        scores = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
        scores = ops.cast(scores, "float32") * (self.size // self.heads) ** -0.5
        weights = ops.where(
            allowed, ops.softmax(ops.where(allowed, scores, LOG_ZERO), axis=-1), 0.0
        )
        weights = self.drop(ops.cast(weights, values.dtype), training=training)
        heads = ops.matmul(weights, values)
        joined = ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (batch, length, self.size))
        return self._project(joined, self.output_kernel)

    def get_config(self):
        return {**super().get_config(), "heads": self.heads, "dropout": self.dropout}


class _TransformerLayer(keras.layers.Layer):
    """Base of encoder and decoder layers: self-attention and feed-forward network.

    Each is x + Drop(f(Norm(x))), or without `norm_first` Norm(x + Drop(f(x))).

    The feed-forward network is max(0, x W_1 + b_1) W_2 + b_2 (eq. 2). With normalisation first
    (pre-norm, Xiong et al. 2020) training needs no long warm-up; whoever stacks these layers
    normalises the last one's output.
    """

    def __init__(
        self,
        heads,
        feed_forward_size,
        dropout=0.1,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        norm_first=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.norm_first = norm_first
        self.heads = heads
        self.feed_forward_size = feed_forward_size
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.feed_forward_dropout = feed_forward_dropout
        policy = self.dtype_policy
        self.self_norm = keras.layers.LayerNormalization(
            epsilon=EPSILON, dtype=policy, name="self_norm"
        )
        self.self_attention = self._attention("self_attention")
        self.feed_forward_norm = keras.layers.LayerNormalization(
            epsilon=EPSILON, dtype=policy, name="feed_forward_norm"
        )
        self.inner = Dense(feed_forward_size, activation="relu", dtype=policy, name="inner")
        self.drop = Dropout(dropout, dtype=policy, name="dropout")
        self.inner_drop = Dropout(feed_forward_dropout, dtype=policy, name="inner_dropout")

    def _attention(self, name):
        return MultiHeadAttention(
            self.heads, self.attention_dropout, dtype=self.dtype_policy, name=name
        )

    def build(self, input_shape):
        size = input_shape[-1]
        sizes = (None, None, size)
        self.self_norm.build(sizes)
        self.self_attention.build(sizes, sizes)
        self.feed_forward_norm.build(sizes)
        self.inner.build((None, size))
        self.outer = Dense(size, dtype=self.dtype_policy, name="outer")
        self.outer.build((None, self.feed_forward_size))

    def last_kernels(self):
        """Returns the kernels by which its parts write what they add."""
        return [self.self_attention.output_kernel, self.outer.kernel]

    def _before(self, norm, inputs):
        """What a part reads."""
        return norm(inputs) if self.norm_first else inputs

    def _add(self, norm, inputs, outputs, training):
        """What a part leaves, of its inputs and its outputs."""
        states = inputs + self.drop(outputs, training=training)
        return states if self.norm_first else norm(states)

    def _feed_forward(self, inputs, training):
        def transform(rows):
            return self.outer(self.inner_drop(self.inner(rows), training=training))

        norm = self.feed_forward_norm
        return self._add(norm, inputs, rowwise(transform, self._before(norm, inputs)), training)

    def get_config(self):
        config = super().get_config()
        config.update(
            heads=self.heads,
            feed_forward_size=self.feed_forward_size,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            feed_forward_dropout=self.feed_forward_dropout,
            norm_first=self.norm_first,
        )
        return config


@keras.saving.register_keras_serializable("verbatim")
class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network.

    Args:
        heads: attention heads, a divisor of the input's size.
        feed_forward_size: hidden units of the feed-forward network.
        dropout: share of units dropped on what each part adds.
        attention_dropout: share of attention's weights dropped.
        feed_forward_dropout: share of the feed-forward network's hidden units dropped.
        norm_first: whether each part normalises its inputs (pre-norm), or else what it leaves
            (post-norm, as in Vaswani et al. 2017).

    Call arguments:
        inputs: `[batch, length, size]`.
        source_mask: bool `[batch, length]`, false at padding.

    Returns:
        `[batch, length, size]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import TransformerEncoderLayer
    >>> layer = TransformerEncoderLayer(heads=2, feed_forward_size=16)
    >>> tuple(layer(np.ones((2, 3, 8)), source_mask=np.ones((2, 3), "bool")).shape)
    (2, 3, 8)

    References:
        Vaswani et al. 2017, section 3.1; Xiong et al. 2020, https://arxiv.org/abs/2002.04745
    """

    def call(self, inputs, source_mask, training=False):
        normed = self._before(self.self_norm, inputs)
        keys, values = self.self_attention.project_memory(normed)
        attended = self.self_attention(
            normed,
            keys=keys,
            values=values,
            allowed=source_mask[:, None, None, :],
            training=training,
        )
        states = self._add(self.self_norm, inputs, attended, training)
        return self._feed_forward(states, training)


@keras.saving.register_keras_serializable("verbatim")
class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention over the output, attention over the source, feed-forward network.

    Args:
        heads, feed_forward_size, **kwargs: see `TransformerEncoderLayer`.

    Call arguments:
        inputs: `[batch, length, size]`.
        source_keys, source_values: what `project_memory(memory)` returned.
        source_mask: bool `[batch, source_length]`, false at padding.
        cache: None, for all steps in parallel, each of which sees itself and those before; or, for
            the one step of `inputs` (length 1), a dict of `keys` and `values` `[batch, heads,
            max_length, size / heads]` of the steps before. If `inputs` has that step of `length`
            hypotheses of each source, they are `[batch, heads, max_length, length, size / heads]`.
        index: number of that step, an int or scalar tensor.
        allowed: bool `[batch, length, max_length * length]`, which of a cache's entries each of
            several hypotheses sees; None for one hypothesis, which sees the steps up to its own.

    Returns:
        `[batch, length, size]` and the new cache; None without one.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import TransformerDecoderLayer
    >>> layer = TransformerDecoderLayer(heads=2, feed_forward_size=16)
    >>> layer.build((None, None, 8))
    >>> keys, values = layer.project_memory(np.ones((2, 5, 8), "float32"))
    >>> mask = np.ones((2, 5), "bool")
    >>> outputs, cache = layer(np.ones((2, 3, 8)), keys, values, source_mask=mask)
    >>> tuple(outputs.shape)
    (2, 3, 8)

    References:
        Vaswani et al. 2017, section 3.1; Xiong et al. 2020, https://arxiv.org/abs/2002.04745
    """

    def __init__(self, heads, feed_forward_size, **kwargs):
        super().__init__(heads, feed_forward_size, **kwargs)
        self.source_norm = keras.layers.LayerNormalization(
            epsilon=EPSILON, dtype=self.dtype_policy, name="source_norm"
        )
        self.source_attention = self._attention("source_attention")

    def build(self, input_shape):
        super().build(input_shape)
        sizes = (None, None, input_shape[-1])
        self.source_norm.build(sizes)
        self.source_attention.build(sizes, sizes)

    def last_kernels(self):
        return [*super().last_kernels(), self.source_attention.output_kernel]

    def step_kernels(self):
        """Returns the kernels that a step of a decoding multiplies by."""
        own, source = self.self_attention, self.source_attention
        return [
            own.query_kernel,
            own.key_kernel,
            own.value_kernel,
            own.output_kernel,
            source.query_kernel,
            source.output_kernel,
            self.inner.kernel,
            self.outer.kernel,
        ]

    def project_memory(self, memory):
        """Returns the keys and values of the source's states `[batch, source_length, size]`."""
        return self.source_attention.project_memory(memory)

    def call(
        self,
        inputs,
        source_keys,
        source_values,
        source_mask,
        cache=None,
        index=None,
        allowed=None,
        training=False,
    ):
        normed = self._before(self.self_norm, inputs)
        keys, values = self.self_attention.project_memory(normed)
        if cache is None:
            times = ops.arange(ops.shape(inputs)[1], dtype="int32")
            allowed = (ops.expand_dims(times, 0) <= ops.expand_dims(times, 1))[None]
        else:
            cache = {
                "keys": write_step(cache["keys"], keys, index),
                "values": write_step(cache["values"], values, index),
            }
            keys, values = entries(cache["keys"]), entries(cache["values"])
            if allowed is None:
                times = ops.arange(ops.shape(keys)[2], dtype="int32")
                allowed = (times <= index)[None, None]
        attended = self.self_attention(
            normed, keys=keys, values=values, allowed=allowed[:, None], training=training
        )
        states = self._add(self.self_norm, inputs, attended, training)
        attended = self.source_attention(
            self._before(self.source_norm, states),
            keys=source_keys,
            values=source_values,
            allowed=source_mask[:, None, None, :],
            training=training,
        )
        states = self._add(self.source_norm, states, attended, training)
        return self._feed_forward(states, training), cache
