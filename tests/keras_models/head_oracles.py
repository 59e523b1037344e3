"""Copying mechanisms in NumPy float64 and plain loops, from the papers' equations alone.

One source, one target step, no batch axis; kernels are `[inputs, outputs]`. Common names:

    memory        source states `[source_length, memory_size]`
    mask          booleans `[source_length]`, false at padding; None means no padding
    extended_ids  `[source_length]`: the target vocabulary's id of each source token, or V + its
                  first position
    copies        `[source_length]`: p(this step copies source position j); exactly 0 at padding

Distributions run over the V + source_length extended ids.
"""

import math

import numpy as np

from tests.keras_models.oracles import affine, sigmoid, softmax

END = 3


def real_positions(memory, mask):
    return [j for j in range(len(memory)) if mask is None or mask[j]]


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def log_sigmoid(x):
    x = float(x)
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def merge(p_vocabulary, copies, extended_ids):
    """P(w) = p_vocabulary(w) + sum of copies_j over the occurrences j of w.

    Both parts already hold their gates.
    """
    result = np.zeros(len(p_vocabulary) + len(copies))
    for word, p in enumerate(p_vocabulary):
        result[word] += float(p)
    for word, p in zip(extended_ids, copies, strict=True):
        result[int(word)] += float(p)
    return result


def masked_softmax(scores, positions, length):
    """softmax over `positions` alone; 0 elsewhere, and everywhere if there are none."""
    result = np.zeros(length)
    if positions:
        for j, p in zip(positions, softmax([scores[j] for j in positions])):
            result[j] = p
    return result


# Pointer network.


def pointer_scores(query, keys, W1, W2, v, bias=None):
    """Vinyals 2015 eq. 3: u_j = v . tanh(W1 e_j + W2 d [+ bias]).

    Args:
        query: d `[query_size]`.
        keys: e `[length, key_size]`.
        W1, W2, v: `[key_size, units]`, `[query_size, units]`, `[units]` or `[units, 1]`.
    """
    v = np.reshape(v, -1)
    projected = affine(query, W2, bias)
    return np.array([dot(v, np.tanh(affine(key, W1) + projected)) for key in keys])


def pointer_network(
    query, memory, mask, W1, W2, v, end_key, extended_ids, vocabulary_size, bias=None
):
    """Vinyals 2015 eq. 3: one softmax of u over the source positions and the end.

    The end is one more row of the memory, learned, whose probability is that of the id 3. A word's
    probability is the sum over its occurrences; ids of the vocabulary that are not in the source
    get 0. A source without tokens leaves the end alone.

    Args:
        end_key: `[memory_size]`.
        others: see `pointer_scores`.

    Returns:
        distribution `[V + source_length]`, copies `[source_length]`.
    """
    positions = real_positions(memory, mask)
    keys = [memory[j] for j in positions] + [end_key]
    p = softmax(pointer_scores(query, keys, W1, W2, v, bias))
    copies = np.zeros(len(memory))
    for j, pointed in zip(positions, p):
        copies[j] = pointed
    p_vocabulary = np.zeros(vocabulary_size)
    p_vocabulary[END] = p[-1]
    return merge(p_vocabulary, copies, extended_ids), copies


# Pointer softmax.


def pointer_softmax_switch(context, state, W1, b1, W2, b2, w, b, activations):
    """Gulcehre 2016 eq. 8 and section 5.3: f of the switch, before temperature and sigmoid.

    h1 = act(W1 [c; s] + b1),  h2 = act(W2 h1 + b2) + h1,  f = w . h2 + b

    Args:
        context, state: c and s.
        W1, b1: `[context_size + state_size, units]`, `[units]`.
        W2, b2: `[units, units]`, `[units]`.
        w, b: `[units]` or `[units, 1]`, and a number (or `[1]`).
        activations: act of each layer, two functions of a vector: `np.tanh`,
            `recurrent_oracles.relu` or `noisy_tanh` with its alpha, c and p given.
    """
    h1 = activations[0](affine(np.concatenate([context, state]), W1, b1))
    h2 = activations[1](affine(h1, W2, b2)) + h1
    return dot(np.reshape(w, -1), h2) + float(np.reshape(b, -1)[0])


