"""How faithfully the source's tokens were copied, and how much was."""

import collections
import itertools

from pipeline.metrics.base import DEFAULT_SEED, Metric, Share, join_signature, ratio
from pipeline.text.tokenization import Tokenizer


class Fidelity(Metric):
    """Share of the outputs that hold exactly the source's tokens of one kind, each as often as the
    source does.

    The share is over the segments whose source holds at least one; `details` has it over all
    segments too, where a token that the output invented counts as broken. Order does not matter:
    languages order things differently.
    """

    size = 4
    unit = "share"
    needs_sources = True
    always_defined = False

    def __init__(self, kind, tokenization="text", **unused):
        tokenizer = Tokenizer(tokenization)
        self._find = {
            "placeholders": tokenizer.placeholders,
            "protected": tokenizer.protected_tokens,
        }[kind]
        self._kind = kind

    def statistics(self, hypothesis, references, source):
        wanted = collections.Counter(self._find(source))
        kept = collections.Counter(self._find(hypothesis)) == wanted
        return [bool(wanted) and kept, bool(wanted), kept, 1]

    def value(self, sums):
        return ratio(sums[0], sums[1])

    def details(self, sums):
        return {
            "n": int(sums[1]),
            "broken": int(sums[1] - sums[0]),
            "all_segments": ratio(sums[2], sums[3]),
            "all_n": int(sums[3]),
            "invented": int((sums[3] - sums[1]) - (sums[2] - sums[0])),
        }

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature(f"tokens:{self._kind}|equal:multiset", samples, seed, references)


class UnseenCopies(Share):
    """Share of the unseen words to be copied that were copied.

    A word (or protected token) is one to be copied if it stands in the source and in a reference
    and was seen in training on neither side; it was copied if it stands in the output. Each counts
    once a segment.
    """

    counted = ("n", "copied")
    needs_sources = True
    needs_training_words = True
    always_defined = False

    def __init__(self, training_words=frozenset(), tokenization="text", **unused):
        self._training_words = training_words
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        shared = set(self._words(source)).intersection(
            itertools.chain(*map(self._words, references))
        )
        unseen = {word for word in shared if word not in self._training_words}
        return [len(unseen.intersection(self._words(hypothesis))) if unseen else 0, len(unseen)]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature("case:mixed|words:distinct per segment", samples, seed, references)


class CopyRate(Share):
    """Share of the output's words that stand in the source:
    how much a system copies, rightly or not.

        sum over segments of |{i: output_i in source}| / sum over segments of output words

    Words and protected tokens count, punctuation does not. Neither high nor low is good in itself:
    compare it with the references' own.
    """

    counted = ("words", "in_source")
    needs_sources = True
    always_defined = False

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        found, offered = self._words(hypothesis), set(self._words(source))
        return [sum(word in offered for word in found), len(found)]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature("case:mixed|words:running", samples, seed, references)


class CopyPrecision(Share):
    """Share of the output's words that stand in the source which a reference holds too:
    how much of the copying is right.

        sum over segments and words w of the source of min(count in output, count in reference)
        / the same sum of counts in output

    Words and protected tokens count, punctuation does not. Of several references a segment takes
    the one with most of them.
    """

    counted = ("copied", "in_reference")
    needs_sources = True
    always_defined = False

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        offered = set(self._words(source))
        copied = collections.Counter(word for word in self._words(hypothesis) if word in offered)
        right = (copied & collections.Counter(self._words(reference)) for reference in references)
        return [max(sum(words.values()) for words in right), sum(copied.values())]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature("case:mixed|words:running, clipped", samples, seed, references)
