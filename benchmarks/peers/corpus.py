"""The text that all programs read:
line-aligned files, a vocabulary of the same size for each, the sentences of a round.
"""

import collections
import pathlib

LANGUAGES = ("en", "ja")


def read(folder, split):
    """Returns the pairs of a split, a list of (source, target), tokenized with spaces."""
    texts = [
        (pathlib.Path(folder) / f"{split}.{language}").read_text(encoding="utf-8")
        for language in LANGUAGES
    ]
    return list(zip(*(text.splitlines() for text in texts)))


def training_pairs(pairs, job):
    """Returns the pairs that every program trains on, and those that it is evaluated by after each
    pass.
    """
    return pairs[: job.training_batch * job.updates], pairs[-job.training_batch :]


def frequent_words(lines, count):
    """Returns the most frequent words of some lines, by falling count, then by code point.

    Where there are fewer, words that stand nowhere fill up the number: sizes shall be equal, and
    equal to the job's.
    """
    counts = collections.Counter(word for line in lines for word in line.split())
    words = sorted(counts, key=lambda word: (-counts[word], word))[:count]
    return words + [f"unused{number}" for number in range(count - len(words))]


def sentences(pairs, count):
    """Returns the indices of the pairs that a round decodes:
    the first so many, repeated if there are fewer, short sources first.

    All programs get them in this order, so batches hold the same sentences everywhere.
    """
    chosen = [number % len(pairs) for number in range(count)]
    return sorted(chosen, key=lambda number: len(pairs[number][0].split()))
