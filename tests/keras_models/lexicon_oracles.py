"""Lexicon heads by loops, in float64, from Arthur 2018, chapter 3."""

import numpy as np

from tests.keras_models.oracles import affine, vocabulary_distribution

UNKNOWN = 1


def lexicon_distribution(weights, ids, probabilities, vocabulary_size):
    """Equations 3.1 and 3.2: the matrix L_F, a column for each source word, times the attention."""
    matrix = np.zeros((vocabulary_size, len(weights)))
    for j in range(len(weights)):
        for k in range(ids.shape[1]):
            matrix[ids[j, k], j] += probabilities[j, k]
    return matrix @ np.asarray(weights, np.float64)


def bias(hidden, kernel, offset, p_lexicon, epsilon):
    """Equation 3.3."""
    logits = affine(hidden, kernel, offset) + np.log(p_lexicon + epsilon)
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def linear(hidden, kernel, offset, p_lexicon, x):
    """Equation 3.4; without a source nothing is interpolated."""
    p_model = vocabulary_distribution(hidden, kernel, offset)
    share = 1 / (1 + np.exp(-x)) if p_lexicon.sum() > 0 else 0.0
    return share * p_lexicon + (1 - share) * p_model


def lexicon_copy(p_model, weights, ids, probabilities, extended_ids, gates):
    """The mixture of generating, translating and copying.

    Returns the distribution over V + S, and each position's copy.
    """
    size, length = len(p_model), len(weights)
    generate, translate, copy = gates if sum(weights) > 0 else (1.0, 0.0, 0.0)
    result = np.zeros(size + length)
    result[:size] = generate * p_model
    copies = np.zeros(length)
    for j in range(length):
        copies[j] += copy * weights[j]
        for k in range(ids.shape[1]):
            if ids[j, k] == UNKNOWN:
                copies[j] += translate * weights[j] * probabilities[j, k]
            else:
                result[ids[j, k]] += translate * weights[j] * probabilities[j, k]
    for j in range(length):
        result[extended_ids[j]] += copies[j]
    return result, copies
