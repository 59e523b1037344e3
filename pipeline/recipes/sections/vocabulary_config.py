"""The section `vocabulary`."""

import dataclasses

from pipeline.recipes.fields import number


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """Word vocabularies of the two sides; protected tokens count as words."""

    # The most words of the source vocabulary, special tokens included.
    source_size: int = number(8000, low=16)
    # The most words of the target vocabulary, special tokens included.
    target_size: int = number(8000, low=16)
    # Rarer words are unknown, hence copied.
    min_count: int = number(2, low=1)
    # The same for placeholders, tags, URLs and options.
    protected_min_count: int = number(20, low=1)
    # Counts both sides together, for languages that are one.
    joint: bool = False
    # Where `data.units` are not words: how many pieces the model of a side has, 256 bytes among
    # them. Each may begin or continue a word, so a vocabulary may have up to twice as many entries.
    pieces: int = number(4000, low=300)
    # Where `model.composition` reads the characters of source words: how many characters have an
    # id, and how often each must occur.
    characters: int = number(4000, low=16)
    # How often a character must occur to have an id.
    character_min_count: int = number(2, low=1)
