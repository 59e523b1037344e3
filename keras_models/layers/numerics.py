"""Log-space arithmetic that the heads share."""

import math

import keras
from keras import ops

from keras_models.layers.axes import merge_axes
from keras_models.layers.caches import map_rows
from keras_models.layers.gathering import add_along, put_along, take_along

# Stands for log(0): exp() of it is exactly 0 in every float type used here, and unlike -inf it
# gives no NaN when it is subtracted from itself or multiplied by a zero gradient.
LOG_ZERO = -1e9

# Just above the smallest normal float32. Below it numbers may be flushed to 0, of which log and its
# gradient are infinite.
SMALLEST_PROBABILITY = 1.2e-38
# A probability below the smallest counts as that one, so that a mean of logarithms exists.
LOG_FLOOR = math.log(SMALLEST_PROBABILITY)


def safe_log(probabilities):
    """Returns float32 log(probabilities), `LOG_ZERO` with a gradient of zero where they are 0."""
    probabilities = ops.cast(probabilities, "float32")
    logs = ops.log(ops.maximum(probabilities, SMALLEST_PROBABILITY))
    return ops.where(probabilities >= SMALLEST_PROBABILITY, logs, LOG_ZERO)


def log_add(first, second):
    """Returns log(exp(first) + exp(second)), elementwise.

    Not `ops.logaddexp`, whose gradient is wrong where both terms are equal (two saturated gates).
    Nor a sum over two stacked terms, which takes ten times as long with XLA on a CPU.
    """
    first_is_larger = first > second
    larger, smaller = (
        ops.where(first_is_larger, first, second),
        ops.where(first_is_larger, second, first),
    )
    return larger + ops.log1p(ops.exp(smaller - larger))


def masked_log_softmax(scores, mask):
    """Log-softmax over the last axis with exactly zero probability where `mask` is false.

    Args:
        scores: float tensor `[..., source_length]`.
        mask: bool tensor that broadcasts to `scores`, or None.

    Returns:
        float32 tensor like `scores`; `LOG_ZERO` at masked positions, everywhere if all are masked.
    """
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.log_softmax(scores, axis=-1)
    log_probs = ops.log_softmax(ops.where(mask, scores, LOG_ZERO), axis=-1)
    return ops.where(mask, log_probs, LOG_ZERO)


def log_shares(logits, log_total=0.0):
    """Divides a total by a softmax: log_total + log softmax(logits) over the last axis.

    The same as `ops.log_softmax` plus a number for each row, in fewer and faster passes over the
    logits when XLA compiles for a CPU.

    Args:
        logits: float32 `[..., number]`.
        log_total: float32 `[..., 1]`, or a number.

    Returns:
        float32 like `logits`.
    """
    # Its gradient is 0: the number subtracted from each logit is added to the logarithm of their
    # sum.
    largest = ops.stop_gradient(_largest(logits))
    log_sum = ops.log(ops.sum(ops.exp(logits - largest), axis=-1, keepdims=True))
    # As a `sum` of the two, because XLA computes that before the pass over the logits. A plain
    # addition would be moved into that pass, including the gates, and computed for each logit.
    terms = ops.where(ops.arange(2, dtype="int32") == 0, log_total, -log_sum)
    return logits - largest + ops.sum(terms, axis=-1, keepdims=True)


def _largest(values):
    """The largest of each row, `[..., 1]`:
    quarters are compared with each other first, with vector instructions.
    """
    *leading, number = ops.shape(values)
    while isinstance(number, int) and number > 128 and number % 4 == 0:
        number //= 4
        values = ops.max(ops.reshape(values, (*leading, 4, number)), axis=-2)
    return ops.max(values, axis=-1, keepdims=True)


def log_distribution(probabilities):
    """Returns float32 log(probabilities / their sum) over the last axis; of 0, `LOG_ZERO`.

    Probabilities in bfloat16 add up to 1 only roughly; in float32 their shares do so exactly.
    """
    logs = safe_log(probabilities)
    return masked_log_softmax(logs, logs > LOG_ZERO)


def attention_log_weights(attention, mask=None):
    """Returns the log-weights that heads read, whose exponents sum to 1 and are 0 at padding.

    Args:
        attention: `[batch, target_length, source_length]`, attention probabilities.
        mask: bool `[batch, source_length]`, false at padding; None believes the attention.

    Returns:
        float32 like `attention`.
    """
    if mask is not None:
        real = ops.expand_dims(ops.cast(mask, "bool"), 1)
        attention = ops.where(real, ops.cast(attention, "float32"), 0.0)
    return log_distribution(attention)


