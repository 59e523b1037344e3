"""New pairs by exchanged entities, whatever the words."""

import itertools
import random

from hypothesis import given, strategies

from pipeline.lexicons.recombination import (
    EXCHANGED,
    Mention,
    MentionFinder,
    inventory_of,
    recombine,
    type_of,
)

PHRASES = {
    "denver": "denver:_ci",
    "new york": "new_york:_ci",
    "new york city": "new_york:_ci",
    "york": "york:_ci",
    "boston": "boston:_ci",
    "monday": "monday:_da",
    "mondays": "monday:_da",
    "friday": "friday:_da",
    "nonstop": "nonstop",
}
INVENTORY = inventory_of([((entity, phrase), 1) for phrase, entity in PHRASES.items()])
FINDER = MentionFinder(PHRASES)
WORDS = ["denver", "new", "york", "city", "boston", "monday", "mondays", "friday", "nonstop", "to"]
TARGET_WORDS = ["(", "_to", ")", *sorted(set(PHRASES.values()))]
texts = strategies.lists(strategies.sampled_from(WORDS), max_size=9)
targets = strategies.lists(strategies.sampled_from(TARGET_WORDS), max_size=9)


def test_the_type_stands_behind_the_last_colon():
    assert [type_of(text) for text in ("denver:_ci", "a:b:_ti", "nonstop", "", ":")] == [
        "_ci",
        "_ti",
        "",
        "",
        "",
    ]


def test_the_longest_phrase_of_an_entity_of_the_target_is_found():
    source = "to new york city and york on mondays nonstop".split()
    target = ["new_york:_ci", "monday:_da", "denver:_ci", "nonstop"]
    assert list(FINDER.find(source, target)) == [
        Mention("new_york:_ci", 1, 3),
        Mention("monday:_da", 7, 1),
        Mention("nonstop", 8, 1),
    ]
    # What the target lacks is an ordinary word.
    assert list(FINDER.find(source, ["york:_ci"])) == [
        Mention("york:_ci", 2, 1),
        Mention("york:_ci", 5, 1),
    ]
    assert list(FINDER.find([], target)) == list(MentionFinder({}).find(source, target)) == []


@given(texts, targets)
def test_mentions_are_phrases_of_the_target_and_do_not_overlap(source, target):
    end = 0
    for entity, start, length in FINDER.find(source, target):
        assert start >= end and length > 0 and entity in target
        assert PHRASES[" ".join(source[start : start + length])] == entity
        end = start + length
    assert end <= len(source)


@given(texts, targets, strategies.integers(0, 5))
def test_a_new_pair_is_the_old_one_with_other_entities(source, target, seed):
    mentions = list(FINDER.find(source, target))
    made = recombine(source, target, mentions, INVENTORY, random.Random(seed))
    if made is None:
        return
    assert recombine(source, target, mentions, INVENTORY, random.Random(seed)) == made
    new_target = made[1].split()
    # One entity for one, of its type, the same wherever it stands, and never two for one.
    exchanged = dict(zip(target, new_target))
    assert new_target == [exchanged[word] for word in target] and len(new_target) == len(target)
    assert len(set(exchanged.values())) == len(exchanged)
    changed = {old: new for old, new in exchanged.items() if old != new}
    assert changed and all(type_of(old) == type_of(new) != "" for old, new in changed.items())
    # In the source, only the phrases of exchanged entities differ.
    parts, end = [], 0
    for entity, start, length in mentions:
        phrase = " ".join(source[start : start + length])
        phrases = [p for p, named in PHRASES.items() if named == changed.get(entity)] or [phrase]
        parts += [[word] for word in source[end:start]] + [phrases]
        end = start + length
    parts += [[word] for word in source[end:]]
    assert made[0] in {" ".join(words) for words in itertools.product(*parts)}


def test_nothing_to_exchange_is_no_pair():
    generator = random.Random(1)
    for source, target in ((["to"], ["_to"]), ([], []), (["nonstop"], ["nonstop"])):
        mentions = list(FINDER.find(source, target))
        for _ in range(20):
            assert recombine(source, target, mentions, INVENTORY, generator) is None
    # All cities are in the target already.
    cities = [choice.entity for choice in INVENTORY["_ci"]]
    mentions = [Mention("denver:_ci", 0, 1)]
    assert recombine(["denver"], cities, mentions, INVENTORY, generator) is None


def test_what_is_drawn_follows_the_counts():
    """An entity is exchanged with the stated probability, for each other one alike; its phrases
    come as often as they were seen.
    """
    counts = [("a:_c", "a", 1), ("b:_c", "b", 3), ("b:_c", "bb", 1), ("c:_c", "c", 8)]
    inventory = inventory_of([((entity, phrase), count) for entity, phrase, count in counts])
    generator = random.Random(1)
    made = [
        recombine(["a"], ["a:_c"], [Mention("a:_c", 0, 1)], inventory, generator)
        for _ in range(4000)
    ]
    shares = {pair: made.count(pair) / 4000 for pair in set(made)}
    expected = {
        None: 1 - EXCHANGED,
        ("b", "b:_c"): EXCHANGED / 2 * 3 / 4,
        ("bb", "b:_c"): EXCHANGED / 2 / 4,
        ("c", "c:_c"): EXCHANGED / 2,
    }
    assert shares.keys() == expected.keys()
    assert all(abs(shares[pair] - share) < 0.03 for pair, share in expected.items())


def test_an_inventory_does_not_depend_on_the_order():
    counts = [((entity, phrase), place) for place, (phrase, entity) in enumerate(PHRASES.items())]
    assert inventory_of(reversed(counts)) == inventory_of(counts)
    assert "" not in inventory_of(counts)
