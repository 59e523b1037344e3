"""Losses over log-probabilities that a head returned."""

import keras
from keras import ops


def token_mean(values, mask):
    """Mean of `values` where `mask` is true; 0 when it never is."""
    mask = ops.cast(mask, values.dtype)
    return ops.sum(values * mask) / ops.maximum(ops.sum(mask), 1.0)


@keras.saving.register_keras_serializable("verbatim")
def negative_log_likelihood(targets, target_log_prob):
    """Mean negative log-likelihood of a token, in nats.

        loss = - sum_t mask_t log p(y_t) / sum_t mask_t,   mask_t = (y_t != [PAD])

    Args:
        targets: int `[batch, target_length]`, extended ids, 0 at padding.
        target_log_prob: float `[batch, target_length]`, what a head's `target_log_prob` returned.

    Returns:
        A scalar.
    """
    return -token_mean(target_log_prob, ops.not_equal(targets, 0))


def coverage_loss(attention, coverage, target_mask):
    """Penalty for attending again where attention has been (See et al. 2017, eq. 12).

        loss = mean over t of sum_j min(a_tj, c_tj),   c_t = sum_{t' < t} a_t'

    Args:
        attention: `[batch, target_length, source_length]`, attention probabilities.
        coverage: like `attention`: coverage before each step.
        target_mask: bool `[batch, target_length]`.

    Returns:
        A scalar.
    """
    return token_mean(ops.sum(ops.minimum(attention, coverage), axis=-1), target_mask)
