"""Span copy by its equations, in NumPy (SeqCopyNet, Zhou et al. 2018)."""

import math

import numpy as np

from tests.keras_models.head_oracles import masked_softmax, pointer_scores, real_positions
from tests.keras_models.oracles import affine, gru, sigmoid, softmax
from tests.keras_models.recurrent_oracles import maxout


def span_copy(embedding, state, context, memory, mask, weights, max_span, transducer_input="start"):
    """Zhou 2018 (SeqCopyNet), one decoding step, by the paper's equations in their order.

        m = [w; s; c]            w = embedding of y_{t-1}, s = state, c = context
        p_copy = sigmoid(W_2 tanh(W_1 m + b_1) + b_2)
        vocabulary = softmax(W_o maxout(W_r w + U_r c + V_r s) [+ b_o])
        q_start = tanh(W_q m + b_q)
        start = softmax_j(v . tanh(W_h h_j + W_s q_start + b)) over the real positions
        q_end = GRU(x, tanh(W_g m + b_g))
        end = softmax_k(v' . tanh(W_h' h_k + W_s' q_end + b'))
        p(span j..k) = p_copy start_j end_{k | j}

    maxout is over neighbouring pairs.

    x is the transducer's input: "start": h_j of the start j, so that each start has a query of its
    own; "expected": the copying context sum_j start_j h_j, one query for all. For both, ends run
    over the real positions from j to j + max_span - 1, and the softmax is taken over them alone. A
    source without tokens leaves p_copy = 0.

    Args:
        embedding, state, context: vectors.
        weights: dict of
            `gate`: W_1 `[m_size, units]`, b_1, W_2 `[units, 1]`, b_2 `[1]`;
            `readout`: W_r, U_r, V_r, each `[its input's size, 2 size]` (`readout_bias` `[2 size]`,
                if there is one);
            `output`: W_o `[size, V]`, b_o `[V]` or None;
            `start_query`: W_q `[m_size, query_size]`, b_q;
            `start_pointer`: W_h, W_s, v, b or None, as `pointer_scores` takes them;
            `transducer_state`: W_g `[m_size, gru_units]`, b_g;
            `transducer`: dict of `oracles.gru`'s `kernel` `[memory_size, 3 gru_units]`,
                `recurrent_kernel`, `bias`;
            `end_pointer`: as `start_pointer`; the same arrays if the two share them.
        max_span: the most tokens of a span.

    Returns:
        dict of `p_copy`; `vocabulary` `[V]` (not yet times 1 - p_copy); `start` `[source_length]`;
        `end` and `span` `[source_length, source_length]`, a row a start; `copies` p_copy * start
        `[source_length]`, and `distribution` `[V + source_length]` of the next token's id or source
        position, unmerged: entry V + j is copying from j.
    """
    m = np.concatenate([embedding, state, context])
    length = len(memory)
    positions = real_positions(memory, mask)

    W_1, b_1, W_2, b_2 = weights["gate"]
    p_copy = sigmoid(affine(np.tanh(affine(m, W_1, b_1)), W_2, b_2)[0]) if positions else 0.0

    W_r, U_r, V_r = weights["readout"]
    readout = (
        affine(embedding, W_r, weights.get("readout_bias"))
        + affine(context, U_r)
        + affine(state, V_r)
    )
    vocabulary = softmax(affine(maxout(readout, 2), *weights["output"]))

    q_start = np.tanh(affine(m, *weights["start_query"]))
    W_h, W_s, v, b = weights["start_pointer"]
    start = masked_softmax(pointer_scores(q_start, memory, W_h, W_s, v, b), positions, length)

    expected = np.zeros(memory.shape[1])
    for j in positions:
        expected += start[j] * memory[j].astype("float64")
    initial = np.tanh(affine(m, *weights["transducer_state"]))
    W_h, W_s, v, b = weights["end_pointer"]
    end, span = np.zeros((length, length)), np.zeros((length, length))
    for j in positions:
        x = {"start": memory[j].astype("float64"), "expected": expected}[transducer_input]
        q_end = gru(x, initial, **weights["transducer"])
        allowed = [k for k in positions if j <= k <= j + max_span - 1]
        end[j] = masked_softmax(pointer_scores(q_end, memory, W_h, W_s, v, b), allowed, length)
        for k in allowed:
            span[j, k] = p_copy * start[j] * end[j, k]

    copies = p_copy * start
    return {
        "p_copy": p_copy,
        "vocabulary": vocabulary,
        "start": start,
        "end": end,
        "span": span,
        "copies": copies,
        "distribution": np.concatenate([(1.0 - p_copy) * vocabulary, copies]),
    }


def span_copy_loss(steps, segments):
    """Zhou 2018, objective.

    -sum of log (1 - p_copy) p(word) over generated words, -sum of log p(span) over copied spans.

    A span is paid for once, at its first token; the decoder nevertheless runs over every word (Copy
    Run), so there is a step for each target token, those inside of a span unused.

    Args:
        steps: `span_copy`'s results, one for each target token.
        segments: list of `("generate", id)` and `("copy", start, end)`, the end included; see
            `label_oracles.longest_match_spans`.
    """
    loss, t = 0.0, 0
    for segment in segments:
        step = steps[t]
        if segment[0] == "generate":
            loss -= math.log((1.0 - step["p_copy"]) * step["vocabulary"][segment[1]])
            t += 1
        else:
            _, start, end = segment
            p = step["span"][start, end]
            loss -= math.log(p) if p > 0 else -math.inf
            t += end - start + 1
    if t != len(steps):
        raise ValueError(f"the segments hold {t} tokens, the steps {len(steps)}")
    return loss
