"""The multigram model beside sums over all segmentations, written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.text import multigrams


def segmentations(text, longest=multigrams.LONGEST):
    """Yields all ways to cut a tuple of characters into words of at most `longest`."""
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        words, begin = [], 0
        for place, cut in enumerate((*cuts, True), 1):
            if cut:
                words.append(text[begin:place])
                begin = place
        if max(map(len, words)) <= longest:
            yield tuple(words)


def oracle(texts, alone):
    """The expected counts of words in the last round, by words as tuples; float64."""
    places = {}
    for text in texts:
        for begin, end in itertools.combinations(range(len(text) + 1), 2):
            places[text[begin:end]] = places.get(text[begin:end], 0) + 1
    allowed = {
        word
        for word, count in places.items()
        if len(word) == 1
        or (count >= multigrams.LEAST and len(word) <= 4 and not set(word) & set(alone))
    }
    number = sum(map(len, texts))
    weights = {
        word: math.prod(places[(character,)] / number for character in word) for word in allowed
    }
    counts = {}
    for _ in range(multigrams.ROUNDS):
        counts = dict.fromkeys(allowed, 0.0)
        for text in texts:
            ways = [way for way in segmentations(text) if set(way) <= allowed]
            likely = [
                math.prod(weights[w] * multigrams.LONGER ** (len(w) - 1) for w in way)
                for way in ways
            ]
            for way, share in zip(ways, likely):
                for word in way:
                    counts[word] += share / sum(likely)
        total = sum(counts.values())
        weights = {word: count / total for word, count in counts.items()}
    return counts


TEXTS = st.lists(st.text("abc", min_size=1, max_size=7).map(tuple), min_size=1, max_size=6)


@settings(max_examples=60)
@given(TEXTS, st.sampled_from(["", "a", "bc"]))
def test_the_counts_are_those_of_all_segmentations(texts, alone):
    expected = oracle(texts, alone)
    total = sum(expected.values())
    learned = multigrams.learn(texts, lambda character: character in alone)
    for word, count in expected.items():
        written = " ".join(word)
        if written in tuple(alone):
            assert written not in learned
        elif len(word) == 1:
            assert learned[written] == pytest.approx(math.log(max(count, 1) / total), abs=1e-6)
        elif abs(count - 1) > 1e-6:
            assert (written in learned) == (count > 1)
            if count > 1:
                assert learned[written] == pytest.approx(math.log(count / total), abs=1e-6)
    assert set(learned) <= {" ".join(word) for word in expected}


@given(TEXTS)
def test_each_character_is_in_one_word(texts):
    words = multigrams._possible_words(texts, lambda _: False)
    groups = list(multigrams._groups([len(text) for text in texts]))
    scores = np.linspace(-3, -1, len(words.written))
    counts = multigrams.expected_counts(scores, words.starts, groups)
    assert counts @ words.lengths == pytest.approx(sum(map(len, texts)))


def test_groups_are_small_enough(monkeypatch):
    monkeypatch.setattr(multigrams, "_PLACES", 4)
    groups = [group.tolist() for group in multigrams._groups([2, 1, 2, 2])]
    assert groups == [[[2]], [[0, 1], [3, 4]], [[5, 6]]]
    texts = [tuple("abab"), tuple("ab"), tuple("cab")]
    several = multigrams.learn(texts)
    monkeypatch.undo()
    assert several == pytest.approx(multigrams.learn(texts))


def rare_pairs():
    """Texts of many characters, each beside ten others; `x` and `y` are always side by side."""
    characters = [chr(0x4E00 + number) for number in range(1000)]
    texts = [
        (left, characters[(7 * place + step) % 1000])
        for place, left in enumerate(characters)
        for step in range(10)
    ]
    return [*texts, *((left, "x", "y", left) for left in characters[:10])]


def test_characters_that_belong_together_are_a_word():
    learned = multigrams.learn(rare_pairs())
    assert [word for word in learned if " " in word] == ["x y"]
    assert learned["x y"] == pytest.approx(math.log(10 / 20_030), abs=1e-3)
    assert len(learned) == 1003


def test_what_is_alone_is_part_of_no_word_and_left_out():
    learned = multigrams.learn(rare_pairs(), lambda character: character == "x")
    assert len(learned) == 1001 and {"x", "x y"}.isdisjoint(learned)


def test_texts_without_characters_and_no_texts():
    assert multigrams.learn([]) == multigrams.learn([(), ()]) == {}
    assert multigrams.learn([(), ("a",)]) == {"a": 0.0}


def test_no_more_than_enough_texts_are_read(monkeypatch):
    monkeypatch.setattr(multigrams, "CHARACTERS", 3)
    texts = iter([("a", "b"), ("c", "d"), ("e",)])
    assert set(multigrams.learn(texts)) == set("abcd") and next(texts) == ("e",)


def test_lines_have_the_word_and_its_logarithm():
    assert list(multigrams.lines({"b": -1.0, "a b": -2.25})) == ["a b\t-2.250000", "b\t-1.000000"]