def is_empty(attention_log_weights):
    """Whether there is no source to attend to: bool, one axis less than the weights."""
    return ops.max(attention_log_weights, axis=-1) <= LOG_ZERO


def rowwise(function, inputs):
    """Applies a function of matrices `[rows, size]` to the last axis of `inputs [..., size]`.

    This is one matrix product. A product of three axes by two would be a batched one, whose
    gradient builds that of the matrix once per row of the batch.

    Args:
        function: `[rows, size]` to `[rows, units]`, such as a Dense layer.
        inputs: `[..., size]`.

    Returns:
        `[..., units]`.
    """
    if len(inputs.shape) == 2:
        return function(inputs)
    outputs = function(merge_axes(inputs, len(inputs.shape) - 1))
    return ops.reshape(outputs, (*ops.shape(inputs)[:-1], outputs.shape[-1]))


def weighted_sums(inputs, weights):
    """Returns v . x for each x on the last axis, such as the scores of additive attention.

    Args:
        inputs: `[..., size]`.
        weights: v, `[size, 1]`.

    Returns:
        `[...]`.
    """
    # With an additional column of zeros: for a single column XLA on a CPU computes the product as a
    # sum, number by number, and the tanh before it too, which takes ten times as long.
    weights = ops.pad(ops.cast(weights, inputs.dtype), [[0, 0], [0, 1]])
    return rowwise(lambda rows: ops.matmul(rows, weights), inputs)[..., 0]


def project_parts(layer, parts):
    """A Dense layer's outputs for an input in parts, W [x_1; x_2; ...] + b.

    The parts are not concatenated.

    For layers of few units, such as gates: their products are so small that concatenating would
    take longer, and XLA would do it once per number.

    Args:
        layer: a built `keras.layers.Dense` without activation.
        parts: list of tensors `[..., size_i]`, whose sizes add up to the layer's inputs.

    Returns:
        `[..., units]`.
    """
    kernel, outputs, start = (
        ops.cast(layer.kernel, layer.compute_dtype),
        ops.cast(layer.bias, layer.compute_dtype),
        0,
    )
    for part in parts:
        rows = kernel[start : start + part.shape[-1]]
        outputs = outputs + rowwise(
            lambda x, rows=rows: ops.matmul(x, rows), ops.cast(part, layer.compute_dtype)
        )
        start += part.shape[-1]
    return outputs


def log_normaliser(logits, hidden, columns, bias):
    """Logarithm of the sum that a softmax over words divides by, and its gradient.

        log sum_w exp(l_w),   l_w = W_w . h + b_w

    Its gradient is that of sum_w p_w l_w with p = softmax(l) fixed. So one softmax gives both, the
    value by log sum_w exp(l_w) = l_m - log p_m for the largest l_m, and no gradient of the logits'
    size is built. The backend's cross-entropy takes a third longer on a CPU.

    Args:
        logits: float32 `[..., V]`, l; their own gradient is not used.
        hidden: `[..., size]`, h.
        columns: `[V, size]`, W.
        bias: `[V]`, b.

    Returns:
        float32 `[...]`.
    """
    logits = ops.stop_gradient(logits)
    shares = ops.stop_gradient(ops.softmax(logits, axis=-1))
    # The largest share is 1 / V at least.
    value = ops.max(logits, axis=-1) - ops.log(ops.max(shares, axis=-1))
    mean = rowwise(lambda rows: ops.matmul(ops.cast(rows, columns.dtype), columns), shares)
    mean_bias = rowwise(lambda rows: ops.matmul(rows, ops.expand_dims(bias, -1)), shares)[..., 0]
    mean_logit = ops.sum(ops.cast(hidden * mean, "float32"), axis=-1) + mean_bias
    return value + (mean_logit - ops.stop_gradient(mean_logit))


