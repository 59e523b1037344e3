"""The Transformer with a copy attention in NumPy float64 and plain loops, from Vaswani et al. 2017.

Style, array layout and heads are those of `oracles.py`: no batch axis, a sequence is `[length,
size]`.
"""

import math

import numpy as np

from tests.keras_models.oracles import (
    affine,
    attention,
    layer_norm,
    pointer_generator,
    softmax,
    vocabulary_distribution,
)


def position_encoding(position, size):
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / size)), PE(pos, 2i + 1) its cosine."""
    result = []
    for unit in range(size):
        angle = position / 10000 ** (2 * (unit // 2) / size)
        result.append(math.cos(angle) if unit % 2 else math.sin(angle))
    return np.array(result)


def multi_head_attention(query, memory, mask, heads, weights):
    """Section 3.2.2 for one query: Concat(head_1 ..

    head_h) W_O, head_i = softmax(q W_i K_i^T / sqrt(d)) V_i.

    Args:
        mask: which positions of the memory may be seen.
        weights: query, key, value and output kernels, the heads' columns one beside the other.
    """
    q = affine(query, weights["query_kernel"])
    keys = [affine(state, weights["key_kernel"]) for state in memory]
    values = [affine(state, weights["value_kernel"]) for state in memory]
    size = len(q) // heads
    seen = [j for j in range(len(memory)) if mask[j]]
    joined = np.zeros(len(q))
    for head in range(heads):
        columns = range(head * size, (head + 1) * size)
        if not seen:
            continue
        scores = [sum(q[c] * keys[j][c] for c in columns) / math.sqrt(size) for j in seen]
        for weight, j in zip(softmax(scores), seen):
            for c in columns:
                joined[c] += weight * values[j][c]
    return affine(joined, weights["output_kernel"])


def feed_forward(vector, inner, outer):
    """Equation 2: max(0, x W_1 + b_1) W_2 + b_2."""
    return affine(np.array([max(x, 0.0) for x in affine(vector, *inner)]), *outer)


def sub_layer(states, norm, norm_first, function):
    """x + f(Norm(x)) (Xiong et al. 2020), or Norm(x + f(x)) (Vaswani et al. 2017, section 3.1).

    Args:
        function: what the sub-layer reads of all states, to what it adds to each.
    """
    if norm_first:
        added = function([layer_norm(state, *norm) for state in states])
        return [state + more for state, more in zip(states, added)]
    added = function(states)
    return [layer_norm(state + more, *norm) for state, more in zip(states, added)]


def encoder_layer(states, mask, heads, weights, norm_first=True):
    def attend(read):
        return [
            multi_head_attention(query, read, mask, heads, weights["self_attention"])
            for query in read
        ]

    def transform(read):
        return [feed_forward(state, weights["inner"], weights["outer"]) for state in read]

    states = sub_layer(states, weights["self_norm"], norm_first, attend)
    return sub_layer(states, weights["feed_forward_norm"], norm_first, transform)


def decoder_layer(states, memory, mask, heads, weights, norm_first=True):
    def attend(read):
        return [
            multi_head_attention(
                query, read, [i <= t for i in range(len(read))], heads, weights["self_attention"]
            )
            for t, query in enumerate(read)
        ]

    def attend_to_source(read):
        return [
            multi_head_attention(query, memory, mask, heads, weights["source_attention"])
            for query in read
        ]

    def transform(read):
        return [feed_forward(state, weights["inner"], weights["outer"]) for state in read]

    states = sub_layer(states, weights["self_norm"], norm_first, attend)
    states = sub_layer(states, weights["source_norm"], norm_first, attend_to_source)
    return sub_layer(states, weights["feed_forward_norm"], norm_first, transform)


def embed(ids, table):
    """Section 3.4: embeddings times the square root of their size."""
    return [table[int(i)].astype("float64") * math.sqrt(table.shape[1]) for i in ids]


def place(embedded, projection):
    """The embeddings, projected if there is a projection, plus their positions' encodings."""
    states = [vector if projection is None else affine(vector, projection) for vector in embedded]
    return [state + position_encoding(i, len(state)) for i, state in enumerate(states)]


def encode(inputs, weights, heads):
    mask = [int(i) != 0 for i in inputs["source_ids"]]
    embedded = embed(inputs["source_ids"], weights["source_embedding"])
    for name, table in weights.get("features", {}).items():
        # One long embedding, scaled as the word's part of it is.
        scale = math.sqrt(weights["source_embedding"].shape[1])
        embedded = [
            np.concatenate([vector, table[int(i)] * scale])
            for vector, i in zip(embedded, inputs[name], strict=True)
        ]
    states = place(embedded, weights["source_projection"])
    for layer in weights["encoder"]:
        states = encoder_layer(states, mask, heads, layer, weights["encoder_norm"] is not None)
    if weights["encoder_norm"] is not None:
        states = [layer_norm(state, *weights["encoder_norm"]) for state in states]
    return np.array(
        [state if real else np.zeros(len(state)) for state, real in zip(states, mask)]
    ), mask


def seq2seq(inputs, weights, vocabulary_size, heads, head):
    """Teacher-forced decoding of one pair.

    Args:
        inputs: dict of `[length]` arrays: `source_ids`, `source_extended_ids`, `target_input_ids`,
            `target_extended_ids`.
        weights: dict; see `tests/keras_models/models/test_transformer_seq2seq.py`. Without
            `encoder_norm` and `query_norm` the layers are post-norm.

    Returns:
        log-probabilities of the labels `[target_length]`, distributions `[target_length, V +
        source_length]`, attentions `[target_length, source_length]`.
    """
    memory, mask = encode(inputs, weights, heads)
    embedded = embed(inputs["target_input_ids"], weights["target_embedding"])
    states = place(embedded, weights["target_projection"])
    for layer in weights["decoder"]:
        states = decoder_layer(
            states, memory, mask, heads, layer, weights["query_norm"] is not None
        )
    log_probs, distributions, attentions = [], [], []
    for t, target in enumerate(inputs["target_extended_ids"]):
        query = states[t]
        if weights["query_norm"] is not None:
            query = layer_norm(query, *weights["query_norm"])
        a, context = attention(
            "bilinear", query / math.sqrt(len(query)), memory, mask, weights["attention"]
        )
        hidden = layer_norm(
            states[t] + affine(context, weights["readout"]), *weights["output_norm"]
        )
        p_vocabulary = vocabulary_distribution(hidden, *weights["vocabulary"])
        if head == "softmax":
            p = np.concatenate([p_vocabulary, np.zeros(len(memory))])
            target = target if target < vocabulary_size else 1
        else:
            p = pointer_generator(
                p_vocabulary,
                *weights["gate"],
                context=context,
                state=query,
                inputs=embedded[t],
                weights=a,
                extended_ids=inputs["source_extended_ids"],
            )
        distributions.append(p)
        attentions.append(a)
        log_probs.append(math.log(p[target]))
    return np.array(log_probs), np.array(distributions), np.array(attentions)
