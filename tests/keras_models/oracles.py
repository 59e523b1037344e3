"""The papers' equations in NumPy float64 and plain loops: what the layers are compared with.

Nothing here comes from `keras_models`. Arrays have no batch axis: one source, one target step or
one target sequence. Vectors are `[size]`, a source is `[source_length, size]`, extended ids are V +
position for copies.
"""

import itertools
import math

import numpy as np


def sigmoid(x):
    x = float(x)
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def sigmoids(vector):
    return np.array([sigmoid(x) for x in vector])


def softmax(scores):
    top = max(scores)
    powers = [math.exp(float(score) - float(top)) for score in scores]
    return np.array([power / sum(powers) for power in powers])


def affine(vector, kernel, bias=None):
    """vector . kernel + bias, the kernel `[inputs, outputs]`."""
    result = []
    for j in range(kernel.shape[1]):
        total = 0.0 if bias is None else float(bias[j])
        for i in range(len(vector)):
            total += float(vector[i]) * float(kernel[i, j])
        result.append(total)
    return np.array(result)


def layer_norm(vector, gamma, beta, epsilon=1e-5):
    """Ba 2016: gamma (x - mean) / sqrt(variance + epsilon) + beta."""
    mean = sum(float(x) for x in vector) / len(vector)
    variance = sum((float(x) - mean) ** 2 for x in vector) / len(vector)
    return np.array(
        [
            float(g) * (float(x) - mean) / math.sqrt(variance + epsilon) + float(b)
            for x, g, b in zip(vector, gamma, beta)
        ]
    )


# Attention.


def attention(kind, query, memory, mask, weights, coverage=None):
    """Attention's weights and context.

        additive: e_i = v . tanh(W_h h_i + W_s s + w_c c_i + b)  (Bahdanau 2014; See 2017 eq. 1, 11)
        dot:      e_i = s . h_i [+ w_c c_i]                      (Luong 2015)
        bilinear: e_i = s . W h_i [+ w_c c_i]                    (Luong 2015)

    Args:
        weights: dict of arrays: `memory_kernel`, `query_kernel`, `bias`, `score_kernel`,
            `coverage_kernel`, as needed.

    Returns:
        weights `[source_length]`, zero where the mask is false, and context `[memory_size]`.
    """
    positions = [i for i in range(len(memory)) if mask is None or mask[i]]
    scores = {}
    for i in positions:
        if kind == "additive":
            inner = (
                affine(memory[i], weights["memory_kernel"])
                + affine(query, weights["query_kernel"])
                + weights["bias"]
            )
            if coverage is not None:
                inner = inner + weights["coverage_kernel"] * float(coverage[i])
            scores[i] = sum(
                float(weights["score_kernel"][k, 0]) * math.tanh(inner[k])
                for k in range(len(inner))
            )
            continue
        key = memory[i] if kind == "dot" else affine(memory[i], weights["memory_kernel"])
        scores[i] = sum(float(query[k]) * float(key[k]) for k in range(len(query)))
        if coverage is not None:
            scores[i] += float(weights["coverage_kernel"][0]) * float(coverage[i])
    result = np.zeros(len(memory))
    if positions:
        for i, weight in zip(positions, softmax([scores[i] for i in positions])):
            result[i] = weight
    context = np.zeros(memory.shape[1])
    for i in positions:
        context += result[i] * memory[i].astype("float64")
    return result, context


def coverage_loss(attentions, target_mask):
    """See 2017 eq. 10, 12 and 13: c_t = sum of earlier attentions, loss_t = sum_i min(a_ti, c_ti);
    mean over real t.
    """
    coverage = np.zeros(len(attentions[0]))
    total, count = 0.0, 0
    for row, real in zip(attentions, target_mask):
        if real:
            total += sum(min(float(a), float(c)) for a, c in zip(row, coverage))
            count += 1
        coverage = coverage + row
    return total, count


# Heads.


def vocabulary_distribution(hidden, kernel, bias):
    return softmax(affine(hidden, kernel, bias))


