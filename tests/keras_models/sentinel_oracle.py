"""The pointer sentinel mixture model in NumPy float64 and plain loops, written from Merity et al.
2016.

Nothing here comes from `keras_models`. There is no batch axis; kernels are `[inputs, outputs]`.
"""

import math

import numpy as np

from tests.keras_models import oracles


def mixture(hidden, states, words, size, weights):
    """p(w) = g p_vocab(w) + (1 - g) p_ptr(w), eq. 1 to 5.

    Args:
        hidden: h_{N-1}, of which query and vocabulary distribution are made.
        states: the hidden states that may be pointed at, a list.
        words: the word of each, extended ids.
        size: number of extended ids.
        weights: dict of `query` and `vocabulary`, each (kernel, bias), and `sentinel`.

    Returns:
        p over `size` ids, the pointer's weights a (one a state), g.
    """
    query = np.tanh(oracles.affine(hidden, *weights["query"]))
    scores = [sum(float(q) * float(m) for q, m in zip(query, state)) for state in states]
    gate_score = sum(float(q) * float(s) for q, s in zip(query, weights["sentinel"]))
    a = oracles.softmax([*scores, gate_score])
    g = a[-1]
    p_vocabulary = oracles.vocabulary_distribution(hidden, *weights["vocabulary"])
    p_pointer = np.zeros(size)
    for word, weight in zip(words, a[:-1]):
        # Eq. 5 divides by 1 - g, eq. 4 multiplies by it.
        p_pointer[word] += weight / (1.0 - g) if g < 1.0 else 0.0
    p = np.zeros(size)
    for word in range(size):
        p[word] = (
            g * (p_vocabulary[word] if word < len(p_vocabulary) else 0.0)
            + (1.0 - g) * p_pointer[word]
        )
    return p, a[:-1], g


def zoneout_lstm(x, h, c, weights, zoneout_hidden, zoneout_cell):
    """One step at inference (Krueger 2016): the expectation of keeping each unit's old value."""
    new_h, new_c = oracles.lstm(x, h, c, **weights)
    return zoneout_hidden * h + (1 - zoneout_hidden) * new_h, zoneout_cell * c + (
        1 - zoneout_cell
    ) * new_c


def language_model(
    inputs, words, weights, window, zoneout_hidden, zoneout_cell, size, pointer=True
):
    """The distribution after each word of a text read from its beginning.

    Args:
        inputs: ids that are embedded.
        words: the same words as extended ids, for the pointer.
        weights: dict of `embedding`, `lstms` (a list of dicts `kernel`, `recurrent_kernel`,
            `bias`), and those of `mixture`.
        window: L.

    Returns:
        p `[words, size]`, and for each step the positions of the text pointed at with their
        weights, a dict.
    """
    units = weights["lstms"][0]["recurrent_kernel"].shape[0]
    states = [(np.zeros(units), np.zeros(units)) for _ in weights["lstms"]]
    past, distributions, pointed = [], [], []
    for t, word in enumerate(inputs):
        x = weights["embedding"][int(word)].astype("float64")
        for layer, lstm in enumerate(weights["lstms"]):
            states[layer] = zoneout_lstm(x, *states[layer], lstm, zoneout_hidden, zoneout_cell)
            x = states[layer][0]
        past.append(x)
        if not pointer:
            p = oracles.vocabulary_distribution(x, *weights["vocabulary"])
            distributions.append(np.concatenate([p, np.zeros(size - len(p))]))
            continue
        # "a window of the L most recent words": h_i is the state after reading w_i, the last one is
        # the query's own.
        first = max(0, t - window + 1)
        p, a, _ = mixture(x, past[first : t + 1], words[first : t + 1], size, weights)
        distributions.append(p)
        pointed.append({first + i: weight for i, weight in enumerate(a)})
    return np.array(distributions), pointed


def perplexity(ids, start_id, weights, window, zoneout_hidden, zoneout_cell, pointer=True):
    """exp(- 1/N sum log p(w_t | w_<t)) of a stream that follows `start_id`."""
    inputs = [start_id, *ids[:-1]]
    size = weights["vocabulary"][0].shape[1]
    p, _ = language_model(
        inputs, inputs, weights, window, zoneout_hidden, zoneout_cell, size, pointer
    )
    return math.exp(-sum(math.log(row[word]) for row, word in zip(p, ids)) / len(ids))
