"""Greedy search: the likeliest token at every step."""

from keras import ops

from keras_models.decoding.constraints import END_ID, START_ID, UNKNOWN_ID, constraints
from keras_models.decoding.hypotheses import Hypotheses, coverage_penalty, length_penalty, provenance


def greedy_search(
    step,
    carry,
    extended_ids,
    source_mask,
    extended_size,
    max_length,
    min_length=0,
    length_alpha=1.0,
    coverage_beta=0.0,
    allow_unknown=False,
    protection=None,
    return_attention=False,
    start_id=START_ID,
    end_id=END_ID,
    unknown_id=UNKNOWN_ID,
):
    """Takes the likeliest token at every step; the same as `beam_search` with a beam of one, and cheaper.

    Arguments and result are those of `beam_search`, with K = 1.
    """
    extended_ids = ops.cast(extended_ids, "int32")
    batch, source_length = ops.shape(extended_ids)
    constrain = constraints(extended_size, max_length, min_length, allow_unknown, start_id, end_id, unknown_id)
    times = ops.arange(max_length, dtype="int32")
    state = {
        "tokens": ops.zeros((batch, max_length), dtype="int32"),
        "copied_from": ops.full((batch, max_length), -1, dtype="int32"),
        "copy_probability": ops.zeros((batch, max_length), dtype="float32"),
        "lengths": ops.zeros((batch,), dtype="int32"),
        "log_probs": ops.zeros((batch,), dtype="float32"),
        "coverage": ops.zeros((batch, source_length), dtype="float32"),
        "last": ops.full((batch,), start_id, dtype="int32"),
        "ended": ops.zeros((batch,), dtype="bool"),
    }
    if protection is not None:
        state["owed"] = protection.source
    if return_attention:
        state["attention"] = ops.zeros((batch, max_length, source_length), dtype="float32")

    def condition(index, state, carry):
        return ops.logical_and(index <= max_length, ops.logical_not(ops.all(state["ended"])))

    def body(index, state, carry):
        output = step(state["last"], carry, index)
        log_probs = constrain(output.log_probs, index)
        if protection is not None:
            log_probs = protection.forbid(log_probs, state["owed"], extended_ids, index, max_length, end_id)
        token = ops.cast(ops.argmax(log_probs, axis=-1), "int32")
        chosen = ops.squeeze(ops.take_along_axis(log_probs, ops.expand_dims(token, -1), axis=-1), -1)
        position, probability = provenance(token, chosen, output.copy_log_probs, extended_ids)
        running = ops.logical_not(state["ended"])
        writes = ops.logical_and(running, ops.not_equal(token, end_id))
        here = ops.logical_and(ops.expand_dims(writes, 1), ops.equal(times, index))

        def write(name, value):
            mask = ops.expand_dims(here, -1) if len(state[name].shape) == 3 else here
            return ops.where(mask, ops.expand_dims(value, 1), state[name])

        new = {
            "tokens": write("tokens", token),
            "copied_from": write("copied_from", position),
            "copy_probability": write("copy_probability", probability),
            "lengths": state["lengths"] + ops.cast(writes, "int32"),
            "log_probs": state["log_probs"] + ops.where(running, chosen, 0.0),
            "coverage": state["coverage"] + ops.where(ops.expand_dims(writes, -1), output.attention, 0.0),
            "last": ops.where(writes, token, end_id),
            "ended": ops.logical_or(state["ended"], ops.equal(token, end_id)),
        }
        if protection is not None:
            new["owed"] = protection.pay(state["owed"], token, extended_ids)
        if return_attention:
            new["attention"] = write("attention", output.attention)
        return index + 1, new, output.carry

    _, state, _ = ops.while_loop(condition, body, (ops.convert_to_tensor(0, dtype="int32"), state, carry))
    scores = state["log_probs"] / length_penalty(state["lengths"] + 1, length_alpha)
    if coverage_beta:
        scores += coverage_penalty(state["coverage"], source_mask, coverage_beta)
    names = ("tokens", "lengths", "log_probs", "copied_from", "copy_probability", "attention")
    return Hypotheses(
        scores=ops.expand_dims(scores, 1), **{n: ops.expand_dims(state[n], 1) for n in names if n in state}
    )