def pointer_generator(
    p_vocabulary, w_context, w_state, w_inputs, b, context, state, inputs, weights, extended_ids
):
    """See 2017 eq. 8 and 9.

    p_gen = sigmoid(w_h . context + w_s . state + w_x . inputs + b)
    P(w) = p_gen P_vocab(w) + (1 - p_gen) sum of a_i over the i with w_i = w

    A source of which nothing can be attended to leaves p_gen = 1. `inputs` may be None.

    Returns:
        P over the V + source_length extended ids.
    """
    total = float(b)
    for w, values in ((w_context, context), (w_state, state), (w_inputs, inputs)):
        if values is not None:
            total += sum(float(a) * float(v) for a, v in zip(w, values, strict=True))
    p_gen = sigmoid(total) if sum(weights) > 0 else 1.0
    result = np.zeros(len(p_vocabulary) + len(extended_ids))
    for word, p in enumerate(p_vocabulary):
        result[word] += p_gen * p
    for word, a in zip(extended_ids, weights):
        result[word] += (1.0 - p_gen) * a
    return result


# Recurrent cells, weights as Keras lays them out.


def gru(x, h, kernel, recurrent_kernel, bias):
    """Cho 2014, with the reset gate after the recurrent product.

    Gates z, r, candidate; bias `[2, 3 units]`.

    z = sigmoid(W_z x + b_z + U_z h + d_z),  r likewise,  n = tanh(W_n x + b_n + r * (U_n h + d_n)),
    h' = z h + (1 - z) n
    """
    size = len(h)
    outside, inside = affine(x, kernel, bias[0]), affine(h, recurrent_kernel, bias[1])
    z = sigmoids(outside[:size] + inside[:size])
    r = sigmoids(outside[size : 2 * size] + inside[size : 2 * size])
    n = np.tanh(outside[2 * size :] + r * inside[2 * size :])
    return z * h + (1.0 - z) * n


def lstm(x, h, c, kernel, recurrent_kernel, bias):
    """Hochreiter 1997 with forget gates; order i, f, candidate, o. Returns h', c'."""
    size = len(h)
    gates = affine(x, kernel, bias) + affine(h, recurrent_kernel)
    i, f, o = (sigmoids(gates[k * size : (k + 1) * size]) for k in (0, 1, 3))
    c = f * c + i * np.tanh(gates[2 * size : 3 * size])
    return o * np.tanh(c), c


def recur(cell, x, state, weights):
    """One step of either cell; `state` is `[h]` or `[h, c]`, its first entry the output."""
    if cell == "gru":
        return [gru(x, state[0], **weights)]
    return list(lstm(x, *state, **weights))


# The whole encoder-decoder.


def encode(source_ids, weights, cell):
    """Bidirectional layers over the tokens that are not padding.

    Bridges lead from the last states of both directions.
    """
    length = len(source_ids)
    mask = [int(i) != 0 for i in source_ids]
    states = [weights["source_embedding"][int(i)].astype("float64") for i in source_ids]
    for layer in weights["encoder"]:
        outputs, last = [], []
        for direction, order in (("forward", range(length)), ("backward", reversed(range(length)))):
            size = layer[direction]["recurrent_kernel"].shape[0]
            state = [np.zeros(size)] * (1 if cell == "gru" else 2)
            output = [np.zeros(size)] * length
            for j in order:
                if mask[j]:
                    state = recur(cell, states[j], state, layer[direction])
                    output[j] = state[0]
            outputs.append(output)
            last.append(state)
        states = [np.concatenate([f, b]) for f, b in zip(*outputs)]
    first = [
        np.tanh(affine(np.concatenate([f, b]), kernel, bias))
        for f, b, (kernel, bias) in zip(*last, weights["bridges"], strict=True)
    ]
    return np.array(states).reshape(length, -1), mask, first


