"""The worth of a segmentation: priors, reward and REINFORCE (Arthur 2018, chapter 5).

A segmentation is a bool tensor `ends [batch, source_length]`, true at the last character of each
segment.
"""

import math

import numpy as np
from keras import ops

from keras_models import hashing

# A drawn segment is cut off at this length: with the longest sensible prior nothing is lost.
_LONGEST_DRAWN = 64


def last_places(mask):
    """Bool `[batch, source_length]`: each row's last real position."""
    following = ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)
    return ops.logical_and(mask, ops.logical_not(following))


def decided_places(mask):
    """Where there is a decision, bool `[batch, source_length]`.

    That is at all real characters but the last, whose end is given.
    """
    return ops.logical_and(mask, ops.logical_not(last_places(mask)))


def closed(ends, mask):
    """Segmentations in which padding ends nothing and the last character ends a segment."""
    return ops.logical_or(ops.logical_and(ends, mask), last_places(mask))


def starts_of(ends):
    """Bool like `ends`: true at the first character of each segment."""
    return ops.concatenate([ops.ones_like(ends[:, :1]), ends[:, :-1]], axis=1)


def hashes(ids, ends, buckets):
    """The bucket of each character's segment up to itself.

    At a segment's end it is that of the segment.

    The segment (x_1, ..., x_n) is in bucket h_n, with h_0 = 0 and h_k = (1009 h_{k-1} + x_k) mod
    buckets.

    Args:
        ids: int `[batch, source_length]`, of characters.
        ends: bool `[batch, source_length]`.
        buckets: how many there are, at most 2,000,000.

    Returns:
        int32 `[batch, source_length]`.
    """
    ids = ops.cast(ids, "int32")
    # One tensor, because `ops.scan` over two needs to know their length on TensorFlow.
    steps = ops.stack([ids, ops.cast(starts_of(ends), "int32")], axis=-1)

    def step(carry, inputs):
        ids, first = inputs[:, 0], inputs[:, 1]
        value = hashing.extend(carry * (1 - first), ids, buckets)
        return value, value

    _, values = ops.scan(step, ops.zeros_like(ids[:, 0]), ops.transpose(steps, (1, 0, 2)))
    return ops.transpose(values, (1, 0))


def poisson_log_prob(count, rate, largest):
    """log Poisson(count; rate) = count log rate - rate - log count! (eq. 5.12).

    Args:
        count: int `[batch]`.
        rate: float32 `[batch]`, above 0.
        largest: int that no count exceeds.

    Returns:
        float32 `[batch]`.
    """
    # log n! = log 1 + ... + log n.
    logs = ops.log(ops.maximum(ops.cast(ops.arange(largest + 1), "float32"), 1.0))
    factorial = ops.take(ops.cumsum(logs), count, axis=0)
    return ops.cast(count, "float32") * ops.log(rate) - rate - factorial


def length_prior(ends, mask, mean_length):
    """Log-probability of the number of segments, Poisson around |F| / lambda (eqs. 5.11, 5.12).

    Args:
        ends: bool `[batch, source_length]`.
        mask: bool `[batch, source_length]`, the real characters.
        mean_length: lambda, the expected number of characters of a segment.

    Returns:
        float32 `[batch]`.
    """
    characters = ops.sum(ops.cast(mask, "float32"), axis=1)
    # An empty source has no segment, and a rate of 0 no logarithm.
    rate = ops.maximum(characters, 1.0) / mean_length
    return poisson_log_prob(ops.sum(ops.cast(ends, "int32"), axis=1), rate, ops.shape(ends)[1])


def drawn_from_prior(uniforms, mask, mean_length):
    """Draws segmentations whose segments' lengths are of Poisson(lambda), at least 1 each.

    It is epsilon greedy's other policy.

    Args:
        uniforms: float32 `[batch, source_length]` in [0, 1), a number for each segment.
        mask: bool `[batch, source_length]`.
        mean_length: lambda.

    Returns:
        bool `[batch, source_length]`.
    """
    lengths = np.arange(_LONGEST_DRAWN)
    log_factorial = np.array([math.lgamma(n + 1) for n in lengths])
    cumulative = np.cumsum(np.exp(lengths * math.log(mean_length) - mean_length - log_factorial))
    drawn = ops.sum(
        ops.cast(
            ops.expand_dims(uniforms, -1) >= ops.convert_to_tensor(cumulative, "float32"), "int32"
        ),
        axis=-1,
    )
    last = ops.cumsum(ops.maximum(drawn, 1), axis=1) - 1
    # Position i is an end if some segment's last character is i; segments beyond the source end
    # nowhere.
    places = ops.arange(ops.shape(mask)[1], dtype="int32")
    ends = ops.any(ops.equal(ops.expand_dims(last, -1), ops.reshape(places, (1, 1, -1))), axis=1)
    return closed(ends, mask)


def decision_log_prob(logits, ends, mask):
    """Log-probability of each decision, log pi(S_i).

    float32 `[batch, source_length]`, 0 where nothing is decided.

    pi(S_i = end) = sigmoid(logit_i) (eq. 5.1, whose softmax over two classes is a sigmoid of their
    difference). At the last character the end is given.
    """
    logits = ops.cast(logits, "float32")
    chosen = ops.where(ends, logits, -logits)
    return ops.where(decided_places(mask), -ops.softplus(-chosen), 0.0)


def decision_entropy(logits, mask):
    """Entropy of each decision in nats, float32 `[batch, source_length]` (eq. 5.15's inner sum); 0
    where nothing is decided.
    """
    logits = ops.cast(logits, "float32")
    return ops.where(decided_places(mask), ops.softplus(logits) - logits * ops.sigmoid(logits), 0.0)


def fertility_loss(attention, ends, target_mask):
    """How far each segment is from contributing to one target word.

    sum_i (1 - sum_j alpha_ij)^2, `[batch]`.

    Equation 5.14 prints this with a minus sign, which would drive the fertilities away from one.

    Args:
        attention: `[batch, target_length, source_length]`, attention probabilities.
        ends: bool `[batch, source_length]`; a segment's weight lies at its last character.
        target_mask: bool `[batch, target_length]`.
    """
    attention = ops.cast(attention, "float32") * ops.cast(
        ops.expand_dims(target_mask, -1), "float32"
    )
    off = ops.square(1.0 - ops.sum(attention, axis=1))
    return ops.sum(ops.where(ends, off, 0.0), axis=1)


def normalized(rewards):
    """Rewards with mean 0 and variance 1 over a batch (eq. 5.16)."""
    centred = rewards - ops.mean(rewards)
    return centred / ops.maximum(ops.sqrt(ops.mean(ops.square(centred))), 1e-6)


def leave_one_out(rewards, samples):
    """For each of a sentence's samples the mean reward of its other samples.

    It is a baseline without bias (Kool et al. 2019).

    Args:
        rewards: float `[batch * samples]`, a sentence's samples side by side.
        samples: how many, at least 2.

    Returns:
        float `[batch * samples]`.
    """
    by_sentence = ops.reshape(rewards, (-1, samples))
    others = ops.sum(by_sentence, axis=1, keepdims=True) - by_sentence
    return ops.reshape(others / (samples - 1), (-1,))
