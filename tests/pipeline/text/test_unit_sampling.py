"""Cuts of words that are drawn: their chances, what they join to, and the best one."""

import functools
import math

import numpy as np
import pytest

from pipeline.text import tokenization, units
from pipeline.text.unit_sampling import UnitSampler
from tests.pipeline.text.test_units import PIECES

WORDS = [
    *("nation", "nations", "national", "internation", "inter", "ration", "rational", "station"),
    *("stations", "ion", "ions", "tion", "nat", "rat", "all", "sat", "satin", "rain", "alien"),
]
WORD = "internationally"


@functools.cache
def model():
    from components.subwords.executor import train

    return train({word: len(WORDS) - place for place, word in enumerate(WORDS)}, "subwords", 292)


def sampler(**options):
    options = {"vocabulary": units.possible_units(model()), **options}
    return UnitSampler(model(), tokenization.Tokenizer().syntax, **options)


def unmarked(cut):
    """The text of a cut whose bytes are put together."""
    joined = "".join(cut).replace(tokenization.JOINER, "")
    parts = [
        bytes([int(part[3:5], 16)]) + part[6:].encode() if part.startswith("<0x") else part.encode()
        for part in joined.replace("<0x", "\0<0x").split("\0")
    ]
    return b"".join(parts).decode()


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_the_best_cut_is_that_of_the_graph(kind):
    import tensorflow as tf

    made = units.SegmentingTokenizer(tokenization.Tokenizer(kind), model())
    texts = tf.constant([" ".join(PIECES), *PIECES, "\t x  y", "%(name)s-nation"])
    words = made.words(texts)
    flat = [word.decode() for word in words.flat_values.numpy()]
    for best in (1, 8):
        cutting = sampler(best=best)
        found = [cutting.cuts(word)[0][0] for word in flat]
        assert [unit for cut in found for unit in cut] == [
            unit.decode() for unit in made.tokenize(texts).flat_values.numpy()
        ]


def all_cuts(word, scores):
    """All ways to cut a word into known pieces, with their log-probabilities."""
    if not word:
        return [((), 0.0)]
    return [
        ((piece, *others), scores[piece] + score)
        for end in range(1, len(word) + 1)
        if (piece := word[:end]) in scores
        for others, score in all_cuts(word[end:], scores)
    ]


@pytest.mark.parametrize("alpha, best", [(0.2, 500), (1.0, 7)])
def test_chances_are_those_of_the_paper(alpha, best):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model())
    numbers = range(processor.get_piece_size())
    scores = {
        processor.id_to_piece(n): processor.get_score(n)
        for n in numbers
        if not processor.is_byte(n) and not processor.is_unknown(n)
    }
    ways = sorted(all_cuts("nations", scores), key=lambda way: -way[1])[:best]
    total = sum(math.exp(alpha * score) for _, score in ways)
    expected = {
        tuple(piece if n == 0 else f"￭{piece}" for n, piece in enumerate(pieces)): math.exp(
            alpha * score
        )
        / total
        for pieces, score in ways
    }
    assert len(expected) > 4
    cutting = sampler(alpha=alpha, best=best)
    # Each chance is the share of the numbers from 0 to 1 that draw it.
    count = 4000
    uniforms = (np.arange(count) + 0.5) / count
    drawn = cutting.draw(["nations"] * count, uniforms.tolist())
    assert set(drawn) <= set(expected)
    for cut, chance in expected.items():
        assert drawn.count(cut) / count == pytest.approx(chance, abs=1.5 / count)


def test_a_cut_is_the_word_and_what_is_protected_stays_whole():
    cutting = sampler(alpha=0.0)
    words = [WORD, f"￭{WORD}￭", "朝食", "d'été", "%s", "￭", "(￭", "<b>", "a"]
    for uniform in np.linspace(0, 0.999, 50):
        cuts = cutting.draw(words, [float(uniform)] * len(words))
        for word, cut in zip(words, cuts, strict=True):
            assert unmarked(cut) == word.replace("￭", "")
            assert cut[0].startswith("￭") == word.startswith("￭")
            assert cut[-1].endswith("￭") == word.endswith("￭")
            assert all(unit.startswith("￭") for unit in cut[1:])
        assert cuts[4:6] == [("%s",), ("￭",)] and cuts[7] == ("<b>",)
    assert len(set(cutting.draw([WORD] * 50, np.linspace(0, 0.999, 50).tolist()))) > 10


def test_no_unit_outside_the_vocabulary_is_drawn():
    known = set(units.possible_units(model())) - {"￭t"}
    cutting = sampler(alpha=0.0, vocabulary=known)
    cuts, limits = cutting.cuts("nations")
    assert len(cuts) > 1 and all(set(cut) <= known for cut in cuts[1:])
    assert limits[-1] == pytest.approx(1.0) and limits == sorted(limits)
