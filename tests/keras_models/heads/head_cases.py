"""Every copy mechanism with random arguments, its oracle and its gate."""

import inspect
import typing

import numpy as np
from keras import ops

from keras_models.layers import (
    JointCopy,
    LexiconBias,
    LexiconCopy,
    LexiconLinear,
    PointerGenerator,
    PointerNetwork,
    PointerSoftmax,
    SoftmaxHead,
    SpanCopy,
)
from keras_models.layers.numerics import LOG_ZERO
from tests.keras_models.backends import randomize
from tests.keras_models.heads.case_oracles import (
    joint_copy_oracle,
    lexicon_bias_oracle,
    lexicon_copy_oracle,
    lexicon_linear_oracle,
    pointer_generator_oracle,
    pointer_network_oracle,
    pointer_softmax_oracle,
    softmax_oracle,
    span_copy_oracle,
)
from tests.keras_models.heads.sizes import CONTEXT, EMBEDDING, END, HIDDEN, STATE, V

SHAPES = dict(
    hidden_shape=(None, None, HIDDEN),
    context_shape=(None, None, CONTEXT),
    inputs_shape=(None, None, EMBEDDING),
    decoder_state_shape=(None, None, STATE),
    memory_states_shape=(None, None, CONTEXT),
)
STATE_NAMES = ("hidden", "context", "inputs", "decoder_state")


def example(rng, batch=2, steps=3, source_length=4):
    """Random arguments of every head's `call`, with masks and repeated tokens, in NumPy."""
    mask = rng.random((batch, source_length)) < 0.75
    mask[:, 0] = True
    # Few different words, so that they repeat; copy ids name the first position of their surface
    # form.
    words = rng.integers(0, 4, size=(batch, source_length))
    ids = np.zeros((batch, source_length), "int32")
    for b in range(batch):
        for j in range(source_length):
            first = next(
                i
                for i in range(source_length)
                if words[b, i] == words[b, j] and mask[b, i] >= mask[b, j]
            )
            ids[b, j] = 0 if not mask[b, j] else 4 + words[b, j] if words[b, j] < 2 else V + first
    return random_states(rng, ids, mask, steps)


def random_states(rng, ids, mask, steps):
    """The same for given sources: int `[batch, source_length]` extended ids and their mask."""
    batch, source_length = ids.shape
    attention = np.zeros((batch, steps, source_length))
    for b in range(batch):
        if mask[b].any():
            attention[b][:, mask[b]] = rng.dirichlet(np.ones(mask[b].sum()), size=steps)
    arrays = {
        "hidden": rng.normal(size=(batch, steps, HIDDEN)),
        "context": rng.normal(size=(batch, steps, CONTEXT)),
        "inputs": rng.normal(size=(batch, steps, EMBEDDING)),
        "decoder_state": rng.normal(size=(batch, steps, STATE)),
        "memory_states": rng.normal(size=(batch, source_length, CONTEXT)),
        "attention": attention,
    }
    arrays = {key: value.astype("float32") for key, value in arrays.items()}
    # Translations of each token: two, of which one may be [UNK]; one that the lexicon does not know
    # is [UNK] alone.
    lexicon_ids = rng.integers(1, V, size=(batch, source_length, 2)).astype("int32")
    probabilities = rng.dirichlet(np.ones(2), size=(batch, source_length)).astype("float32")
    unknown = rng.random((batch, source_length)) < 0.25
    lexicon_ids[unknown], probabilities[unknown] = (1, 0), (1, 0)
    lexicon = {"lexicon_ids": lexicon_ids, "lexicon_probabilities": probabilities}
    return {**arrays, **lexicon, "source_extended_ids": ids, "mask": mask}


# Targets: (rng, head, arrays) to arguments of the call, and the index of each target in the step's
# distribution.


def merged_targets(rng, head, arrays):
    """Ids of the vocabulary and of the source."""
    batch, steps = arrays["hidden"].shape[:2]
    targets = np.zeros((batch, steps), "int32")
    for b in range(batch):
        ids = arrays["source_extended_ids"][b][arrays["mask"][b]]
        words = [END] if isinstance(head, PointerNetwork) else range(V)
        targets[b] = rng.choice([*words, *(ids if head.copies else ())], size=steps)
    return {"targets": targets}, targets


def location_targets(rng, head, arrays):
    """Ids of the vocabulary and attended source positions, first occurrences or not."""
    batch, steps = arrays["hidden"].shape[:2]
    rows = [
        [*range(V), *(V + np.flatnonzero(arrays["attention"][b].min(axis=0)))] for b in range(batch)
    ]
    targets = np.stack([rng.choice(row, size=steps) for row in rows]).astype("int32")
    return {"targets": targets}, targets