def seq2seq(
    inputs, weights, vocabulary_size, cell, kind, head, input_feeding, coverage, selective_read=None
):
    """Teacher-forced decoding of one pair.

    With `kind` "none" there is no attention: the decoder sees the source through its first state
    alone. With `selective_read` its input has one more part, after the fed-back output: zeta of the
    label before, by that step's copies (Gu 2016 eq. 9).

    Args:
        head: "softmax", "pointer_generator", or a function `(hidden, state, memory, mask) ->
            (distribution, copies)`.
        selective_read: `head_oracles.selective_read`, or None.
        inputs: dict of `[length]` arrays: `source_ids`, `source_extended_ids`, `target_input_ids`,
            `target_extended_ids`.
        weights: dict; see `tests/keras_models/models/test_seq2seq.py`.

    Returns:
        log-probabilities of the labels `[target_length]`, distributions `[target_length, V +
        source_length]`, attentions `[target_length, source_length]`.
    """
    memory, mask, state = encode(inputs["source_ids"], weights, cell)
    hidden = np.zeros(len(state[0]))
    covered, copies, last = np.zeros(len(memory)), np.zeros(len(memory)), None
    log_probs, distributions, attentions = [], [], []
    for word, target in zip(inputs["target_input_ids"], inputs["target_extended_ids"]):
        embedded = weights["target_embedding"][int(word)].astype("float64")
        parts = [embedded, *([hidden] if input_feeding else [])]
        if selective_read:
            parts.append(selective_read(last, copies, memory, inputs["source_extended_ids"])[0])
        state = recur(cell, np.concatenate(parts), state, weights["decoder_cell"])
        if kind == "none":
            a, seen = np.zeros(len(memory)), state[0]
        else:
            a, context = attention(
                kind, state[0], memory, mask, weights["attention"], covered if coverage else None
            )
            seen = np.concatenate([state[0], context])
        covered, last = covered + a, target
        hidden = np.tanh(affine(seen, weights["readout"]))
        if callable(head):
            p, copies = head(hidden, state[0], memory, mask)
            distributions.append(p)
            attentions.append(a)
            log_probs.append(math.log(p[target]))
            continue
        p_vocabulary = vocabulary_distribution(hidden, *weights["vocabulary"])
        if head == "softmax":
            p = np.concatenate([p_vocabulary, np.zeros(len(memory))])
            target = target if target < vocabulary_size else 1
        else:
            p = pointer_generator(
                p_vocabulary,
                *weights["gate"],
                context=context,
                state=state[0],
                inputs=embedded,
                weights=a,
                extended_ids=inputs["source_extended_ids"],
            )
        distributions.append(p)
        attentions.append(a)
        log_probs.append(math.log(p[target]))
    return np.array(log_probs), np.array(distributions), np.array(attentions)


# Search.


def length_penalty(length, alpha):
    """Wu 2016 eq. 14: ((5 + |Y|) / 6) ** alpha."""
    return ((5 + length) / 6) ** alpha


def coverage_penalty(attentions, mask, beta):
    """Wu 2016 eq. 14: beta * sum_i log(min(sum_t a_ti, 1)) over real source positions;
    sums below 1e-6 count as 1e-6.
    """
    total = 0.0
    for i, real in enumerate(mask):
        if real:
            covered = sum(float(row[i]) for row in attentions)
            total += math.log(min(max(covered, 1e-6), 1.0))
    return beta * total


def exhaustive_search(distribution, words, end_id, max_length, min_length, alpha, beta, mask):
    """Scores every sequence of `words` of at most `max_length` words, each followed by the end.

    Args:
        distribution: function of a prefix (a tuple) giving log-probabilities over extended ids and
            attention of the step after it.

    Returns:
        list of (score, log-probability, sequence), the best first.
    """
    results = []
    for length in range(min_length, max_length + 1):
        for sequence in itertools.product(words, repeat=length):
            total, attentions = 0.0, []
            for t, word in enumerate((*sequence, end_id)):
                log_probs, attention_row = distribution(sequence[:t])
                total += float(log_probs[word])
                attentions.append(attention_row)
            score = total / length_penalty(length + 1, alpha)
            if beta:
                score += coverage_penalty(attentions[:-1], mask, beta)
            results.append((score, total, sequence))
    return sorted(results, key=lambda result: -result[0])


def beam_search(distribution, words, end_id, beam, max_length, min_length, alpha, beta, mask):
    """Beam search whose ended hypotheses keep their places (Bahdanau 2014).

    As many as have ended, fewer go on.

    Arguments and result as in `exhaustive_search`; at most `beam` results.
    """
    running, finished = [(0.0, (), [])], []
    for length in range(max_length + 1):
        continuations = []
        for total, sequence, attentions in running:
            log_probs, attention_row = distribution(sequence)
            for word in (
                *(words if length < max_length else ()),
                *((end_id,) if length >= min_length else ()),
            ):
                continuations.append(
                    (
                        total + float(log_probs[word]),
                        (*sequence, word),
                        [*attentions, attention_row],
                    )
                )
        continuations.sort(key=lambda continuation: -continuation[0])
        running = []
        for total, sequence, attentions in continuations[: beam - len(finished)]:
            if sequence[-1] != end_id:
                running.append((total, sequence, attentions))
                continue
            score = total / length_penalty(len(sequence), alpha)
            if beta:
                score += coverage_penalty(attentions[:-1], mask, beta)
            finished.append((score, total, sequence[:-1]))
    return sorted(finished, key=lambda result: -result[0])
