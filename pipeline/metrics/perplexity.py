"""The perplexity of references by a model."""

import math
from typing import Any

from pipeline.metrics.base import DenseMetric, FloatArray, Row, exact_parts
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions


class Perplexity(DenseMetric):
    """Perplexity of the references by a model, from 1 up: for each token, or for each word.

        perplexity = exp(- sum over segments of log p(reference | source) / sum over segments of N)

    N is the number of tokens that the model's signature `score` counts, or the number of words and
    punctuation marks, whatever units the model cuts them into, so that models of different units
    compare; the end of the text is one more of either. A word that the vocabulary lacks counts with
    the probability of its copy if it occurs in the source, else with that of `[UNK]`. Of several
    references the first is read.
    """

    cuts_words = True
    size = 3
    lower_is_better = True
    needs_scores = True

    def __init__(self, per: str, options: ScoringOptions) -> None:
        self._per = per
        self._count = options.tokenizer.count

    def statistics(self, segment: Segment) -> Row:
        log_probability, tokens = segment.score
        return [
            *exact_parts(log_probability),
            tokens if self._per == "token" else self._count(segment.references[0]) + 1,
        ]

    def value(self, sums: FloatArray) -> float | None:
        return perplexity_of(sums[0] + sums[1], sums[2])

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {"log_probability": float(sums[0] + sums[1]), f"{self._per}s": int(sums[2])}

    def own_signature(self) -> str:
        return f"per:{self._per}|end:counted|unknown:copied else [UNK]"


def perplexity_of(log_probability: float, count: float) -> float | None:
    """Returns exp(- log_probability / count), None where `count` is 0.

    It is infinite where it exceeds all numbers, and NaN (which meets no threshold) of NaN.
    """
    if not count:
        return None
    nll = -log_probability / count
    return math.inf if nll >= 700 else math.exp(nll)
