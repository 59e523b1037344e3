"""How surprised a model is by the references."""

import math

from pipeline.metrics.base import DEFAULT_SEED, Metric, exact_parts, join_signature
from pipeline.text.tokenization import Tokenizer


class Perplexity(Metric):
    """Perplexity of the references by a model, from 1 up: for each token, or for each word.

        perplexity = exp(- sum over segments of log p(reference | source) / sum over segments of N)

    N is the number of tokens that the model's signature `score` counts, or the number of words and
    punctuation marks, whatever units the model cuts them into, so that models of different units
    compare; the end of the text is one more of either. A word that the vocabulary lacks counts with
    the probability that it is copied, where it stands in the source, else with that of `[UNK]`. Of
    several references the first is read.
    """

    size = 3
    lower_is_better = True
    needs_scores = True

    def __init__(self, per, tokenization="text", **unused):
        self._per = per
        self._count = Tokenizer(tokenization).count

    def statistics(self, hypothesis, references, source):
        log_probability, tokens = hypothesis
        return [
            *exact_parts(log_probability),
            tokens if self._per == "token" else self._count(references[0]) + 1,
        ]

    def value(self, sums):
        return perplexity_of(sums[0] + sums[1], sums[2])

    def details(self, sums):
        return {"log_probability": float(sums[0] + sums[1]), f"{self._per}s": int(sums[2])}

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature(
            f"per:{self._per}|end:counted|unknown:copied else [UNK]", samples, seed, references
        )


def perplexity_of(log_probability, count):
    """Returns exp(- log_probability / count):
    infinite beyond all numbers, NaN of NaN (which meets no threshold), None where `count` is 0.
    """
    if not count:
        return None
    nll = -log_probability / count
    return math.inf if nll >= 700 else math.exp(nll)
