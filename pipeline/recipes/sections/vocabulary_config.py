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
    # Words that occur less often in the training text are unknown, so the model copies them.
    min_count: int = number(2, low=1)
    # The same for placeholders, tags, URLs and options.
    protected_min_count: int = number(20, low=1)
    # Counts the words of both sides together, for sides in one language.
    joint: bool = False
    # If `data.units` are not words: the number of pieces of each side's model, which include 256
    # bytes. A piece may begin or continue a word, so a vocabulary may have up to twice as many
    # entries.
    pieces: int = number(4000, low=300)
    # If `model.composition` reads the characters of source words: the most characters that have an
    # id.
    characters: int = number(4000, low=16)
    # The least number of times that a character must occur to have an id.
    character_min_count: int = number(2, low=1)