def span_targets(rng, head, arrays):
    """Words, and spans of any length that is possible, a token each step.

    -1 stands for steps inside a span.
    """
    batch, steps = arrays["hidden"].shape[:2]
    source_length = arrays["mask"].shape[1]
    targets, starts, lengths, outcomes = (np.full((batch, steps), -1, "int32") for _ in range(4))
    for b in range(batch):
        t = 0
        while t < steps:
            j, length = rng.integers(source_length), rng.integers(1, head.max_span + 1)
            ends_here = j + length <= source_length and t + length <= steps
            if rng.random() < 0.6 and ends_here and arrays["mask"][b, [j, j + length - 1]].all():
                targets[b, t : t + length] = arrays["source_extended_ids"][b, j : j + length]
                starts[b, t], lengths[b, t] = j, length
                outcomes[b, t] = V + (length - 1) * source_length + j
                t += length
            else:
                targets[b, t] = outcomes[b, t] = rng.integers(V)
                lengths[b, t] = 0
                t += 1
    return {"targets": targets, "span_starts": starts, "span_lengths": lengths}, outcomes


def scale_scores(head, value):
    """No gate, but scores that are all or nothing."""
    for weight in head.trainable_weights:
        weight.assign(weight.value * abs(value))


def set_bias(name, sign=1):
    """Sets a gate's bias: positive values copy."""

    def saturate(head, value):
        layer = getattr(head, name)
        layer.bias.assign(np.full(layer.bias.shape, sign * value))

    return saturate


def set_lexicon_gate(head, value):
    """To copying, or to generating."""
    head.gate.bias.assign(np.array([-value, 0.0, value], "float32"))


def set_gate_logit(head, value):
    head.gate_logit.assign(value)


class Case(typing.NamedTuple):
    """One head.

    saturate: function of the head and a large number that drives it to copying (above 0) or
    generating (below 0) alone.
    """

    head_class: type
    options: dict
    oracle: typing.Callable
    targets: typing.Callable
    saturate: typing.Callable

    def make(self, seed=0, **options):
        head = self.head_class(V, **{**self.options, **options})
        head.build_for(**SHAPES)
        randomize(head, seed)
        return head

    def arguments(self, head, arrays):
        """Those that the head reads."""
        names = inspect.signature(inspect.unwrap(head.call)).parameters
        return {name: value for name, value in arrays.items() if name in names}


CASES = {
    "softmax": Case(SoftmaxHead, {}, softmax_oracle, merged_targets, set_bias("vocabulary")),
    "pointer_generator": Case(
        PointerGenerator, {}, pointer_generator_oracle, merged_targets, set_bias("gate", sign=-1)
    ),
    "pointer_softmax": Case(
        PointerSoftmax,
        {"switch_units": 3},
        pointer_softmax_oracle,
        location_targets,
        set_bias("switch", sign=-1),
    ),
    "pointer_softmax, noisy and sharp": Case(
        PointerSoftmax,
        {"activation": "noisy_tanh", "inverse_temperature": 2.0},
        pointer_softmax_oracle,
        location_targets,
        set_bias("switch", sign=-1),
    ),
    "joint_copy": Case(
        JointCopy, {}, joint_copy_oracle, merged_targets, set_bias("vocabulary", sign=-1)
    ),
    "joint_copy, lecture": Case(
        JointCopy,
        {"tanh": False},
        joint_copy_oracle,
        merged_targets,
        set_bias("vocabulary", sign=-1),
    ),
    "pointer_network": Case(
        PointerNetwork, {"units": 3}, pointer_network_oracle, merged_targets, scale_scores
    ),
    "lexicon_bias": Case(
        LexiconBias, {}, lexicon_bias_oracle, merged_targets, set_bias("vocabulary")
    ),
    "lexicon_linear": Case(
        LexiconLinear, {}, lexicon_linear_oracle, merged_targets, set_gate_logit
    ),
    "lexicon_linear, by state": Case(
        LexiconLinear,
        {"gate": "state"},
        lexicon_linear_oracle,
        merged_targets,
        set_bias("gate_layer"),
    ),
    "lexicon_copy": Case(LexiconCopy, {}, lexicon_copy_oracle, merged_targets, set_lexicon_gate),
    "span_copy, expected": Case(
        SpanCopy, {"max_span": 3, "units": 4}, span_copy_oracle, span_targets, set_bias("switch")
    ),
    "span_copy, start": Case(
        SpanCopy,
        {"max_span": 2, "copying_context": "start"},
        span_copy_oracle,
        span_targets,
        set_bias("switch"),
    ),
}


def step_arguments(head, arrays, t, dtype="float32"):
    """The state and the memory that a body would hand over at step t."""
    state = {
        name: ops.cast(ops.convert_to_tensor(arrays[name][:, t]), dtype) for name in STATE_NAMES
    }
    attention = ops.convert_to_tensor(arrays["attention"][:, t])
    logs = ops.log(ops.maximum(attention, 1e-38))
    state["attention_log_weights"] = ops.where(attention > 0, logs, LOG_ZERO)
    states = ops.cast(ops.convert_to_tensor(arrays["memory_states"]), dtype)
    memory = {
        "states": states,
        "mask": ops.convert_to_tensor(arrays["mask"]),
        "extended_ids": ops.convert_to_tensor(arrays["source_extended_ids"]),
        "lexicon_ids": ops.convert_to_tensor(arrays["lexicon_ids"]),
        "lexicon_probabilities": ops.convert_to_tensor(arrays["lexicon_probabilities"]),
        **head.prepare(states),
    }
    return state, memory
