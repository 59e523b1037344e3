"""The text that all programs read: line-aligned files, equal vocabularies, equal rounds."""

import collections
import pathlib
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from benchmarks.peers.job import Job

LANGUAGES = ("en", "ja")

#: A source and its target, tokens separated by spaces.
Pair: TypeAlias = tuple[str, str]


def read(folder: str | pathlib.Path, split: str) -> list[Pair]:
    """Returns the pairs of a split, a list of (source, target), tokenized with spaces."""
    texts = [
        (pathlib.Path(folder) / f"{split}.{language}").read_text(encoding="utf-8")
        for language in LANGUAGES
    ]
    sources, targets = (text.splitlines() for text in texts)
    return list(zip(sources, targets))


def training_pairs(pairs: Sequence[Pair], job: Job) -> tuple[Sequence[Pair], Sequence[Pair]]:
    """Returns the pairs to train on, and those to evaluate by after each pass."""
    return pairs[: job.training_batch * job.updates], pairs[-job.training_batch :]


def held_out(pairs: Sequence[Pair], every: int) -> tuple[list[Pair], list[Pair]]:
    """Returns every Nth pair, from the first one on, and the others."""
    return list(pairs[::every]), [pair for number, pair in enumerate(pairs) if number % every]


def frequent_words(lines: Iterable[str], count: int) -> list[str]:
    """Returns the most frequent words of some lines, by falling count, then by code point.

    Where there are fewer, words that occur nowhere fill up the number, so that all sizes equal the
    job's.
    """
    counts = collections.Counter(word for line in lines for word in line.split())
    words = sorted(counts, key=lambda word: (-counts[word], word))[:count]
    return words + [f"unused{number}" for number in range(count - len(words))]


def sentences(pairs: Sequence[Pair], count: int) -> list[int]:
    """Returns the indices of the pairs that a round decodes, short sources first.

    These are the first `count` pairs, repeated if there are fewer. All programs get them in this
    order, so batches hold the same sentences everywhere.
    """
    chosen = [number % len(pairs) for number in range(count)]
    return sorted(chosen, key=lambda number: len(pairs[number][0].split()))
