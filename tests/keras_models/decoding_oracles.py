"""Search over span-copy derivations, and sampling's distributions, in NumPy float64."""

import math

import numpy as np

from tests.keras_models.oracles import length_penalty


def span_derivations(
    step, extended_ids, words, end_id, max_length, alpha, min_length=0, count="tokens"
):
    """Scores every derivation of every output of at most `max_length` tokens and the end.

    A derivation generates words and copies spans (Zhou 2018): log p is the sum of log((1 - p_copy)
    p(word)) over generated words, the end included, and of log(p_copy p(start) p(end | start)) once
    a span; inside of a span nothing is chosen. The score is log p / ((5 + length) / 6) ** alpha (Wu
    2016 eq. 14). Derivations of the same text are not merged. Those of probability 0 are left out,
    and so are spans that would run beyond `max_length`.

    Args:
        step: function of a prefix, a tuple of extended ids (a copied token's is
            `extended_ids[position]`), that returns the dict of `head_oracles.span_copy`: `p_copy`,
            `vocabulary`, `start`, `end`.
        words: ids that may be generated, the end not among them.
        count: what length counts besides the end: "tokens", each generated or copied token;
            "segments", each generated word and each span, as the paper's example of length 6 does.

    Returns:
        list of (score, log p, tokens, copied from, segments), the best first: `tokens` without the
        end; `copied from` a source position or -1 for each; `segments` as
        `label_oracles.longest_match_spans` has them, with ids for words.
    """
    results = []

    def extend(log_p, tokens, copied_from, segments):
        distributions = step(tokens)
        p_copy, vocabulary = float(distributions["p_copy"]), distributions["vocabulary"]
        if len(tokens) >= min_length:
            p = (1.0 - p_copy) * float(vocabulary[end_id])
            if p > 0:
                total = log_p + math.log(p)
                length = {"tokens": len(tokens), "segments": len(segments)}[count] + 1
                results.append(
                    (total / length_penalty(length, alpha), total, tokens, copied_from, segments)
                )
        if len(tokens) == max_length:
            return
        for word in words:
            p = (1.0 - p_copy) * float(vocabulary[word])
            if p > 0:
                extend(
                    log_p + math.log(p),
                    (*tokens, word),
                    (*copied_from, -1),
                    (*segments, ("generate", word)),
                )
        for j in range(len(extended_ids)):
            for k in range(j, min(len(extended_ids), j + max_length - len(tokens))):
                p = p_copy * float(distributions["start"][j]) * float(distributions["end"][j][k])
                if p > 0:
                    span = range(j, k + 1)
                    extend(
                        log_p + math.log(p),
                        (*tokens, *(int(extended_ids[i]) for i in span)),
                        (*copied_from, *span),
                        (*segments, ("copy", j, k)),
                    )

    extend(0.0, (), (), ())
    return sorted(results, key=lambda result: -result[0])


def sampling_distribution(probabilities, temperature=1.0, top_k=None, top_p=None):
    """What sampling draws from: temperature, then the k likeliest, then the nucleus.

    It is renormalised after each.

    temperature: p_i^(1 / temperature) / sum_j p_j^(1 / temperature)
    top k (Fan 2018): the k largest
    nucleus (Holtzman 2020 section 3.1): the smallest set of likeliest words whose probability
    reaches top_p; at least one

    Among equal probabilities the smaller id comes first.

    Returns:
        probabilities, 0 for the words that are cut off.
    """
    powers = [math.log(float(p)) / temperature if p > 0 else -math.inf for p in probabilities]
    top = max(powers)
    p = np.array([math.exp(power - top) for power in powers])
    p = p / sum(p)
    order = sorted(range(len(p)), key=lambda i: (-p[i], i))
    if top_k is not None:
        p = kept(p, order[:top_k])
    if top_p is not None:
        nucleus, mass = [], 0.0
        for i in order:
            nucleus.append(i)
            mass += p[i]
            if mass >= top_p:
                break
        p = kept(p, nucleus)
    return p


def kept(probabilities, indices):
    """The probabilities at `indices`, renormalised; 0 elsewhere."""
    result = np.zeros(len(probabilities))
    total = sum(float(probabilities[i]) for i in indices)
    for i in indices:
        result[i] = float(probabilities[i]) / total
    return result
