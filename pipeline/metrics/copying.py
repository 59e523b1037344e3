"""How faithfully, and how often, the source's tokens were copied."""

import collections
import itertools
from collections.abc import Sequence
from typing import Any

from pipeline.metrics import tag_validity
from pipeline.metrics.base import DenseMetric, FloatArray, Row, Share, ratio
from pipeline.metrics.scored_texts import Segment, TrainingWords
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.text import units


class Fidelity(DenseMetric):
    """Share of the outputs that hold exactly the source's tokens of one kind.

    An output must have each as often as its source, and unnumbered directives (`%s`, `{}`) in its
    order: they take the arguments in turn. Others may move, because languages order things
    differently; of all protected tokens tags must be valid too, see `TagValidity`. The share is
    over the segments whose source holds at least one; `details` has it over all segments too, where
    a token that the output invented counts as broken.
    """

    size = 4
    unit = "share"
    needs_sources = True
    always_defined = False

    def __init__(self, kind: str, options: ScoringOptions) -> None:
        tokenizer = options.tokenizer
        self._find = {
            "placeholders": tokenizer.placeholders,
            "protected": tokenizer.protected_tokens,
        }[kind]
        self._kind = kind
        self._tokenizer = tokenizer

    def statistics(self, segment: Segment) -> Row:
        tokens, found = self._find(segment.source), self._find(segment.hypothesis)
        is_faithful = collections.Counter(found) == collections.Counter(tokens) and (
            tag_validity.ordered_directives(found) == tag_validity.ordered_directives(tokens)
        )
        if is_faithful and self._kind == "protected":
            is_faithful = tag_validity.keeps_tags(
                self._tokenizer.marked_tokens(segment.source),
                self._tokenizer.marked_tokens(segment.hypothesis),
            )
        return [bool(tokens) and is_faithful, bool(tokens), is_faithful, 1]

    def value(self, sums: FloatArray) -> float | None:
        return ratio(sums[0], sums[1])

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {
            "n": int(sums[1]),
            "broken": int(sums[1] - sums[0]),
            "all_segments": ratio(sums[2], sums[3]),
            "all_n": int(sums[3]),
            "invented": int((sums[3] - sums[1]) - (sums[2] - sums[0])),
        }

    def own_signature(self) -> str:
        tags = ", tags valid" if self._kind == "protected" else ""
        return f"tokens:{self._kind}|equal:multiset, directives in order{tags}"


class UnseenCopies(Share):
    """Share of the unseen words to be copied that were copied.

    A word (or protected token) is to be copied if it occurs in the source and in a reference and
    training saw it on neither side; it was copied if it occurs in the output. Each counts once per
    segment.
    """

    cuts_words = True
    counted = ("n", "copied")
    needs_sources = True
    needs_training_words = True
    always_defined = False

    def __init__(self, options: ScoringOptions, training_words: TrainingWords) -> None:
        self._training_words = training_words
        self._words = options.tokenizer.words

    def statistics(self, segment: Segment) -> Row:
        shared = set(self._words(segment.source)).intersection(
            itertools.chain(*map(self._words, segment.references))
        )
        unseen = {word for word in shared if word not in self._training_words}
        copied = unseen.intersection(self._words(segment.hypothesis)) if unseen else ()
        return [len(copied), len(unseen)]

    def own_signature(self) -> str:
        return "case:mixed|words:distinct per segment"


class CopyRate(Share):
    """Share of the output's words that occur in the source: how much a system copies.

        sum over segments of |{i: output_i in source}| / sum over segments of output words

    Words and protected tokens count, punctuation does not. Neither high nor low is good in itself:
    compare it with the references' own.
    """

    cuts_words = True
    counted = ("words", "in_source")
    needs_sources = True
    always_defined = False

    def __init__(self, options: ScoringOptions) -> None:
        self._words = options.tokenizer.words

    def statistics(self, segment: Segment) -> Row:
        words, in_source = self._words(segment.hypothesis), set(self._words(segment.source))
        return [sum(word in in_source for word in words), len(words)]

    def own_signature(self) -> str:
        return "case:mixed|words:running"


class CopyPrecision(Share):
    """Share of the output's words from the source that also occur in a reference.

    It measures how much of the copying is right.

        sum over segments and words w of the source of min(count in output, count in reference)
        / the same sum of counts in output

    Words and protected tokens count, punctuation does not. Of several references a segment takes
    the one with most of them.
    """

    cuts_words = True
    counted = ("copied", "in_reference")
    needs_sources = True
    always_defined = False

    def __init__(self, options: ScoringOptions) -> None:
        self._words = options.tokenizer.words

    def statistics(self, segment: Segment) -> Row:
        in_source = set(self._words(segment.source))
        copied = collections.Counter(
            word for word in self._words(segment.hypothesis) if word in in_source
        )
        right = (
            copied & collections.Counter(self._words(reference)) for reference in segment.references
        )
        return [max(sum(words.values()) for words in right), sum(copied.values())]

    def own_signature(self) -> str:
        return "case:mixed|words:running, clipped"


def words_begun_by_copies(
    tokens: Sequence[str], copied_from: Sequence[int], source_tokens: Sequence[str]
) -> tuple[int, int]:
    """Counts the words of an output that began with a copy, and those that are the source's word.

    It needs the provenance of an answer. Words are of units: a word counts if its first unit was
    copied from the first unit of a source word, and one of the two words has several units.
    Whether unseen words arrived whole, `unseen_copies` tells from texts alone.

    Args:
        tokens: the output's units.
        copied_from: the source position of each, -1 for none.
        source_tokens: the source's units.

    Returns:
        How many words began with a copy, and how many of these equal the source's word.
    """
    begun, whole = 0, 0
    for place, position in enumerate(copied_from[: len(tokens)]):
        if position < 0 or units.continues(tokens[place]):
            continue
        word = _word_at(tokens, place)
        copied = _word_at(source_tokens, position)
        if not units.continues(source_tokens[position]) and len(word) + len(copied) > 2:
            begun += 1
            whole += word == copied
    return begun, whole


def _word_at(tokens: Sequence[str], place: int) -> list[str]:
    """Returns the unit at a place and those that continue it."""
    rest = itertools.takewhile(units.continues, tokens[place + 1 :])
    return [tokens[place], *rest]
