"""How well words come out:
rare ones, and all by how often training saw them and by the length of their sentence.
"""

import bisect
import collections
import functools

import numpy as np

from pipeline.metrics.base import DEFAULT_SEED, Metric, Share, join_signature, ratio, share_or_one
from pipeline.metrics.buckets import FREQUENCY_BUCKETS, LENGTH_BUCKETS, bucket_names
from pipeline.text.tokenization import Tokenizer

#: Words that training saw less often are rare (Arthur et al., 2016).
RARE_BELOW = 8


class RareWordRecall(Share):
    """Share of the references' rare words that the outputs hold;
    rare is what training saw less than 8 times.

        sum over segments and rare words w of min(count of w in output, count in reference)
        / sum over segments and rare words w of count in reference

    Rare words and their recall are as in Arthur et al. (2016), where the count is that of the
    target side. Words and protected tokens count, punctuation does not. Of several references a
    segment takes the one with the largest share, of those that hold a rare word.
    """

    counted = ("n", "found")
    needs_training_words = True
    needs_training_counts = True
    always_defined = False

    def __init__(self, training_words=None, tokenization="text", **unused):
        self._counts = training_words
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        found = collections.Counter(self._words(hypothesis))
        shares = []
        for reference in references:
            rare = collections.Counter(
                word for word in self._words(reference) if self._counts.get(word, 0) < RARE_BELOW
            )
            if rare:
                shares.append([(found & rare).total(), rare.total()])
        return max(shares, key=share_or_one, default=[0, 0])

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature(
            f"case:mixed|rare:<{RARE_BELOW}|words:running, clipped", samples, seed, references
        )


class _WordF1(Metric):
    """F1 of words, and in `details` the same for buckets of words.

        precision = matches / output words, recall = matches / reference words, F1 = their harmonic
        mean matches = sum over segments and words w of min(count of w in output, count in
        reference)

    Words and protected tokens count, punctuation does not. Of several references a segment takes
    the one with the best F1 of all words.
    """

    unit = "share"
    always_defined = False
    bounds = None  # where the buckets begin
    detail, category = (
        "",
        "",
    )  # what the list in `details`, and the name of a bucket in it, are called

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words
        self.size = 3 * len(self.bounds)
        self.buckets = bucket_names(self.bounds)

    def _place(self, word, reference):
        """Returns what decides the bucket of a word of a segment whose reference is a Counter of
        words.
        """
        raise NotImplementedError

    def statistics(self, hypothesis, references, source):
        found = collections.Counter(self._words(hypothesis))
        best = max(
            (collections.Counter(self._words(reference)) for reference in references),
            key=functools.partial(_f1, found),
        )
        table = np.zeros((len(self.bounds), 3))
        for column, counts in enumerate((found & best, found, best)):
            for word, count in counts.items():
                table[bisect.bisect_right(self.bounds, self._place(word, best)) - 1, column] += (
                    count
                )
        return table.ravel()

    def value(self, sums):
        return self._f1_of(sums.reshape(-1, 3).sum(axis=0))

    @staticmethod
    def _f1_of(counts):
        return ratio(2 * counts[0], counts[1] + counts[2])

    def by_bucket(self, sums):
        return {
            name: self._f1_of(counts) for name, counts in zip(self.buckets, sums.reshape(-1, 3))
        }

    def details(self, sums):
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

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature("case:mixed|words:running, clipped", samples, seed, references)


class WordF1ByFrequency(_WordF1):
    """F1 of words, and in `details` the same for words of like frequency in training (Neubig et
    al., 2019, compare-mt).

    See `_WordF1`. A bucket counts only its own words, so precision is of the bucket's words in the
    output.
    """

    needs_training_words = True
    needs_training_counts = True
    bounds, detail, category = FREQUENCY_BUCKETS, "by_frequency", "seen"

    def __init__(self, training_words=None, **options):
        super().__init__(**options)
        self._counts = training_words

    def _place(self, word, reference):
        return self._counts.get(word, 0)


class WordF1ByLength(_WordF1):
    """F1 of words, and in `details` the same for segments of like reference length, in words;
    see `_WordF1`.
    """

    bounds, detail, category = LENGTH_BUCKETS, "f1_by_length", "words"

    def _place(self, word, reference):
        return reference.total()


def _f1(one, other):
    """Returns the F1 of two Counters; 1 for two empty ones."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
