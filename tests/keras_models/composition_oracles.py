"""Composed words by loops, in float64, from Arthur 2018, section 4.5."""

import numpy as np


def lstm(inputs, kernel, recurrent_kernel, bias):
    """The last output of an LSTM with gates i, f, g, o in this order of columns."""
    size = recurrent_kernel.shape[0]
    h, c = np.zeros(size), np.zeros(size)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for x in inputs:
        i, f, g, o = np.split(x @ kernel + h @ recurrent_kernel + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def bucket(ngram, buckets):
    """The hash that the layer's docstring gives."""
    value = len(ngram)
    for character in ngram:
        value = (1009 * value + character) % buckets
    return value + 1


def compose(word, function, weights, units, window, ngram, buckets):
    """The vector of a word, a list of character ids.

    Args:
        weights: dict from the name of a weight of the layer to its value; `lstm` is the list of the
            directions' (kernel, recurrent kernel, bias).
    """
    embeddings = np.asarray(weights["embeddings"], np.float64)
    if function == "ngram":
        total = np.array(weights["bias"], np.float64)
        for n in range(1, ngram + 1):
            for start in range(len(word) - n + 1):
                total = total + embeddings[bucket(word[start : start + n], buckets)]
        return np.tanh(total)
    vectors = [embeddings[character] for character in word]
    if function == "sum":
        return sum(vectors, np.zeros(units))
    if function == "average":
        return sum(vectors, np.zeros(units)) / max(len(word), 1)
    if function == "max":
        return np.array([max((v[n] for v in vectors), default=0.0) for n in range(units)])
    if function == "cnn":
        pooled = np.full(units, -np.inf)
        for j in range(len(word)):
            total = np.zeros(units)
            for tap in range(window):
                if j + tap < len(word):
                    total = (
                        total
                        + vectors[j + tap] @ weights["kernel"][tap * units : (tap + 1) * units]
                    )
            pooled = np.maximum(pooled, np.tanh(total) + weights["bias"])
        return pooled if word else np.zeros(units)
    forward, backward = (
        lstm(order, *directions)
        for order, directions in zip((vectors, vectors[::-1]), weights["lstm"], strict=True)
    )
    return np.tanh(np.concatenate([forward, backward]) @ weights["kernel"] + weights["bias"])