def copy_mass(log_weights, extended_ids, size):
    """Adds up, for each extended id, the weights of the source positions that hold it.

    mass(w) = sum over j with extended_ids[j] = w of exp(log_weights[j])

    Args:
        log_weights: float tensor `[batch, source_length]`, `LOG_ZERO` at padding.
        extended_ids: int tensor `[batch, source_length]`, values in `0..size-1`.
        size: number of extended ids, an int or a scalar tensor.

    Returns:
        float32 tensor `[batch, size]` of log-masses, `LOG_ZERO` where there is none.
    """
    weights = ops.exp(ops.cast(log_weights, "float32"))
    return safe_log(add_along(weights, extended_ids, size))


def add_at(log_probs, log_weights, ids):
    """Adds weights to the probabilities of some words.

        p(w) = exp(log_probs(w)) + sum over j with ids[j] = w of exp(log_weights[j])

    The same as a sum of `copy_mass`, without logarithms of all words.

    Args:
        log_probs: float32 `[batch, V]`.
        log_weights: float32 `[batch, number]`, `LOG_ZERO` at padding.
        ids: int `[batch, number]`, in `0..V - 1`.

    Returns:
        float32 `[batch, V]`.
    """
    size = ops.shape(log_probs)[1]
    ids = ops.cast(ids, "int32")
    # As shares of a row's largest weight, which do not underflow even if it is tiny.
    largest = ops.max(log_weights, axis=-1, keepdims=True)
    shares = take_along(add_along(ops.exp(log_weights - largest), ids, size), ids)
    together = log_add(take_along(log_probs, ids), safe_log(shares) + largest)
    # Where an id stands several times, each writes the same.
    return put_along(log_probs, ids, together)


def first_places(ids):
    """The first position of each id in its row: int32 like `ids [batch, length]`."""
    same = ops.equal(ops.expand_dims(ids, -1), ops.expand_dims(ids, -2))
    return ops.cast(ops.argmax(same, axis=-1), "int32")


def add_copies(log_probs, log_weights, extended_ids, places=None):
    """Adds copies to generated words, only at the words of the source.

        p(w) = exp(log_probs(w)) + sum over j with extended_ids[j] = w of exp(log_weights[j])

    The same as a sum of `copy_mass`, without passes over all words: these would cost a decoding
    step more than its attention.

    Args:
        log_probs: float32 `[batch, V]`, of the vocabulary's words.
        log_weights: float32 `[batch, source_length]`, `LOG_ZERO` at padding.
        extended_ids: int `[batch, source_length]`, values in `0..V + source_length - 1`.
        places: `first_places(extended_ids)`, if already known.

    Returns:
        float32 `[batch, V + source_length]`, `LOG_ZERO` where there is nothing.
    """
    source_length = ops.shape(log_weights)[1]
    size = ops.shape(log_probs)[-1] + source_length
    extended_ids = ops.cast(extended_ids, "int32")
    places = first_places(extended_ids) if places is None else places
    # As shares of a row's largest weight, which do not underflow even if it is tiny.
    largest = ops.max(log_weights, axis=-1, keepdims=True)
    shares = add_along(ops.exp(log_weights - largest), places, source_length)
    copied = safe_log(shares) + largest
    # One additional place, for the later positions of a word: its first one has all of its weights.
    extended = ops.pad(log_probs, [[0, 0], [0, source_length + 1]], constant_values=LOG_ZERO)
    together = log_add(take_along(extended, extended_ids), copied)
    is_first = ops.equal(places, ops.expand_dims(ops.arange(source_length, dtype="int32"), 0))
    index = ops.where(is_first, extended_ids, size)
    return put_along(extended, index, ops.where(is_first, together, LOG_ZERO))[:, :size]


def scale_gradient(inputs, share):
    """Returns the inputs, with `share` (a number or a scalar tensor) of their gradient."""
    fixed = ops.stop_gradient(inputs)
    return fixed + ops.cast(share, fixed.dtype) * (inputs - fixed)


def repeat_rows(tree, times):
    """Repeats each row of every tensor of a nest, side by side.

    `[batch, ...]` becomes `[batch * times, ...]`; what is `Shared` stays as it is.
    """
    if not isinstance(times, int):
        return map_rows(lambda x: ops.repeat(x, times, axis=0), tree)
    if times == 1:
        return tree
    # TensorFlow's repetition is three times as many operations in its graph.
    return map_rows(lambda x: merge_axes(ops.stack([x] * times, axis=1), 2), tree)


def take_rows(tree, rows):
    """Picks some rows of every tensor of a nest: `[batch, ...]` to `[n, ...]`, by int32 `[n]`."""
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), tree)