def pointer_softmax(p_shortlist, location, switch, temperature=1.0):
    """Gulcehre 2016 eq. 4 to 9 and section 4.1: f_t = [d_t w_t;
    (1 - d_t) l_t], d_t = p(z_t = 1) = sigmoid(temperature * f).

    z = 1 means shortlist. Nothing is merged: entry V + j belongs to source position j, whatever its
    token, even one of the vocabulary or one that stood earlier. A source without tokens (`location`
    all 0) leaves d = 1.

    Args:
        p_shortlist: w_t `[V]`.
        location: l_t `[source_length]`, 0 at padding.
        switch: f; see `pointer_softmax_switch`.
        temperature: the inverse temperature of section 5.1.

    Returns:
        distribution `[V + source_length]`, copies (1 - d) l_t `[source_length]`, d.
    """
    some = sum(float(p) for p in location) > 0
    d = sigmoid(temperature * switch) if some else 1.0
    not_d = sigmoid(-temperature * switch) if some else 0.0
    copies = np.array([not_d * float(p) for p in location])
    return np.concatenate([[d * float(p) for p in p_shortlist], copies]), copies, d


def pointer_softmax_log_likelihood(p_shortlist, location, switch, target, temperature=1.0):
    """Gulcehre 2016 eq. 5 to 7 with z observed: log p(target, z).

    target < V: log d + log w_t(target), even if the source holds the word. target = V + j: log(1 -
    d) + log l_t(j), of that position alone. The logarithms of d are taken of f, so a saturated
    switch costs temperature * |f|, not infinity.
    """
    size = len(p_shortlist)
    if sum(float(p) for p in location) == 0:
        return math.log(p_shortlist[target]) if target < size else -math.inf
    if target < size:
        return log_sigmoid(temperature * switch) + math.log(p_shortlist[target])
    p = float(location[target - size])
    return log_sigmoid(-temperature * switch) + math.log(p) if p > 0 else -math.inf


# CopyNet and the lecture's joint softmax.


def copy_scores(memory, state, kernel, bias=None, tanh=False):
    """Scores of copying each position.

    lecture: h_j^T V s                       (bilinear, `tanh=False`)
    CopyNet: tanh(h_j^T W_c [+ bias]) . s    (Gu 2016 eq. 8, `tanh=True`)

    Args:
        state: s `[state_size]`.
        kernel: V or W_c `[memory_size, state_size]`.
    """
    result = []
    for h in memory:
        projected = affine(h, kernel, bias)
        result.append(dot(np.tanh(projected) if tanh else projected, state))
    return np.array(result)


def joint_copy(vocabulary_scores, scores, mask, extended_ids):
    """Gu 2016 eq. 4 to 6 and the lecture:
    one softmax over the vocabulary's scores and the source positions'.

    P(w) = (exp score_w + sum over the occurrences j of w of exp score_j) / Z, Z the sum of all V +
    (real positions) exponentials.

    Args:
        vocabulary_scores: `[V]`; lecture: W [c; h] + b; Gu 2016 eq. 7: W_o s.
        scores: `[source_length]`; see `copy_scores`.

    Returns:
        distribution `[V + source_length]`, copies exp(score_j) / Z `[source_length]`.
    """
    positions = real_positions(scores, mask)
    p = softmax([*vocabulary_scores, *(scores[j] for j in positions)])
    copies = np.zeros(len(scores))
    for j, mass in zip(positions, p[len(vocabulary_scores) :]):
        copies[j] = mass
    return merge(p[: len(vocabulary_scores)], copies, extended_ids), copies


