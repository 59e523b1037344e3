"""New training pairs from those that there are: their entities, exchanged for others.

Source: Jia and Liang 2016, "Data Recombination for Neural Semantic Parsing", their strategy
"Abstracting Entities". They draw from a grammar; here each pair is drawn anew a fixed number of
times, so every pair stays as frequent among the new ones as it was. Plain Python.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

#: How probable it is that an entity is exchanged. The others stay where they were seen.
EXCHANGED = 0.75


class Mention(NamedTuple):
    """A phrase of a source that stands for an entity of its target.

    Attributes:
        entity: the token of the target.
        start, length: the words of the source.
    """

    entity: str
    start: int
    length: int


class Choice(NamedTuple):
    """An entity that may take another's place.

    Attributes:
        entity: the token of targets.
        phrases: what stands for it in sources.
        counts: how often each phrase does.
    """

    entity: str
    phrases: list[str]
    counts: list[int]


#: From a type of entities to those of the training pairs.
Inventory: TypeAlias = Mapping[str, Sequence[Choice]]


def type_of(entity: str) -> str:
    """Returns what stands behind an entity's last colon, as `_ci` of `denver:_ci`; or ""."""
    _, colon, kind = entity.rpartition(":")
    return kind if colon else ""


class MentionFinder:
    """Finds what a copy lexicon explains in a pair."""

    def __init__(self, phrases: Mapping[str, str]) -> None:
        """Takes the phrases, words separated by spaces, with the entity that each stands for."""
        self._phrases = dict(phrases)
        self._longest = max((phrase.count(" ") + 1 for phrase in phrases), default=0)

    def find(self, source: Sequence[str], target: Sequence[str]) -> Iterator[Mention]:
        """Yields the mentions from left to right, the longest phrase at each place.

        Args:
            source, target: the words of a pair.

        Yields:
            Mentions of entities that the target has; none overlap.
        """
        wanted = set(target)
        start = 0
        while start < len(source):
            step = 1
            for length in range(min(self._longest, len(source) - start), 0, -1):
                entity = self._phrases.get(" ".join(source[start : start + length]))
                if entity is not None and entity in wanted:
                    yield Mention(entity, start, length)
                    step = length
                    break
            start += step


def inventory_of(counts: Iterable[tuple[tuple[str, str], int]]) -> Inventory:
    """Returns the entities that may take each other's place.

    Args:
        counts: ((entity, phrase), how often), each once, in any order. Entities without a type
            (`type_of`) are left out.
    """
    inventory: dict[str, dict[str, dict[str, int]]] = {}
    for (entity, phrase), count in sorted(counts):
        if kind := type_of(entity):
            inventory.setdefault(kind, {}).setdefault(entity, {})[phrase] = count
    return {
        kind: [
            Choice(entity, list(phrases), list(phrases.values()))
            for entity, phrases in entities.items()
        ]
        for kind, entities in inventory.items()
    }


def recombine(
    source: Sequence[str],
    target: Sequence[str],
    mentions: Sequence[Mention],
    inventory: Inventory,
    generator: random.Random,
) -> tuple[str, str] | None:
    """Returns a pair with other entities on both sides.

    An entity is exchanged for another of its type, the same one wherever it stands. Its phrase is
    drawn by how often the training pairs have it. No two entities become one.

    Args:
        source, target: the words of a pair.
        mentions: those of the pair, as `MentionFinder` yields them.
        inventory: the entities to draw from.
        generator: draws.

    Returns:
        (source, target), words separated by single spaces; None if nothing was exchanged.
    """
    taken = set(target)
    exchanged: dict[str, Choice] = {}
    for entity in dict.fromkeys(mention.entity for mention in mentions):
        others = [
            choice for choice in inventory.get(type_of(entity), ()) if choice.entity not in taken
        ]
        if others and generator.random() < EXCHANGED:
            exchanged[entity] = generator.choice(others)
            taken.add(exchanged[entity].entity)
    if not exchanged:
        return None
    words: list[str] = []
    end = 0
    for entity, start, length in mentions:
        if entity in exchanged:
            choice = exchanged[entity]
            (phrase,) = generator.choices(choice.phrases, choice.counts)
            words += [*source[end:start], phrase]
            end = start + length
    words += source[end:]
    entities = {entity: choice.entity for entity, choice in exchanged.items()}
    return " ".join(words), " ".join(entities.get(word, word) for word in target)
