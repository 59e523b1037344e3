"""Losses over log-probabilities that a head returned."""

import keras
from keras import ops

from keras_models.layers.numerics import LOG_FLOOR

#: The unit of a loss's mean.
UNITS = ("token", "sentence")


def token_mean(values, mask, weights=None):
    """Weighted sum of `values` where `mask` is true, over their number; 0 when it never is."""
    mask = ops.cast(mask, values.dtype)
    values = values * mask
    if weights is not None:
        values = values * weights
    return ops.sum(values) / ops.maximum(ops.sum(mask), 1.0)


@keras.saving.register_keras_serializable("verbatim")
class NegativeLogLikelihood(keras.losses.Loss):
    """Negative log-likelihood of targets, in nats, with weights.

        token:     loss = - sum_bt w_bt m_bt log p(y_bt) / sum_bt m_bt
        sentence:  loss = - sum_bt w_bt m_bt log p(y_bt) / number of sentences with a token

    where m_bt = (y_bt != [PAD]), and also the predictions' Keras mask if they have one. As in
    Keras' own losses, a weight scales a term and leaves the divisor alone; with the reduction
    `"mean_with_sample_weight"` the weights m_bt w_bt are the divisor instead.

    Args:
        unit: `"token"` or `"sentence"`, the unit of the mean.
        reduction: `"sum_over_batch_size"` or `"mean"`, `"mean_with_sample_weight"`, `"sum"`, or
            `"none"` or None for the weighted terms: `[batch, target_length]` of tokens, `[batch]`
            of sentences.
        name, dtype: as of every Keras loss.

    Call arguments:
        targets: int `[batch, target_length]`, extended ids, 0 at padding.
        target_log_prob: float `[batch, target_length]`, what a head's `target_log_prob` returned.
        sample_weight: one weight for each sentence, `[batch]` or `[batch, 1]`, or for each token,
            `[batch, target_length]`; None is 1 everywhere. `model.fit(..., sample_weight=...)`
            passes it on.

    Returns:
        A scalar, or the terms.

    Raises:
        ValueError: an unknown unit or reduction, or shapes that do not fit.

    Example:

    >>> import numpy as np
    >>> from keras_models.losses import NegativeLogLikelihood
    >>> targets = np.array([[5, 3, 0], [4, 3, 0]])
    >>> log_prob = np.array([[-1.0, -2.0, -9.0], [-4.0, -5.0, -9.0]])
    >>> float(NegativeLogLikelihood()(targets, log_prob))
    3.0
    >>> float(NegativeLogLikelihood()(targets, log_prob, sample_weight=np.array([1.0, 0.0])))
    0.75
    >>> float(NegativeLogLikelihood("sentence")(targets, log_prob))
    6.0
    """

    def __init__(
        self,
        unit="token",
        reduction="sum_over_batch_size",
        name="negative_log_likelihood",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}.")
        self.unit = unit

    def __call__(self, targets, target_log_prob, sample_weight=None):
        keras_mask = getattr(target_log_prob, "_keras_mask", None)
        targets = ops.convert_to_tensor(targets)
        log_prob = ops.convert_to_tensor(target_log_prob, dtype=self.dtype)
        _check_same(targets, log_prob)
        mask = ops.not_equal(targets, 0)
        if keras_mask is not None:
            mask = ops.logical_and(mask, ops.cast(keras_mask, "bool"))
        weights = None
        if sample_weight is not None:
            weights = _token_weights(ops.convert_to_tensor(sample_weight, self.dtype), log_prob)
        if self.unit == "token" and self.reduction in ("sum_over_batch_size", "mean"):
            return -token_mean(log_prob, mask, weights)
        return self._reduce(-log_prob, ops.cast(mask, log_prob.dtype), weights)

    def call(self, targets, target_log_prob):
        """Returns the terms without weights, as `reduction="none"` does."""
        terms = NegativeLogLikelihood(self.unit, "none", dtype=self.dtype)
        return terms(targets, target_log_prob)

    def _reduce(self, values, mask, weights):
        weights = mask if weights is None else mask * weights
        terms, counts = values * weights, mask
        if self.unit == "sentence":
            lengths = ops.sum(mask, axis=1)
            terms, counts = ops.sum(terms, axis=1), ops.cast(lengths > 0, mask.dtype)
            # A sentence weighs as much as its tokens do on average.
            weights = ops.sum(weights, axis=1) / ops.maximum(lengths, 1.0)
        if self.reduction in (None, "none"):
            return terms
        if self.reduction == "sum":
            return ops.sum(terms)
        divisor = ops.sum(weights if self.reduction == "mean_with_sample_weight" else counts)
        return ops.sum(terms) / ops.where(divisor == 0, 1.0, divisor)

    def get_config(self):
        return {"unit": self.unit, **super().get_config()}


def _check_same(targets, log_prob):
    known = zip(targets.shape, log_prob.shape)
    if (
        len(targets.shape) != 2
        or len(log_prob.shape) != 2
        or any(None not in pair and pair[0] != pair[1] for pair in known)
    ):
        raise ValueError(
            "targets and target_log_prob must both be [batch, target_length]; got shapes "
            f"{tuple(targets.shape)} and {tuple(log_prob.shape)}."
        )


def _token_weights(weights, log_prob):
    """Returns the weights of all tokens, in a shape that broadcasts to theirs."""
    shape, (batch, length) = tuple(weights.shape), log_prob.shape
    if len(shape) == 1:
        weights, shape = ops.expand_dims(weights, 1), (*shape, 1)
    # Sizes that are unknown are taken to fit.
    fits = all(
        None in (size, wanted) or size in (1, wanted)
        for size, wanted in zip(shape, (batch, length))
    )
    if len(shape) not in (0, 2) or not fits:
        raise ValueError(
            "sample_weight must have a weight for each sentence, [batch], or for each token, "
            f"[batch, target_length]; got the shape {tuple(shape)} for {(batch, length)}."
        )
    return weights


#: Mean negative log-likelihood of a token: `NegativeLogLikelihood()`. It honours `sample_weight`.
negative_log_likelihood = NegativeLogLikelihood()
# The name in models that were saved when this was a function.
keras.saving.register_keras_serializable("verbatim", "negative_log_likelihood")(
    negative_log_likelihood
)


def coverage_loss(attention, coverage, target_mask):
    """Penalty for attending again to attended positions (See et al. 2017, eq. 12).

        loss = mean over t of sum_j min(a_tj, c_tj),   c_t = sum_{t' < t} a_t'

    Args:
        attention: `[batch, target_length, source_length]`, attention probabilities.
        coverage: like `attention`: coverage before each step.
        target_mask: bool `[batch, target_length]`.

    Returns:
        A scalar.
    """
    return token_mean(ops.sum(ops.minimum(attention, coverage), axis=-1), target_mask)


def symmetric_divergence(first, second):
    """How far two distributions are apart: the mean of the two Kullback-Leibler divergences.

        1/2 (KL(p || q) + KL(q || p)) = 1/2 sum_k (p_k - q_k) (log p_k - log q_k)

    A probability below 1.2e-38 counts as that, so what one of them rules out costs no infinity.

    Args:
        first, second: float `[..., number]`, log p and log q.

    Returns:
        float `[...]`.
    """
    first, second = (ops.maximum(logs, LOG_FLOOR) for logs in (first, second))
    return 0.5 * ops.sum((ops.exp(first) - ops.exp(second)) * (first - second), axis=-1)
