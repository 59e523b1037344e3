"""Label smoothing of heads: the mean log-probability of all that a head can say."""

from keras import ops

from keras_models.layers.numerics import LOG_FLOOR, first_places, safe_log


def smooth(log_prob, mean, amount):
    """Returns (1 - amount) log p(target) + amount * mean log p, of which the loss is the negative.

    Args:
        log_prob: float32 `[batch, target_length]`, of the targets.
        mean: float32 `[batch, target_length]`, over all outcomes.
        amount: from 0 to 1.
    """
    return (1.0 - amount) * log_prob + amount * mean


def floored(log_probs):
    """Returns log-probabilities with `LOG_FLOOR` as the least."""
    return ops.maximum(log_probs, LOG_FLOOR)


def real_positions(memory):
    """Which source positions hold a token, bool `[batch, source_length]`."""
    mask = memory.get("mask")
    return ops.not_equal(memory["extended_ids"], 0) if mask is None else mask


def merge(log_weights, places):
    """Adds up the weights of the positions that hold the same word.

    Args:
        log_weights: float32 `[batch, target_length, number]`.
        places: int32 `[batch, number]`, what `first_places` gives.

    Returns:
        Like `log_weights`: at the first position of each word the logarithm of its sum, `LOG_ZERO`
        at the others.
    """
    batch, length, number = ops.shape(log_weights)
    # As shares of a step's largest weight, which do not underflow.
    largest = ops.stop_gradient(ops.max(log_weights, axis=-1, keepdims=True))
    steps = ops.reshape(ops.arange(batch * length, dtype="int32"), (batch, length, 1))
    segments = ops.reshape(steps * number + ops.expand_dims(places, 1), (-1,))
    shares = ops.reshape(ops.exp(log_weights - largest), (-1,))
    sums = ops.segment_sum(shares, segments, num_segments=batch * length * number)
    return safe_log(ops.reshape(sums, (batch, length, number))) + largest


def merged_sum(log_weights, ids, real, size=0, words=None):
    """Sums what the words of some positions add to the log-probabilities of all outcomes.

        sum over words w < size of log(1 + exp(mass(w) - words(w)))
        + sum over words w >= size of log mass(w),   mass(w) = sum_{j: ids_j = w} exp(log_weights_j)

    Each word counts once. A known word (below `size`) is generated as well, which its own
    log-probability has; any other has nothing but its mass, `LOG_FLOOR` at least.

    Args:
        log_weights: float32 `[batch, target_length, number]`.
        ids: int `[batch, number]`.
        real: bool `[batch, number]`, false at padding.
        size: V; 0 where no word is generated.
        words: float32 `[batch, target_length, number]`, log-probability that each position's word
            is generated; where `size` is above 0.

    Returns:
        The sum, float32 `[batch, target_length]`, and how many words from `size` there are, float32
        `[batch, 1]`.
    """
    ids = ops.cast(ids, "int32")
    places = first_places(ids)
    number = ops.shape(ids)[1]
    first = ops.logical_and(real, ops.equal(places, ops.arange(number, dtype="int32")))
    mass = merge(log_weights, places)
    beyond = ops.logical_and(first, ids >= size)
    terms = ops.where(ops.expand_dims(beyond, 1), floored(mass), 0.0)
    if words is not None:
        known = ops.logical_and(first, ids < size)
        terms = terms + ops.where(ops.expand_dims(known, 1), ops.softplus(mass - words), 0.0)
    count = ops.sum(ops.cast(beyond, "float32"), axis=-1, keepdims=True)
    return ops.sum(terms, axis=-1), count


def merged_mean(vocabulary, hidden, log_generate, normaliser, log_weights, ids, real):
    """Mean log-probability of the outcomes of a head that adds copies to its vocabulary.

        p(w) = exp(log_generate + l_w - normaliser) + sum_{j: ids_j = w} exp(log_weights_j)

    The outcomes are the V words and each other word of the source, once. What the vocabulary
    generates is at least exp(LOG_FLOOR) in all, and so is the probability of each other word. The
    V words are summed in closed form, by the mean of their logits l; no tensor `[batch,
    target_length, V + source_length]` is built.

    Args:
        vocabulary: the head's `VocabularySoftmax`.
        hidden: `[batch, target_length, hidden_size]`.
        log_generate, normaliser: float32 `[batch, target_length]`.
        log_weights: float32 `[batch, target_length, number]`.
        ids: int `[batch, number]`, extended ids.
        real: bool `[batch, number]`, false at padding.

    Returns:
        float32 `[batch, target_length]`.
    """
    size = vocabulary.units
    generated = floored(log_generate) - normaliser
    words = vocabulary.logits_of(hidden, ops.where(ids < size, ids, 0))
    words = words + ops.expand_dims(generated, -1)
    added, others = merged_sum(log_weights, ids, real, size, words)
    total = size * (generated + vocabulary.mean_logit(hidden)) + added
    return total / (size + others)
