"""The segmenting encoder and its policy's loss in NumPy float64.

Segments are true slices, walked one by one.

Written from Arthur 2018, chapter 5; style, array layout and cells are those of `oracles.py`.
"""

import math

import numpy as np

from tests.keras_models.oracles import layer_norm, lstm, sigmoid


def run_lstm(vectors, weights, units):
    """States h_1 .. h_n and the last (h, c) of an LSTM that begins with zeros."""
    h, c, states = np.zeros(units), np.zeros(units), []
    for vector in vectors:
        h, c = lstm(vector, h, c, *weights)
        states.append(h)
    return states, (h, c)


def bidirectional(vectors, forward, backward, units):
    """[h forward; h backward] for each vector, and the last states of both directions."""
    ahead, last = run_lstm(vectors, forward, units)
    behind, first = run_lstm(vectors[::-1], backward, units)
    return [np.concatenate(pair) for pair in zip(ahead, behind[::-1])], (*last, *first)


def slices(ends):
    """(first, last) of each segment; the last character always ends one."""
    found, first = [], 0
    for place, end in enumerate(ends):
        if end or place == len(ends) - 1:
            found.append((first, place))
            first = place + 1
    return found


def bucket(ids, buckets):
    """Where a whole segment's vector stands: its ids as the digits of a number."""
    value = 0
    for one in ids:
        value = (value * 1009 + one) % buckets
    return value


def encode(embedded, ends, weights, units, composes, residual=False, ids=None):
    """Encodes one sentence.

    Returns the logits, the word encoder's states by the place of each segment's last character,
    and its last states.

    Args:
        embedded: `[length, size]`, real characters alone.
        ends: bools, or None: where the decision is likelier than not.
        ids: the characters', where `weights` has an embedding of whole segments.
    """

    def normalized(vectors, name):
        return [layer_norm(vector, *weights[name]) for vector in vectors] if residual else vectors

    characters, _ = bidirectional(list(embedded), *weights["characters"], units // 2)
    characters = [
        vector @ weights["projection"][0] + weights["projection"][1] for vector in characters
    ]
    characters = normalized(characters, "normalized_characters")
    logits = [
        float((vector @ weights["policy"][0] + weights["policy"][1])[0]) for vector in characters
    ]
    if ends is None:
        ends = [logit > 0 for logit in logits]
    read = characters if composes == "states" else list(embedded)
    composed = [
        run_lstm(read[first : last + 1], weights["composer"], units)[1][0]
        for first, last in slices(ends)
    ]
    composed = normalized(composed, "normalized_composed")
    if ids is not None:
        table = weights["word_embedding"]
        found = [table[bucket(ids[first : last + 1], len(table))] for first, last in slices(ends)]
        composed = [word + own for word, own in zip(composed, found)]
    states, last_states = bidirectional(composed, *weights["words"], units // 2)
    if residual:
        lasts = [characters[last] for _, last in slices(ends)]
        states = [
            state + word + character for state, word, character in zip(states, composed, lasts)
        ]
    states = normalized(states, "normalized_states")
    return logits, {last: state for (_, last), state in zip(slices(ends), states)}, last_states


def poisson(count, rate):
    """log of lambda^k e^-lambda / k!."""
    return count * math.log(rate) - rate - math.lgamma(count + 1)


def policy_loss(
    logits,
    ends,
    characters,
    log_probs,
    attention,
    samples,
    mean_length,
    baseline,
    regression=None,
    reinforce_weight=1.0,
    length_prior_weight=0.0,
    normalize_rewards=False,
    confidence_penalty=0.0,
    fertility_weight=0.0,
):
    """The loss of a batch.

    Rows are of real characters and real target tokens alone, a sentence's samples side by side.

    Args:
        logits, ends: a list of numbers and of bools for each row.
        characters: `[length, units]` for each row.
        log_probs: list of the target tokens' log-probabilities for each row.
        attention: `[target_length, length]` for each row.
        regression: (weights `[units]`, bias) of the baseline.
    """
    rewards = []
    for row, ended in enumerate(ends):
        reward = sum(log_probs[row]) / len(log_probs[row])
        words, letters = len(slices(ended)), len(ended)
        if length_prior_weight:
            reward += length_prior_weight * poisson(words, letters / mean_length)
        rewards.append(reward)
    if normalize_rewards:
        mean = sum(rewards) / len(rewards)
        deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
        rewards = [(reward - mean) / deviation for reward in rewards]
    total = 0.0
    for row, ended in enumerate(ends):
        group = row - row % samples
        for place in range(len(ended) - 1):  # at the last character nothing is decided
            chance = sigmoid(logits[row][place])
            if baseline == "linear":
                expected = float(characters[row][place] @ regression[0]) + regression[1]
                total += (rewards[row] - expected) ** 2
            else:
                others = [rewards[other] for other in range(group, group + samples) if other != row]
                expected = sum(others) / len(others)
            taken = chance if ended[place] else 1.0 - chance
            total -= reinforce_weight * math.log(taken) * (rewards[row] - expected)
            entropy = -chance * math.log(chance) - (1.0 - chance) * math.log(1.0 - chance)
            total -= confidence_penalty * entropy
        for _, last in slices(ended):
            total += fertility_weight * (1.0 - attention[row][:, last].sum()) ** 2
    return total / sum(map(len, log_probs))
