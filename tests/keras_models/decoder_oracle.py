"""Decoders of several layers, and Bahdanau's, of one pair in float64, step by step."""

import numpy as np

from tests.keras_models.oracles import (
    affine,
    attention,
    encode,
    pointer_generator,
    recur,
    vocabulary_distribution,
)


def stacked_seq2seq(inputs, weights, cell, kind, decoder, covers=True, feeds=True):
    """Teacher-forced decoding of one pair by head pointer_generator.

    Bahdanau et al. 2015, appendix A.2.2, for GRUs of one layer:

        c_i = sum_j alpha_ij h_j,  e_ij = v . tanh(W s_{i-1} + U h_j)
        s_i from E y_{i-1}, s_{i-1} and c_i
        t~_i = U_o s_i + V_o E y_{i-1} + C_o c_i,  t_i,k = max(t~_i,2k-1, t~_i,2k)

    Args:
        inputs: see `oracles.seq2seq`.
        weights: as `oracles.seq2seq` takes them, with `upper_cells`, one for each further layer,
            `bridges` of all layers, and with Bahdanau's decoder `word_readout`.
        decoder: "luong" or "bahdanau".

    Returns:
        distributions `[target_length, V + source_length]`.
    """
    cells = [weights["decoder_cell"], *weights["upper_cells"]]
    number = len(weights["bridges"]) // len(cells)
    states = []
    for layer in range(len(cells)):
        bridges = weights["bridges"][layer * number : (layer + 1) * number]
        memory, mask, state = encode(inputs["source_ids"], {**weights, "bridges": bridges}, cell)
        states.append(state)
    top, hidden = states[-1][0], np.zeros(len(states[0][0]))
    covered, distributions = np.zeros(len(memory)), []
    for word in inputs["target_input_ids"]:
        embedded = weights["target_embedding"][int(word)].astype("float64")
        source = (memory, mask, weights["attention"], covered if covers else None)
        if decoder == "bahdanau":
            a, context = attention(kind, top, *source)
            fed = [context]
        else:
            fed = [hidden] if feeds else []
        below = np.concatenate([embedded, *fed])
        for layer, kernel in enumerate(cells):
            states[layer] = recur(cell, below, states[layer], kernel)
            output = states[layer][0]
            # Residual connections from the third layer on (Wu et al. 2016, section 3.1).
            below = output + below if layer >= 2 else output
        top = below
        if decoder == "bahdanau":
            t = affine(np.concatenate([top, context]), weights["readout"])
            t = t + affine(embedded, weights["word_readout"])
            hidden = np.array([max(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)])
        else:
            a, context = attention(kind, top, *source)
            hidden = np.tanh(affine(np.concatenate([top, context]), weights["readout"]))
        covered = covered + a
        distributions.append(
            pointer_generator(
                vocabulary_distribution(hidden, *weights["vocabulary"]),
                *weights["gate"],
                context=context,
                state=top,
                inputs=embedded,
                weights=a,
                extended_ids=inputs["source_extended_ids"],
            )
        )
    return np.array(distributions)
