"""Continues a text with a language model, word by word, greedily or by drawing."""

from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes
from keras_models.decoding.hypotheses import provenance
from keras_models.decoding.sampling import draw_actions
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO

_AXES = {
    "inputs": ("batch", "time"),
    "extended_ids": ("batch", "time"),
    "lengths": ("batch",),
    "uniforms": ("batch", "max_length"),
    "forbidden": ("vocabulary_size",),
}
START_ID = 3  # a text begins as if a sentence had just ended


def continue_text(
    model,
    inputs,
    extended_ids,
    lengths,
    max_length,
    forbidden=None,
    uniforms=None,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    start_id=START_ID,
):
    """Reads texts and writes `max_length` words after each.

    Args:
        model: a `LanguageModel`.
        inputs: int `[batch, time]`, the texts' ids below V, padded with 0 at the end.
        extended_ids: int `[batch, time]`, the same, but V + first position for words that have no
            id; the pointer copies these.
        lengths: int `[batch]`, words of each text, at least 1.
        max_length: words to write, an int.
        forbidden: bool `[V]`, words that are not written; or None.
        uniforms: float `[batch, max_length]` in [0, 1), the random numbers to draw with; None takes
            the likeliest word.
        temperature, top_k, top_p: see `reshape_distribution`; only for drawing.
        start_id: the word before a text's first.

    Returns:
        A dict, all `[batch, max_length]`: int32 `tokens`, extended ids; float32 `log_probs`, the
        model's log p of each, whatever it was drawn from; int32 `copied_from`, the position in text
        and continuation of the word it was copied from, -1 if generated; float32
        `copy_probability`.
    """
    arguments = {
        "inputs": inputs,
        "extended_ids": extended_ids,
        "lengths": lengths,
        "uniforms": uniforms,
        "forbidden": forbidden,
    }
    sizes = {"max_length": max_length, "vocabulary_size": model.vocabulary_size}
    sizes = check_axes("continue_text", arguments, _AXES, sizes)
    for name, high in (("inputs", sizes["vocabulary_size"]), ("extended_ids", None)):
        debugging.check_range("continue_text", name, arguments[name], 0, high)
    inputs, extended_ids = ops.cast(inputs, "int32"), ops.cast(extended_ids, "int32")
    lengths = ops.cast(lengths, "int32")
    batch, time = ops.shape(inputs)
    size = model.vocabulary_size + time
    start = ops.full((batch, 1), start_id, dtype="int32")
    _, carry = model(
        ops.concatenate([start, inputs[:, :-1]], axis=1),
        extended_ids=ops.concatenate([start, extended_ids[:, :-1]], axis=1),
        # The distributions of the text itself are not needed; the smallest request is one word of
        # one step.
        targets=start,
        last=1,
        lengths=lengths,
    )
    steps = ops.arange(max_length, dtype="int32")
    token = take_along(extended_ids, ops.expand_dims(lengths - 1, 1))[:, 0]
    found = {
        "tokens": ops.zeros((batch, max_length), dtype="int32"),
        "log_probs": ops.zeros((batch, max_length), dtype="float32"),
        "copied_from": ops.full((batch, max_length), -1, dtype="int32"),
        "copy_probability": ops.zeros((batch, max_length), dtype="float32"),
    }
    if forbidden is not None:
        forbidden = ops.concatenate(
            [ops.cast(forbidden, "bool"), ops.zeros((time,), dtype="bool")], axis=0
        )

    def feed(token):
        position = ops.expand_dims(ops.maximum(token - model.vocabulary_size, 0), 1)
        copied = take_along(inputs, position)[:, 0]
        return ops.where(token < model.vocabulary_size, token, copied)

    def choose(log_probs, index):
        if forbidden is not None:
            log_probs = ops.where(forbidden, LOG_ZERO, log_probs)
        if uniforms is None:
            return ops.cast(ops.argmax(log_probs, axis=-1), "int32")
        return draw_actions(log_probs, ops.take(uniforms, index, axis=1), temperature, top_k, top_p)

    def body(index, token, carry, found):
        log_probs, copy_log_probs, carry = model.step(
            feed(token), carry, extended_ids=token, size=size
        )
        token = choose(log_probs, index)
        chosen = take_along(log_probs, ops.expand_dims(token, 1))[:, 0]
        position, probability = ops.full_like(token, -1), ops.zeros_like(chosen)
        if model.points:
            slot, probability = provenance(token, chosen, copy_log_probs, carry["window"]["words"])
            # The window's last slot holds the word just read, at position lengths - 1 + index.
            position = ops.where(slot >= 0, lengths + index - model.window + slot, -1)
        here = ops.expand_dims(ops.equal(steps, index), 0)
        values = {
            "tokens": token,
            "log_probs": chosen,
            "copied_from": ops.maximum(position, -1),
            "copy_probability": probability,
        }
        found = {
            name: ops.where(
                here, ops.expand_dims(ops.cast(value, found[name].dtype), 1), found[name]
            )
            for name, value in values.items()
        }
        return index + 1, token, carry, found

    zero = ops.convert_to_tensor(0, dtype="int32")
    *_, found = ops.while_loop(
        lambda index, *_: index < max_length, body, (zero, token, carry, found)
    )
    return found
