"""The steps of Beam that make new training pairs (`data.recombinations`)."""

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import apache_beam as beam

from components.untyped_in_beam import untyped_in_beam
from pipeline.lexicons.dictionaries import read_copy_lexicon
from pipeline.lexicons.recombination import (
    Inventory,
    Mention,
    MentionFinder,
    inventory_of,
    recombine,
)
from pipeline.readers.splits import normalize_source
from pipeline.recipes.sections import DataConfig
from pipeline.text.tokenization import Tokenizer

#: A pair of a split, as a plain tuple: (source, target, file, line, features).
DividedPair: TypeAlias = tuple[str, str, str, int, tuple[str, ...]]


class Recombine(beam.PTransform):
    """Training pairs to new ones, with the file and line of the pair that they are made of.

    A new pair is left out if another split has its source, or if it is too long. What is drawn
    depends on `data.split_salt` and the training pairs alone, not on the order of work.
    """

    def __init__(self, config: DataConfig, held_out: Iterable[beam.PCollection]) -> None:
        """Takes the data section, and the pairs of the other splits.

        Raises:
            pipeline.readers.DataError: `data.copy_lexicon` cannot be read.
        """
        super().__init__()
        self._config = config
        self._held_out = tuple(held_out)
        tokenizer = Tokenizer.of(config)
        self._phrases = read_copy_lexicon(config.copy_lexicon, tokenizer).phrases

    @untyped_in_beam
    def expand(self, pairs: beam.PCollection) -> beam.PCollection:
        """Builds the graph; see the class."""
        inventory = (
            pairs
            | "Mentions" >> beam.ParDo(_Mentions(self._config, self._phrases))
            | "CountMentions" >> beam.combiners.Count.PerElement()
            | "ListMentions" >> beam.combiners.ToList()
            | "Inventory" >> beam.Map(inventory_of)
        )
        held_out = (
            self._held_out
            | "HeldOut" >> beam.Flatten()
            | "HeldOutSources" >> beam.Map(lambda pair: (normalize_source(pair[0]), True))
        )
        return pairs | "NewPairs" >> beam.ParDo(
            _NewPairs(self._config, self._phrases),
            beam.pvalue.AsSingleton(inventory),
            beam.pvalue.AsDict(held_out),
        )


class _Pairs(beam.DoFn):
    """Reads the words and the mentions of pairs."""

    def __init__(self, config: DataConfig, phrases: Mapping[str, str]) -> None:
        super().__init__()
        self._config = config
        self._phrases = phrases

    def setup(self) -> None:
        """Makes what finds the mentions."""
        self._tokenizer = Tokenizer.of(self._config)
        self._finder = MentionFinder(self._phrases)

    def _read(self, pair: DividedPair) -> tuple[list[str], list[str], list[Mention]]:
        source, target = (self._tokenizer.normalize(text).split() for text in pair[:2])
        return source, target, list(self._finder.find(source, target))


class _Mentions(_Pairs):
    """A pair to (entity, phrase)."""

    @untyped_in_beam
    def process(self, pair: DividedPair) -> Iterator[tuple[str, str]]:
        """Yields the mentions of a pair."""
        source, _, mentions = self._read(pair)
        for entity, start, length in mentions:
            yield entity, " ".join(source[start : start + length])


class _NewPairs(_Pairs):
    """A pair to new ones."""

    @untyped_in_beam
    def process(
        self, pair: DividedPair, inventory: Inventory, held_out: Mapping[str, bool]
    ) -> Iterator[DividedPair]:
        """Yields the new pairs of one."""
        source, target, mentions = self._read(pair)
        config = self._config
        for number in range(config.recombinations if mentions else 0):
            generator = random.Random("\0".join([config.split_salt, *pair[:2], str(number)]))
            made = recombine(source, target, mentions, inventory, generator)
            if made is None or normalize_source(made[0]) in held_out:
                continue
            if all(
                len(text) <= config.max_characters
                and self._tokenizer.count(text) <= config.max_tokens
                for text in made
            ):
                yield (*made, *pair[2:])
