"""The input and the output of a search."""

import typing

from keras import ops

from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO


class StepOutput(typing.NamedTuple):
    """The result of a step function for `rows` running hypotheses.

    Attributes:
        log_probs: float32 `[rows, extended_size]`, over extended ids.
        copy_log_probs: float32 `[rows, source_length]`, log-probability of copying each source
            position.
        attention: float32 `[rows, source_length]`, weights for the coverage penalty and for
            pictures.
        carry: dict or nest of tensors with leading axis `rows`, handed to the next step.
    """

    log_probs: typing.Any
    copy_log_probs: typing.Any
    attention: typing.Any
    carry: typing.Any


class Hypotheses(typing.NamedTuple):
    """Finished output sequences, best first. K is 1 for greedy search.

    Attributes:
        tokens: int32 `[batch, K, max_length]`, extended ids, 0 after the end; the end id itself is
            not included.
        lengths: int32 `[batch, K]`, tokens before the end.
        scores: float32 `[batch, K]`, length-normalised log-probability less the coverage penalty.
        log_probs: float32 `[batch, K]`, sum of the tokens' log-probabilities, the end's included.
        copied_from: int32 `[batch, K, max_length]`, source position, -1 for generated tokens.
        copy_probability: float32 `[batch, K, max_length]`, probability that the token was copied.
        attention: float32 `[batch, K, max_length, source_length]`, or None unless it was asked for.
    """

    tokens: typing.Any
    lengths: typing.Any
    scores: typing.Any
    log_probs: typing.Any
    copied_from: typing.Any
    copy_probability: typing.Any
    attention: typing.Any = None


def best_of(found, samples):
    """The best outputs of several ways to read a source, of equal outputs one.

    Args:
        found: `Hypotheses` of `batch * samples` rows, a source's ways side by side.
        samples: how many.

    Returns:
        `Hypotheses` of `batch` rows, best first, as many outputs as each row had. An output that
        several ways found is listed once, unless there are too few.
    """
    kept = ops.shape(found.tokens)[1]
    merged = [
        None if x is None else ops.reshape(x, (-1, samples * kept, *ops.shape(x)[2:]))
        for x in found
    ]
    merged = Hypotheses(*merged)
    same = ops.all(
        ops.equal(ops.expand_dims(merged.tokens, 1), ops.expand_dims(merged.tokens, 2)), axis=-1
    )
    places = ops.arange(samples * kept, dtype="int32")
    earlier = ops.expand_dims(places, 0) < ops.expand_dims(places, 1)
    scores = merged.scores
    other, own = ops.expand_dims(scores, 1), ops.expand_dims(scores, 2)
    ahead = ops.logical_or(
        other > own, ops.logical_and(ops.equal(other, own), ops.expand_dims(earlier, 0))
    )
    again = ops.any(ops.logical_and(same, ahead), axis=-1)
    _, chosen = ops.top_k(ops.where(again, scores + LOG_ZERO, scores), kept)

    def take(tensor):
        if tensor is None:
            return None
        return take_along(tensor, chosen)

    return Hypotheses(*map(take, merged))


def provenance(tokens, token_log_probs, copy_log_probs, extended_ids):
    """Tells for each chosen token whether it was copied, and from where.

        p(copied | w) = sum over j with x_j = w of p(copy j) / p(w)
        source        = the likeliest such j, if p(copied | w) > 1/2, else -1

    Args:
        tokens: int `[rows]`, chosen extended ids.
        token_log_probs: float `[rows]`, log p(w).
        copy_log_probs: float `[rows, source_length]`, log p(copy j).
        extended_ids: int `[rows, source_length]`.

    Returns:
        int32 `[rows]` source positions and float32 `[rows]` copy probabilities.
    """
    matches = ops.equal(extended_ids, ops.expand_dims(ops.cast(tokens, extended_ids.dtype), -1))
    weights = ops.where(matches, copy_log_probs, LOG_ZERO)
    mass = ops.logsumexp(weights, axis=-1)
    probability = ops.where(
        ops.any(matches, axis=-1), ops.exp(ops.minimum(mass - token_log_probs, 0.0)), 0.0
    )
    position = ops.cast(ops.argmax(weights, axis=-1), "int32")
    return ops.where(probability > 0.5, position, -1), probability


def length_penalty(length, alpha):
    """Google's length penalty, ((5 + length) / 6) ** alpha (Wu et al. 2016, eq. 14).

    Args:
        length: int tensor, tokens of the hypothesis, the end included.
        alpha: float; 0 turns the penalty off.
    """
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** alpha


def coverage_penalty(coverage, mask, beta):
    """beta * sum over real source positions of log(min(coverage, 1)) (Wu et al. 2016, eq. 14);
    at most 0.

    Args:
        coverage: float `[rows, source_length]`, attention summed over the output.
        mask: bool `[rows, source_length]`.
        beta: float; 0 turns the penalty off.
    """
    logs = ops.log(ops.clip(coverage, 1e-6, 1.0))
    return beta * ops.sum(ops.where(mask, logs, 0.0), axis=-1)
