"""One path through the outputs: the likeliest action at every step, or a drawn one."""

from keras import ops

from keras_models.decoding.hypotheses import Hypotheses, coverage_penalty, length_penalty
from keras_models.decoding.rules import Rules
from keras_models.decoding.search_arguments import checked_output, checked_source
from keras_models.layers.gathering import take_along


def greedy_search(
    step,
    carry,
    extended_ids,
    source_mask,
    extended_size,
    max_length,
    length_alpha=1.0,
    coverage_beta=0.0,
    return_attention=False,
    **rules,
):
    """Takes the likeliest action at every step.

    It is the same as `beam_search` with a beam of one, and cheaper.

    Arguments and result are those of `beam_search`, with K = 1.
    """
    extended_ids = checked_source(
        "greedy_search", extended_ids, source_mask, extended_size, rules.get("protection")
    )
    rules = Rules(extended_ids, source_mask, extended_size, max_length, **rules)

    def choose(log_probs, index):
        return ops.cast(ops.argmax(log_probs, axis=-1), "int32")

    return follow_path(step, carry, rules, choose, length_alpha, coverage_beta, return_attention)


def follow_path(step, carry, rules, choose, length_alpha, coverage_beta, return_attention):
    """Decodes one action at a time.

    Args:
        step: function `(actions [rows], carry, index) -> StepOutput`.
        carry: its first carry, tensors `[rows, ...]`.
        rules: the `Rules` of all rows.
        choose: function `(log_probs [rows, actions], index) -> int32 [rows]`.
        length_alpha, coverage_beta, return_attention: see `beam_search`.

    Returns:
        `Hypotheses` with K = 1. `log_probs` are those of the model under the rules, however an
        action was chosen.
    """
    batch, source_length = ops.shape(rules.extended_ids)
    max_length, end_id = rules.max_length, rules.end_id
    constrain = rules.make_constrain()
    times = ops.arange(max_length, dtype="int32")
    state = {
        "tokens": ops.zeros((batch, max_length), dtype="int32"),
        "copied_from": ops.full((batch, max_length), -1, dtype="int32"),
        "copy_probability": ops.zeros((batch, max_length), dtype="float32"),
        "lengths": ops.zeros((batch,), dtype="int32"),
        "log_probs": ops.zeros((batch,), dtype="float32"),
        "coverage": ops.zeros((batch, source_length), dtype="float32"),
        "last": ops.full((batch,), rules.start_id, dtype="int32"),
        "ended": ops.zeros((batch,), dtype="bool"),
    }
    ledger = rules.first_ledger()
    state.update(ledger)
    if rules.counts_choices:
        state["choices"] = ops.zeros((batch,), dtype="int32")
    if return_attention:
        state["attention"] = ops.zeros((batch, max_length, source_length), dtype="float32")

    def condition(index, state, carry):
        return ops.logical_and(index <= max_length, ops.logical_not(ops.all(state["ended"])))

    def body(index, state, carry):
        output = checked_output("greedy_search", step(state["last"], carry, index), rules)
        owes = {name: state[name] for name in ledger}
        log_probs, owes = constrain(output, state["last"], owes, state["tokens"], index)
        action = choose(log_probs, index)
        index_of_action = ops.expand_dims(action, -1)
        chosen = take_along(log_probs, index_of_action)[:, 0]
        # The origin is that of the model's own distribution, before the rules.
        said = take_along(output.log_probs, index_of_action)[:, 0]
        token, position, probability = rules.output(
            action, said, output.copy_log_probs, output.attention, owes
        )
        running = ops.logical_not(state["ended"])
        writes = ops.logical_and(running, ops.not_equal(action, end_id))
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
            "coverage": state["coverage"]
            + ops.where(ops.expand_dims(writes, -1), output.attention, 0.0),
            "last": ops.where(writes, action, end_id),
            "ended": ops.logical_or(state["ended"], ops.equal(action, end_id)),
        }
        if rules.counts_choices:
            new["choices"] = state["choices"] + ops.where(running, rules.chooses(state["last"]), 0)
        new.update(rules.pay(owes, action, token, position))
        if return_attention:
            new["attention"] = write("attention", output.attention)
        return index + 1, new, output.carry

    _, state, _ = ops.while_loop(
        condition, body, (ops.convert_to_tensor(0, dtype="int32"), state, carry)
    )
    scores = state["log_probs"] / length_penalty(
        state.get("choices", state["lengths"] + 1), length_alpha
    )
    if coverage_beta:
        scores += coverage_penalty(state["coverage"], rules.source_mask, coverage_beta)
    names = ("tokens", "lengths", "log_probs", "copied_from", "copy_probability", "attention")
    return Hypotheses(
        scores=ops.expand_dims(scores, 1),
        **{n: ops.expand_dims(state[n], 1) for n in names if n in state},
    )
