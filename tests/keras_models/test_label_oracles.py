"""The labels' oracles against hand-made cases."""

import numpy as np

from tests.keras_models import label_oracles


def test_longest_match_spans():
    source = "the red sox beat the blue jays and the blue sky".split()
    target = "the blue sky saw red sox beat the jays".split()
    assert label_oracles.longest_match_spans(source, target, 5) == [
        ("copy", 8, 10),
        ("generate", "saw"),
        ("copy", 1, 4),
        ("copy", 6, 6),
    ]
    # Of equal spans the first; too long ones are cut; single words are generated if spans have at
    # least two.
    assert label_oracles.longest_match_spans(source, ["the", "blue"], 5) == [("copy", 4, 5)]
    assert label_oracles.longest_match_spans(source, target[4:8], 3) == [
        ("copy", 1, 3),
        ("copy", 0, 0),
    ]
    assert label_oracles.longest_match_spans(source, ["jays", "red", "sox"], 5, 2) == [
        ("generate", "jays"),
        ("copy", 1, 2),
    ]
    assert label_oracles.longest_match_spans([], ["a"], 5) == [("generate", "a")]
    assert label_oracles.longest_match_spans(["a"], [], 5) == []


def test_spans_spell_the_target():
    rng = np.random.default_rng(5)
    for _ in range(50):
        source, target = (list(rng.choice(list("abcd"), size=rng.integers(0, 9))) for _ in range(2))
        words = []
        for segment in label_oracles.longest_match_spans(source, target, 3):
            words += (
                [segment[1]] if segment[0] == "generate" else source[segment[1] : segment[2] + 1]
            )
        assert words == target


def test_unknown_word_pointers():
    source = ["tang", "set", "a", "tang", "record"]
    assert label_oracles.unknown_word_pointers(
        source, ["a", "tang", "gong", "record"], {"a", "gold"}
    ) == [-1, 0, -1, 4]


def test_dictionary_pointers():
    source = ["the", "dog", "hound", "Rex", "dog"]
    dictionary = {"chien": ["hound", "dog"], "Rex": ["king"], "chat": ["cat"]}
    target = ["le", "chien", "Rex", "chat", "loup"]
    assert label_oracles.dictionary_pointers(source, target, {"le"}, dictionary) == [
        -1,
        2,
        3,
        -2,
        -2,
    ]
    assert label_oracles.dictionary_pointers(source, target, {"le"}, dictionary, earliest=True) == [
        -1,
        1,
        3,
        -2,
        -2,
    ]


def test_entity_pointers():
    source, target = ["Ann", "Lee", "met", "Ann", "Roe"], ["Roe", "Lee", "met", "Kim", "Ann"]
    source_ids, target_ids, pointers = label_oracles.entity_pointers(
        source, target, [True, True, False, True, True], [True, True, False, True, True]
    )
    assert (source_ids, target_ids, pointers) == (
        [1, 2, 0, 1, 3],
        [3, 2, 0, 4, 1],
        [4, 1, -1, -1, 0],
    )
    # A word that is no entity in the source is not pointed to.
    assert label_oracles.entity_pointers(["May"], ["May"], [False], [True]) == ([0], [1], [-1])
