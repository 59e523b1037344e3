"""Drawn outputs: temperature, top-k and nucleus sampling, with numbers that come from a seed."""

import keras
from keras import ops

from keras_models.decoding.beam import repeat_for_beam
from keras_models.decoding.greedy import follow_path
from keras_models.decoding.hypotheses import Hypotheses
from keras_models.decoding.search import Rules
from keras_models.layers.numerics import LOG_ZERO


def draw_uniforms(seed, batch, n_samples, max_length):
    """Returns the random numbers of a sampling, float32 `[batch, n_samples, max_length + 1]` in [0, 1).

    Drawn before the loop, so that a result depends on the seed and the sizes alone, compiled or not.
    """
    return keras.random.uniform((batch, n_samples, max_length + 1), seed=seed)


def reshape_distribution(log_probs, temperature=1.0, top_k=0, top_p=1.0):
    """The distribution that is drawn from.

    Args:
        log_probs: float32 `[rows, actions]`.
        temperature: log-probabilities are divided by it; below 1 sharpens.
        top_k: only the k likeliest actions; 0 for all.
        top_p: only the likeliest actions whose mass together first reaches p (Holtzman et al. 2020, "nucleus"); 1 for all.

    Returns:
        float32 `[rows, actions]` probabilities. Actions as likely as the last that is kept are kept too.

    Raises:
        ValueError: a temperature not above 0, a negative `top_k`, or `top_p` outside (0, 1].

    References:
        Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", https://arxiv.org/abs/1904.09751
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be above 0; got {temperature}. Greedy search takes the likeliest.")
    if top_k < 0:
        raise ValueError(f"top_k must be at least 0; got {top_k}.")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1; got {top_p}.")
    impossible = log_probs <= LOG_ZERO / 2
    log_probs = ops.where(impossible, LOG_ZERO, log_probs / temperature)
    if top_k:
        number = log_probs.shape[-1]
        top_k = min(top_k, number) if isinstance(number, int) else top_k
        least = ops.top_k(log_probs, top_k)[0][:, -1:]
        log_probs = ops.where(log_probs < least, LOG_ZERO, log_probs)
    probabilities = ops.exp(ops.log_softmax(log_probs, axis=-1))
    if top_p < 1:
        falling = -ops.sort(-probabilities, axis=-1)
        before = ops.cumsum(falling, axis=-1) - falling
        # The likeliest has nothing before it, so at least one is kept.
        least = ops.min(ops.where(before < top_p, falling, 2.0), axis=-1, keepdims=True)
        probabilities = ops.where(probabilities < least, 0.0, probabilities)
        probabilities = probabilities / ops.sum(probabilities, axis=-1, keepdims=True)
    return probabilities


def sample_search(
    step,
    carry,
    extended_ids,
    source_mask,
    extended_size,
    max_length,
    uniforms,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    length_alpha=1.0,
    coverage_beta=0.0,
    return_attention=False,
    **rules,
):
    """Draws outputs.

    Args:
        step, carry, extended_ids, source_mask, extended_size, max_length, length_alpha, coverage_beta, return_attention,
            **rules: see `beam_search`; the carry is repeated for the samples here.
        uniforms: float32 `[batch, K, max_length + 1]`, what `draw_uniforms` gave; K samples of each source.
        temperature, top_k, top_p: see `reshape_distribution`.

    Returns:
        `Hypotheses` in the order of drawing. `log_probs` and `scores` are the model's, whatever was drawn from.
    """
    batch, n_samples, _ = ops.shape(uniforms)
    extended_ids = ops.cast(extended_ids, "int32")
    rules = Rules(extended_ids, source_mask, extended_size, max_length, **rules).repeat(n_samples)
    rows = batch * n_samples
    numbers = ops.reshape(uniforms, (rows, ops.shape(uniforms)[2]))

    def choose(log_probs, index):
        probabilities = reshape_distribution(log_probs, temperature, top_k, top_p)
        cumulated = ops.cumsum(probabilities, axis=-1)
        number = ops.take(numbers, index, axis=1) * cumulated[:, -1]
        # The first action at which the cumulated mass exceeds the number: one without mass never is.
        return ops.cast(ops.argmax(ops.cast(cumulated > ops.expand_dims(number, -1), "int32"), axis=-1), "int32")

    found = follow_path(
        step, repeat_for_beam(carry, n_samples), rules, choose, length_alpha, coverage_beta, return_attention
    )

    def unfold(value):
        return None if value is None else ops.reshape(value, (batch, n_samples, *ops.shape(value)[2:]))

    return Hypotheses(*(unfold(value) for value in found))