def selective_read(previous_id, copies, memory, extended_ids):
    """Gu 2016 eq. 9:
    zeta(y_{t-1}) = sum_j rho_j h_j, rho_j = p(copy j) / K where x_j = y_{t-1}, else 0.

    K is the sum of p(copy j) over those positions; without any (or if all of them have none) zeta =
    0. p(copy j) is that of the step that predicted y_{t-1}. At the first step nothing was copied:
    pass `copies` of zeros.

    Args:
        previous_id: extended id of y_{t-1}.
        copies: of step t - 1.

    Returns:
        zeta `[memory_size]`, rho `[source_length]`.
    """
    rho = np.zeros(len(memory))
    total = sum(float(p) for p, word in zip(copies, extended_ids) if word == previous_id)
    if total > 0:
        for j, word in enumerate(extended_ids):
            if word == previous_id:
                rho[j] = float(copies[j]) / total
    zeta = np.zeros(memory.shape[1])
    for j in range(len(memory)):
        zeta += rho[j] * memory[j].astype("float64")
    return zeta, rho


# Pointer sentinel.


def pointer_sentinel(
    p_vocabulary, hidden, memory, mask, extended_ids, W, b, sentinel, key_kernel=None
):
    """Merity 2016 sections 2.2 to 2.4, with the source's states in the place of the window's.

    q = tanh(W hidden + b),  z_j = q . k_j (eq. 1),  a = softmax([z; q . sentinel]),  g = the last
    of a p(w) = g p_vocabulary(w) + (1 - g) sum of a_j / (1 - g) over the occurrences of w (eq. 3 to
    5); 1 - g cancels

    A source without tokens leaves g = 1.

    Args:
        W, b: `[hidden_size, key_size]`, `[key_size]`.
        sentinel: `[key_size]`.
        key_kernel: `[memory_size, key_size]`, k_j = key_kernel h_j; None: k_j = h_j, as the paper
            has it.

    Returns:
        distribution `[V + source_length]`, copies a_j `[source_length]`, g.
    """
    query = np.tanh(affine(hidden, W, b))
    positions = real_positions(memory, mask)
    keys = [memory[j] if key_kernel is None else affine(memory[j], key_kernel) for j in positions]
    a = softmax([dot(query, key) for key in [*keys, sentinel]])
    copies, gate = np.zeros(len(memory)), float(a[-1])
    for j, mass in zip(positions, a):
        copies[j] = mass
    return merge([gate * float(p) for p in p_vocabulary], copies, extended_ids), copies, gate


def pointer_sentinel_auxiliary_loss(copies, gate, extended_ids, target):
    """Merity 2016 section 2.6:
    the pointer's loss, -log(g + sum of a_j over the occurrences of the target).
    """
    return -math.log(
        gate + sum(float(a) for a, word in zip(copies, extended_ids) if word == target)
    )


# Large vocabularies.


def candidate_words(batch, frequent, size):
    """Jean 2015 as Gulcehre 2016 section 5.2 uses it:
    the batch's words, then the most frequent ones until there are `size`.

    Words of the batch are never left out: if they alone are more than `size`, so are the
    candidates.

    Args:
        batch: ids of the words that the batch needs, repeats allowed.
        frequent: ids by falling frequency, those always needed ([END], [UNK]) first.

    Returns:
        sorted list of different ids.
    """
    chosen = {int(word) for word in batch}
    for word in frequent:
        if len(chosen) >= size:
            break
        chosen.add(int(word))
    return sorted(chosen)


def candidate_softmax(scores, candidates, weights=None):
    """softmax over `candidates` alone.

    p(w) = exp(score_w) / sum over the candidates c of weight_c exp(score_c); words outside have
    exactly 0.

    Args:
        scores: `[V]`, of which those outside the candidates are not read.
        candidates: ids; one that stands there twice counts once.
        weights: dict from id to how many words it stands for, 1 where it is missing.

    Returns:
        `[V]`; its weighted sum is 1.
    """
    weights = weights or {}
    chosen = sorted({int(word) for word in candidates})
    total = sum(weights.get(word, 1.0) * np.exp(scores[word]) for word in chosen)
    return np.array(
        [np.exp(scores[word]) / total if word in chosen else 0.0 for word in range(len(scores))]
    )
