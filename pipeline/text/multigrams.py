"""Words of text that has no spaces, learned from the text alone: a multigram model.

A text is a sequence of words, drawn one by one, and the words are not seen (Deligne and Bimbot
1995, "Language modeling by variable length sequences"):

    P(text) = sum over segmentations w_1 ... w_J of product_j p(w_j)

Expectation maximisation finds p; each round sums over all segmentations by dynamic programming.
Likelihood alone prefers long words, up to whole phrases. So while p is learned, each further
character makes a word `LONGER` times as probable (ours). Only characters that belong together then
remain words: `勉強` does, `です`, whose parts are frequent elsewhere, does not.

This module needs no TensorFlow. `multigram_ends` segments texts in a graph.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

#: In a Vocabulary artifact: a word, its characters separated by spaces; a tab; log p.
FILE = "source_multigrams.tsv"

#: The most characters of a word.
LONGEST = 4
#: What each further character of a word multiplies its probability by, in learning.
LONGER = 0.01
#: How often expectation and maximisation take turns.
ROUNDS = 10
#: How often a word must occur in the texts to be tried.
LEAST = 2
#: Texts are read until they have this many characters: more would change little.
CHARACTERS = 2_000_000

# At most this many places of texts are segmented at a time.
_PLACES = 2**20

_Ints: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float64]


class _Words(NamedTuple):
    """All words that texts may consist of.

    Attributes:
        written: their characters, separated by spaces; first those of one character.
        lengths: how many characters each has.
        starts: int `[LONGEST, places]`, the number of the word of 1, 2, ... characters that begins
            at each place of the texts, written one after the other; -1 where none does.
    """

    written: list[str]
    lengths: _Ints
    starts: _Ints


def learn(
    texts: Iterable[Sequence[str]], is_alone: Callable[[str], bool] = lambda _: False
) -> dict[str, float]:
    """Returns the words of texts, the characters separated by spaces, with log p.

    Each character is a word too. A word of several has at least one expected occurrence.

    Args:
        texts: characters of texts.
        is_alone: whether a character, such as a placeholder, is never part of a word. It is left
            out of the result.
    """
    read = list(_first(texts))
    if not read:
        return {}
    words = _possible_words(read, is_alone)
    groups = list(_groups([len(text) for text in read]))
    # At first, any segmentation is as probable as the characters: only `LONGER` decides.
    single = dict(zip(words.written, np.log(np.bincount(words.starts[0]) / words.starts.shape[1])))
    log_probs = np.array(
        [
            single[word] if length == 1 else sum(single[c] for c in word.split(" "))
            for word, length in zip(words.written, words.lengths)
        ]
    )
    counts = np.zeros(len(words.written))
    for _ in range(ROUNDS):
        scores = log_probs + (words.lengths - 1) * math.log(LONGER)
        counts = expected_counts(scores, words.starts, groups)
        with np.errstate(divide="ignore"):
            log_probs = np.log(counts / counts.sum())
    total = counts.sum()
    learned: dict[str, float] = {}
    for word, length, count in zip(words.written, words.lengths, counts):
        if length == 1 and not is_alone(word):
            # A character that is never a word is as one that is a word once.
            learned[word] = math.log(max(count, 1.0) / total)
        elif length > 1 and count >= 1.0:
            learned[word] = math.log(count / total)
    return learned


def expected_counts(scores: _Floats, starts: _Ints, groups: Iterable[_Ints]) -> _Floats:
    """Returns how often each word is expected, over all segmentations of texts.

    Args:
        scores: float `[words]`, the logarithms of words' weights. A segmentation's probability is
            proportional to the product of its words' weights.
        starts: as in `_Words`.
        groups: int `[texts, length]`, the places of texts that are equally long.

    Returns:
        float `[words]`.
    """
    # The last one is that of no word.
    scores = np.append(scores, -np.inf)
    counts = np.zeros(len(scores))
    for places in groups:
        rows, length = places.shape
        words = starts[:, places] % len(scores)
        begun = scores[words]
        before = np.full((length + 1, rows), -np.inf)
        behind = np.full((length + 1, rows), -np.inf)
        before[0] = behind[length] = 0.0
        for end in range(1, length + 1):
            for size in range(1, min(LONGEST, end) + 1):
                before[end] = np.logaddexp(
                    before[end], before[end - size] + begun[size - 1, :, end - size]
                )
        for start in range(length - 1, -1, -1):
            for size in range(1, min(LONGEST, length - start) + 1):
                behind[start] = np.logaddexp(
                    behind[start], begun[size - 1, :, start] + behind[start + size]
                )
        for size in range(1, min(LONGEST, length) + 1):
            ends = length + 1 - size
            shares = before[:ends] + begun[size - 1, :, :ends].T + behind[size:] - before[length]
            counts += np.bincount(
                words[size - 1, :, :ends].T.ravel(), np.exp(shares).ravel(), len(counts)
            )
    return counts[:-1]


def lines(words: dict[str, float]) -> Iterator[str]:
    """Yields the lines of `FILE`, by word."""
    for word, log_prob in sorted(words.items()):
        yield f"{word}\t{log_prob:.6f}"


def _first(texts: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yields texts that have characters, until they have `CHARACTERS` together."""
    characters = 0
    for text in texts:
        if text:
            yield text
        characters += len(text)
        if characters >= CHARACTERS:
            return


def _possible_words(texts: Sequence[Sequence[str]], is_alone: Callable[[str], bool]) -> _Words:
    """Finds the words that occur often enough."""
    numbers: dict[str, int] = {}
    characters = np.array([numbers.setdefault(c, len(numbers)) for text in texts for c in text])
    written = list(numbers)
    alone = np.array([is_alone(c) for c in written])[characters]
    lengths = np.array([len(text) for text in texts])
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(characters))
    starts = np.full((LONGEST, len(characters)), -1, dtype=np.int64)
    starts[0] = characters
    of_lengths = [np.ones(len(written), dtype=np.int64)]
    for size in range(2, LONGEST + 1):
        # A frequent word begins with one that is as frequent at least.
        places = np.flatnonzero((starts[size - 2] >= 0) & (left >= size))
        ends = places + size - 1
        places = places[~alone[places] & ~alone[ends]]
        ends = places + size - 1
        keys = starts[size - 2, places] * len(numbers) + characters[ends]
        chosen, word, counts = np.unique(keys, return_inverse=True, return_counts=True)
        frequent = counts >= LEAST
        number = np.where(frequent, len(written) + np.cumsum(frequent) - 1, -1)
        starts[size - 1, places] = number[word]
        prefixes, last = np.divmod(chosen[frequent], len(numbers))
        written += [f"{written[prefix]} {written[end]}" for prefix, end in zip(prefixes, last)]
        of_lengths.append(np.full(len(prefixes), size))
    return _Words(written, np.concatenate(of_lengths), starts)


def _groups(lengths: Sequence[int]) -> Iterator[_Ints]:
    """Yields the places of equally long texts, `[texts, length]`, few enough at a time."""
    of_texts = np.array(lengths)
    begins = np.cumsum(of_texts) - of_texts
    for length in np.unique(of_texts):
        rows = max(_PLACES // int(length), 1)
        of_length = begins[of_texts == length]
        for first in range(0, len(of_length), rows):
            yield of_length[first : first + rows, None] + np.arange(length)
