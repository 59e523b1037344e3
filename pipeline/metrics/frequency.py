"""Recall of rare words, and F1 of words by their training count and by the length of the text."""

import bisect
import collections
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pipeline.metrics.base import DenseMetric, FloatArray, Row, Share, ratio, share_or_one
from pipeline.metrics.buckets import FREQUENCY_BUCKETS, LENGTH_BUCKETS, bucket_names
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions

#: Words that training saw less often are rare (Arthur et al., 2016).
RARE_BELOW = 8


class RareWordRecall(Share):
    """Share of the references' rare words that occur in the outputs.

    A word is rare if training saw it less than 8 times.

        sum over segments and rare words w of min(count of w in output, count in reference)
        / sum over segments and rare words w of count in reference

    Rare words and their recall are as in Arthur et al. (2016), who count words on the target side.
    Words and protected tokens count, punctuation does not. If a segment has several references, the
    one with the largest share is used, among those that contain a rare word.
    """

    cuts_words = True
    counted = ("n", "found")
    needs_training_words = True
    needs_training_counts = True
    always_defined = False

    def __init__(self, options: ScoringOptions, training_words: Mapping[str, int]) -> None:
        self._counts = training_words
        self._words = options.tokenizer.words

    def statistics(self, segment: Segment) -> Row:
        words = collections.Counter(self._words(segment.hypothesis))
        shares: list[list[int]] = []
        for reference in segment.references:
            rare = collections.Counter(
                word for word in self._words(reference) if self._counts.get(word, 0) < RARE_BELOW
            )
            if rare:
                shares.append([(words & rare).total(), rare.total()])
        return max(shares, key=share_or_one, default=[0, 0])

    def own_signature(self) -> str:
        return f"case:mixed|rare:<{RARE_BELOW}|words:running, clipped"


class _WordF1(DenseMetric):
    """F1 of words, and in `details` the same for buckets of words.

        matches = sum over segments and words w of min(count of w in output, count in reference)
        precision = matches / output words, recall = matches / reference words
        F1 = the harmonic mean of precision and recall

    Words and protected tokens count, punctuation does not. If a segment has several references,
    the one with the best F1 over all words is used.

    Attributes:
        bounds: where the buckets begin.
        detail, category: the names of the list in `details`, and of a bucket in it.
    """

    cuts_words = True
    unit = "share"
    always_defined = False
    bounds: ClassVar[tuple[int, ...]] = ()
    detail: ClassVar[str] = ""
    category: ClassVar[str] = ""

    def __init__(self, options: ScoringOptions) -> None:
        self._words = options.tokenizer.words
        self.size = 3 * len(self.bounds)
        self.buckets = bucket_names(self.bounds)

    def _place(self, word: str, reference: collections.Counter[str]) -> int:
        """Returns the number that decides the bucket of a word of a segment."""
        raise NotImplementedError

    def statistics(self, segment: Segment) -> Row:
        words = collections.Counter(self._words(segment.hypothesis))
        best = max(
            (collections.Counter(self._words(reference)) for reference in segment.references),
            key=functools.partial(_f1, words),
        )
        table = np.zeros((len(self.bounds), 3))
        for column, counts in enumerate((words & best, words, best)):
            for word, count in counts.items():
                bucket = bisect.bisect_right(self.bounds, self._place(word, best)) - 1
                table[bucket, column] += count
        return table.ravel()

    def value(self, sums: FloatArray) -> float | None:
        return self._f1_of(sums.reshape(-1, 3).sum(axis=0))

    @staticmethod
    def _f1_of(counts: FloatArray) -> float | None:
        return ratio(2 * counts[0], counts[1] + counts[2])

    def by_bucket(self, sums: FloatArray) -> dict[str, float | None]:
        return {
            name: self._f1_of(counts) for name, counts in zip(self.buckets, sums.reshape(-1, 3))
        }

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {
            self.detail: [
                {
                    self.category: name,
                    "f1": f1,
                    "matches": int(counts[0]),
                    "output_words": int(counts[1]),
                    "reference_words": int(counts[2]),
                }
                for (name, f1), counts in zip(self.by_bucket(sums).items(), sums.reshape(-1, 3))
            ]
        }

    def own_signature(self) -> str:
        return "case:mixed|words:running, clipped"


class WordF1ByFrequency(_WordF1):
    """F1 of words, and in `details` F1 by the frequency of words in training.

    It is computed as in compare-mt (Neubig et al., 2019); see `_WordF1`. A bucket counts only its
    own words, so its precision is that of the bucket's words in the output.
    """

    needs_training_words = True
    needs_training_counts = True
    bounds = FREQUENCY_BUCKETS
    detail = "by_frequency"
    category = "seen"

    def __init__(self, options: ScoringOptions, training_words: Mapping[str, int]) -> None:
        super().__init__(options)
        self._counts = training_words

    def _place(self, word: str, reference: collections.Counter[str]) -> int:
        return self._counts.get(word, 0)


class WordF1ByLength(_WordF1):
    """F1 of words, and in `details` F1 by the length of the reference, in words.

    See `_WordF1`.
    """

    bounds = LENGTH_BUCKETS
    detail = "f1_by_length"
    category = "words"

    def _place(self, word: str, reference: collections.Counter[str]) -> int:
        return reference.total()


def _f1(one: collections.Counter[str], other: collections.Counter[str]) -> float:
    """Returns the F1 of two Counters; 1 for two empty ones."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
