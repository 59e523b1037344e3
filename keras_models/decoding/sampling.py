"""Sampling with temperature, top-k and nucleus, with random numbers from a seed."""

from keras import ops

from keras_models.decoding.greedy import follow_path
from keras_models.decoding.hypotheses import Hypotheses
from keras_models.decoding.rules import Rules
from keras_models.decoding.search_arguments import checked_source
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO, SMALLEST_PROBABILITY, repeat_rows
from keras_models.uniforms import draw_uniforms as draw_uniforms


def reshape_distribution(log_probs, temperature=1.0, top_k=0, top_p=1.0):
    """The distribution that is drawn from.

    Args:
        log_probs: float32 `[rows, actions]`.
        temperature: log-probabilities are divided by it; below 1 sharpens.
        top_k: only the k likeliest actions; 0 for all.
        top_p: only the likeliest actions whose mass together first reaches p (Holtzman et al. 2020,
            "nucleus"); 1 for all.

    Returns:
        float32 `[rows, n]` probabilities and int32 `[rows, n]`, the actions that have them: the
        likeliest first if some are left out, of equal ones that with the smaller number.

    Raises:
        ValueError: a temperature not above 0, a negative `top_k`, or `top_p` outside (0, 1].

    References:
        Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration",
        https://arxiv.org/abs/1904.09751
    """
    if not temperature > 0:
        raise ValueError(
            f"temperature must be above 0; got {temperature}. Greedy search takes the likeliest."
        )
    if top_k < 0:
        raise ValueError(f"top_k must be at least 0; got {top_k}.")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1; got {top_p}.")
    number = ops.shape(log_probs)[-1]
    if top_k or top_p < 1:
        # By rank, not by comparing with the last value that is kept: compiled code may compute a
        # value twice and round it differently, and so leave out the very action that it was taken
        # from.
        if top_k:
            number = min(top_k, number) if isinstance(number, int) else ops.minimum(top_k, number)
        log_probs, actions = ops.top_k(log_probs, number)
        actions = ops.cast(actions, "int32")
    else:
        actions = ops.broadcast_to(
            ops.expand_dims(ops.arange(number, dtype="int32"), 0), ops.shape(log_probs)
        )
    # Banned actions stay below all others at any temperature: differences to the likeliest action
    # are divided, and none of them falls as low as a banned one.
    possible = log_probs > LOG_ZERO / 2
    differences = log_probs - ops.max(log_probs, axis=-1, keepdims=True)
    scaled = ops.maximum(differences / max(temperature, SMALLEST_PROBABILITY), LOG_ZERO / 2)
    log_probs = ops.where(possible, scaled, LOG_ZERO)
    probabilities = ops.exp(ops.log_softmax(log_probs, axis=-1))
    if top_p < 1:
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        kept = ops.logical_or(before < top_p, ops.expand_dims(ops.equal(ops.arange(number), 0), 0))
        probabilities = ops.where(kept, probabilities, 0.0)
        probabilities = probabilities / ops.sum(probabilities, axis=-1, keepdims=True)
    return probabilities, actions


def draw_actions(log_probs, numbers, temperature=1.0, top_k=0, top_p=1.0):
    """Draws one action per row.

    Args:
        log_probs: float32 `[rows, actions]`.
        numbers: float32 `[rows]` in [0, 1): an action is drawn where the cumulated mass exceeds the
            number.
        temperature, top_k, top_p: see `reshape_distribution`.

    Returns:
        int32 `[rows]`.
    """
    probabilities, actions = reshape_distribution(log_probs, temperature, top_k, top_p)
    cumulated = ops.cumsum(probabilities, axis=-1)
    number = numbers * cumulated[:, -1]
    # The first action at which the cumulated mass exceeds the number. Rounding makes sums that XLA
    # builds as a tree rise and fall: neither must that draw an action without mass, nor leave none
    # to draw.
    possible = probabilities > 0
    reached = ops.logical_and(possible, cumulated > ops.expand_dims(number, -1))
    reached = ops.where(ops.any(reached, axis=-1, keepdims=True), reached, possible)
    place = ops.argmax(ops.cast(reached, "int32"), axis=-1)
    return take_along(actions, ops.expand_dims(place, -1))[:, 0]


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
        step, carry, extended_ids, source_mask, extended_size, max_length, length_alpha,
        coverage_beta, return_attention,
            **rules: see `beam_search`; the carry is repeated for the samples here.
        uniforms: float32 `[batch, K, max_length + 1]`, what `draw_uniforms` gave; K samples of each
            source.
        temperature, top_k, top_p: see `reshape_distribution`.

    Returns:
        `Hypotheses` in the order of drawing. `log_probs` and `scores` are the model's, whatever was
        drawn from.
    """
    extended_ids = checked_source(
        "sample_search", extended_ids, source_mask, extended_size, rules.get("protection"), uniforms
    )
    batch, n_samples, _ = ops.shape(uniforms)
    rules = Rules(extended_ids, source_mask, extended_size, max_length, **rules).repeat(n_samples)
    rows = batch * n_samples
    numbers = ops.reshape(uniforms, (rows, ops.shape(uniforms)[2]))

    def choose(log_probs, index):
        return draw_actions(log_probs, ops.take(numbers, index, axis=1), temperature, top_k, top_p)

    found = follow_path(
        step,
        repeat_rows(carry, n_samples),
        rules,
        choose,
        length_alpha,
        coverage_beta,
        return_attention,
    )

    def unfold(value):
        return (
            None if value is None else ops.reshape(value, (batch, n_samples, *ops.shape(value)[2:]))
        )

    return Hypotheses(*(unfold(value) for value in found))
