"""NIST: n-gram precisions weighted by information."""

import collections
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pipeline.metrics.base import FloatArray, Key, SparseMetric
from pipeline.metrics.sacrebleu_metrics import sacrebleu_bleu
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions

_NIST_ORDER = 5


class Nist(SparseMetric):
    """NIST (Doddington, 2002), from 0 up, about 10 for good systems.

        NIST = penalty * sum over n = 1..5 of
            sum over output n-grams w that a reference holds (clipped) of info(w)
            / number of output n-grams
        info(w_1 ... w_n) = log2(count of w_1 ... w_n-1 / count of w_1 ... w_n)
        penalty = exp(ln 0.5 * (ln(output length / reference length) / ln 1.5)^2)

    The counts of info are those of all references; for n = 1 the first is the number of reference
    words. The penalty is of outputs that are shorter than the references, else 1.

    It is what `nltk.translate.nist_score.corpus_nist` computes, with BLEU's words: of several
    references, a segment takes for each n the one that gives it most (the longest of several such).
    Which one that is depends on all segments, so where references match differently the
    alternatives themselves are the statistic. An n for which no output is long enough counts 0, and
    so does NIST without reference words; NLTK divides by 0 there.

    A resampled test set holds some segments twice, so its n-grams carry less information: the
    bootstrap interval is somewhat low, and may not contain the value.
    """

    def __init__(self, options: ScoringOptions) -> None:
        self._scorer, self._tokenize = sacrebleu_bleu(options)

    def _words(self, text: str) -> list[str]:
        words: list[str] = self._scorer.tokenizer(text.rstrip()).split()
        return words

    def statistics(self, segment: Segment) -> collections.Counter[Key]:
        words = self._words(segment.hypothesis)
        references = list(map(self._words, segment.references))
        counts: collections.Counter[Key] = collections.Counter()
        for order in range(1, _NIST_ORDER + 1):
            output = collections.Counter(_ngrams(words, order))
            counts["output", order] = output.total()
            lengths: dict[Key, int] = {}
            for reference in references:
                ngrams = collections.Counter(_ngrams(reference, order))
                for ngram, count in ngrams.items():
                    counts["reference", ngram] += count
                matched = tuple((output & ngrams).items())
                lengths[matched] = max(len(reference), lengths.get(matched, 0))
            if len(lengths) > 1:
                counts["best", order, tuple(lengths.items())] = 1
                continue
            for matched, length in lengths.items():
                counts[("length",)] += length
                for ngram, count in matched:
                    counts["match", ngram] += count
        return counts

    def evaluator(self, keys: Sequence[Key]) -> Callable[[FloatArray], float]:
        position = {key: index for index, key in enumerate(keys)}
        ngrams = {
            key[1]: number
            for number, key in enumerate(key for key in keys if key[0] == "reference")
        }
        reference = np.array([position["reference", ngram] for ngram in ngrams], np.int64)
        prefix = np.array([ngrams.get(ngram[:-1], -1) for ngram in ngrams], np.int64)
        match = np.array(
            [(position[key], ngrams[key[1]], len(key[1])) for key in keys if key[0] == "match"],
            np.int64,
        ).reshape(-1, 3)
        choices = [key for key in keys if key[0] == "best"]
        choice = np.array([(position[key], key[1]) for key in choices], np.int64).reshape(-1, 2)
        alternatives = [(number, *item) for number, key in enumerate(choices) for item in key[2]]
        group = np.array([number for number, _, _ in alternatives], np.int64)
        lengths = np.array([length for _, _, length in alternatives], np.float64)
        ends = np.searchsorted(group, np.arange(len(choices)), side="right") - 1
        parts = np.array(
            [
                (number, ngrams[ngram], count)
                for number, (_, matched, _) in enumerate(alternatives)
                for ngram, count in matched
            ],
            np.int64,
        ).reshape(-1, 3)
        chosen_among = np.unique(parts[:, 1])

        def evaluate(sums: FloatArray) -> float:
            counts = sums[reference]
            total = counts[prefix < 0].sum()
            if not total:
                return 0.0
            # A resampled test set may lack an n-gram; none of its segments then reads the weight.
            shares = np.where(prefix < 0, total, counts[prefix]) / np.where(
                counts > 0, counts, np.inf
            )
            shares = np.where(counts > 0, shares, 1.0)
            weights = np.log(shares) / math.log(2)
            # To NLTK's last bit, which decides between references of equal value.
            weights[chosen_among] = [math.log(share, 2) for share in shares[chosen_among].tolist()]
            gains = np.bincount(
                match[:, 2], sums[match[:, 0]] * weights[match[:, 1]], _NIST_ORDER + 1
            )
            length = sums[position["length",]] if ("length",) in position else 0.0
            if choices:
                scores = np.bincount(parts[:, 0], weights[parts[:, 1]] * parts[:, 2], len(group))
                best = np.lexsort((lengths, scores, group))[ends]
                times = sums[choice[:, 0]]
                gains = gains + np.bincount(choice[:, 1], times * scores[best], _NIST_ORDER + 1)
                length += times @ lengths[best]
            totals = [sums[position["output", order]] for order in range(1, _NIST_ORDER + 1)]
            precision = sum(gain / total for gain, total in zip(gains[1:], totals) if total)
            return float(precision * _nist_penalty(_NIST_ORDER * totals[0], length))

        return evaluate

    def details(self, sums: collections.Counter[Key]) -> dict[str, Any]:
        return {
            "hypothesis_length": int(sums["output", 1]),
            "reference_words": int(
                sum(
                    count
                    for key, count in sums.items()
                    if key[0] == "reference" and len(key[1]) == 1
                )
            ),
        }

    def own_signature(self) -> str:
        return f"case:mixed|n:{_NIST_ORDER}|tok:{self._tokenize}"


def _ngrams(words: Sequence[str], order: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[begin:] for begin in range(order)))


def _nist_penalty(length: float, reference_length: float) -> float:
    if not length:
        return 0.0
    # An output of two thirds of the reference's length loses half.
    return math.exp(
        math.log(0.5) * (math.log(min(1.0, length / reference_length)) / math.log(1.5)) ** 2
    )
