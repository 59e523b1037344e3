"""What each head must say: the oracle of a step, by the head's own weights.

Each function takes (head, arrays, b, t) and returns the distribution of step t of row b and its
copy probabilities.
"""

import numpy as np

from tests.keras_models import head_oracles, oracles, recurrent_oracles
from tests.keras_models import lexicon_oracles as oracles_of_lexicons
from tests.keras_models import span_copy_oracle as spans
from tests.keras_models.backends import numpy
from tests.keras_models.heads.sizes import CONTEXT, EMBEDDING, STATE, V


def dense(layer):
    return (numpy(layer.kernel.value), numpy(layer.bias.value) if layer.use_bias else None)


def softmax_oracle(head, arrays, b, t):
    p = oracles.vocabulary_distribution(arrays["hidden"][b, t], *dense(head.vocabulary))
    nothing = np.zeros(arrays["mask"].shape[1])
    return np.concatenate([p, nothing]), nothing


def pointer_generator_oracle(head, arrays, b, t):
    kernel, bias = dense(head.gate)
    cuts = np.split(kernel[:, 0], [CONTEXT, CONTEXT + STATE])
    p_vocabulary = oracles.vocabulary_distribution(arrays["hidden"][b, t], *dense(head.vocabulary))
    parts = {name: arrays[name][b, t] for name in ("context", "inputs")}
    weights, ids = arrays["attention"][b, t], arrays["source_extended_ids"][b]
    state = arrays["decoder_state"][b, t]
    p = oracles.pointer_generator(
        p_vocabulary, *cuts, bias[0], **parts, state=state, weights=weights, extended_ids=ids
    )
    # What the vocabulary leaves is copied: a vocabulary of probability 0 shows the copies alone.
    nothing = np.zeros_like(p_vocabulary)
    distinct = V + np.arange(len(ids))
    copies = oracles.pointer_generator(
        nothing, *cuts, bias[0], **parts, state=state, weights=weights, extended_ids=distinct
    )
    return p, copies[V:]


def activation_of(layer, name):
    """The oracle's function of a vector for one of the switch's activations."""
    if name != "noisy_tanh":
        return {"tanh": np.tanh, "relu": recurrent_oracles.relu}[name]
    steepness = numpy(layer.steepness.value)
    return lambda vector: recurrent_oracles.noisy_tanh(vector, layer.alpha, layer.scale, steepness)


def pointer_softmax_oracle(head, arrays, b, t):
    switch = head_oracles.pointer_softmax_switch(
        arrays["context"][b, t],
        arrays["decoder_state"][b, t],
        *(part for layer in (head.lower, head.upper, head.switch) for part in dense(layer)),
        [
            activation_of(layer, head.activation)
            for layer in (head.lower_activation, head.upper_activation)
        ],
    )
    p_shortlist = oracles.vocabulary_distribution(arrays["hidden"][b, t], *dense(head.vocabulary))
    return head_oracles.pointer_softmax(
        p_shortlist, arrays["attention"][b, t], switch, head.inverse_temperature
    )[:2]


def joint_copy_oracle(head, arrays, b, t):
    kernel, bias = dense(head.vocabulary)
    scores = head_oracles.copy_scores(
        arrays["memory_states"][b],
        arrays["decoder_state"][b, t],
        numpy(head.copy_kernel.value),
        tanh=head.tanh,
    )
    words = oracles.affine(arrays["hidden"][b, t], kernel, bias)
    return head_oracles.joint_copy(
        words, scores, arrays["mask"][b], arrays["source_extended_ids"][b]
    )


def pointer_network_oracle(head, arrays, b, t):
    weights = (head.memory_kernel, head.query_kernel, head.score_kernel)
    return head_oracles.pointer_network(
        arrays["decoder_state"][b, t],
        arrays["memory_states"][b],
        arrays["mask"][b],
        *(numpy(weight.value) for weight in weights),
        numpy(head.end_state.value)[0],
        arrays["source_extended_ids"][b],
        head.vocabulary_size,
    )


def span_copy_weights(head):
    """The weights by the names that `span_copy_oracle.span_copy` uses."""
    readout = numpy(head.readout.kernel.value)
    W_r, V_r, U_r = np.split(readout, [EMBEDDING, EMBEDDING + STATE])

    def pointer(which):
        return (
            *(
                numpy(getattr(head, f"{which}_{part}").value)
                for part in ("memory", "kernel", "score")
            ),
            None,
        )

    transducer = head.transducer
    return {
        "gate": (*dense(head.switch_hidden), *dense(head.switch)),
        "readout": (W_r, U_r, V_r),
        "output": dense(head.vocabulary),
        "start_query": dense(head.start_query),
        "start_pointer": pointer("start"),
        "transducer_state": dense(head.transducer_state),
        "transducer": {
            name: numpy(getattr(transducer, name).value)
            for name in ("kernel", "recurrent_kernel", "bias")
        },
        "end_pointer": pointer("end"),
    }


def span_copy_step(head, arrays, b, t):
    """`span_copy_oracle.span_copy` of one step."""
    return spans.span_copy(
        arrays["inputs"][b, t],
        arrays["decoder_state"][b, t],
        arrays["context"][b, t],
        arrays["memory_states"][b],
        arrays["mask"][b],
        span_copy_weights(head),
        head.max_span,
        head.copying_context,
    )


def span_copy_oracle(head, arrays, b, t):
    """Over actions: words, then the spans of one token by their start, of two tokens, ..."""
    step = span_copy_step(head, arrays, b, t)
    length = len(step["start"])
    spans = [
        step["span"][j, j + more] if j + more < length else 0.0
        for more in range(head.max_span)
        for j in range(length)
    ]
    return np.concatenate([(1 - step["p_copy"]) * step["vocabulary"], spans]), step["copies"]


def lexicon_of(arrays, b, t):
    weights = arrays["attention"][b, t]
    return weights, oracles_of_lexicons.lexicon_distribution(
        weights, arrays["lexicon_ids"][b], arrays["lexicon_probabilities"][b], V
    )


def without_copies(p, arrays):
    nothing = np.zeros(arrays["mask"].shape[1])
    return np.concatenate([p, nothing]), nothing


def lexicon_bias_oracle(head, arrays, b, t):
    _, p = lexicon_of(arrays, b, t)
    hidden = arrays["hidden"][b, t]
    return without_copies(
        oracles_of_lexicons.bias(hidden, *dense(head.vocabulary), p, head.epsilon), arrays
    )


def lexicon_linear_oracle(head, arrays, b, t):
    _, p = lexicon_of(arrays, b, t)
    if head.gate == "constant":
        x = float(numpy(head.gate_logit.value))
    else:
        parts = np.concatenate([arrays["context"][b, t], arrays["decoder_state"][b, t]])
        x = oracles.affine(parts, *dense(head.gate_layer))[0]
    return without_copies(
        oracles_of_lexicons.linear(arrays["hidden"][b, t], *dense(head.vocabulary), p, x), arrays
    )


def lexicon_copy_oracle(head, arrays, b, t):
    parts = np.concatenate([arrays["context"][b, t], arrays["decoder_state"][b, t]])
    return oracles_of_lexicons.lexicon_copy(
        oracles.vocabulary_distribution(arrays["hidden"][b, t], *dense(head.vocabulary)),
        arrays["attention"][b, t],
        arrays["lexicon_ids"][b],
        arrays["lexicon_probabilities"][b],
        arrays["source_extended_ids"][b],
        oracles.vocabulary_distribution(parts, *dense(head.gate)),
    )
