"""Byte pairs: cut as keras-hub's tokenizer cuts, joined to the same text."""

import functools

import numpy as np
import pytest

from pipeline.text import preset_tokenizers, preset_units, tokenization
from pipeline.text.byte_pairs import LONGEST, BytePairs, unit_of
from tests.keras_models import keras_hub_presets
from tests.pipeline.text import preset_cutting

TEXTS = [
    "The nations of the world, and the international nation.",
    "nation nations (the) world's national anthem: 10.5 of 20",
    "they'll say the\nthing  of it\n\nthe  end\t!",
    "Россия и мир, мир и Россия",
    "日本の朝食 朝食の日本",
    "a 😀 b 😀😀 c 👍🏽",
]
# Of one blank between words; keras-hub cuts these with exactly the same ids.
ALIKE = [
    "The nations, internationally (of the world's) 20.",
    "x",
    "qu-q ?! they'll I'VE we'd don't's '",
    "Россия, мир! Ελλάδα naïve",
    "日本の朝食を食べる 朝",
    "a 😀 😀👍🏽 👩‍👩‍👧 é ①…",
    "wide\u3000space \u00a0b «\u202fq\u202f» \u2009",
    "عربى हिन्दी ไทย ١٢٣",
    "in\nlines of  two blanks",
    "of\tthe\nthing",
    "w" * 70,
    "",
]
KEPT = [
    *ALIKE,
    "%(name)s <b>the{0}nation</b> --force",
    "the%s,%d nations%s",
    "Two  blanks\nand\n  lines \n\n",
    "  at both ends  ",
    "ﬁ ① … ｗｉｄｅ \u0301 ६ ५६ ६",
    "<s>the</s> <mask>",
    "<0xE3> \u2028 \x85 Ġthe",
]


@functools.cache
def hub(dtype="int32"):
    vocabulary, merges = keras_hub_presets.byte_pairs(TEXTS, 120)
    return keras_hub_presets.keras_hub.tokenizers.BartTokenizer(vocabulary, merges, dtype=dtype)


@functools.cache
def model():
    return BytePairs(hub().vocabulary, hub().merges)


@functools.cache
def tokenizer(kind="text", lowercase=False):
    return preset_tokenizers.make(tokenization.Tokenizer(kind, lowercase), model().to_bytes())


def cut(texts, **options):
    return preset_cutting.cut(tokenizer(**options), texts)


def test_ids_are_those_of_keras_hub():
    numbers = preset_tokenizers.possible_units(model().to_bytes())
    expected = [list(map(int, row)) for row in hub()(ALIKE)]
    assert [[numbers[unit] for unit in row] for row in cut(ALIKE)[1]] == expected
    # The texts are cut into pieces of all lengths, some of which are no whole characters.
    lengths = {len(model().raw_pieces[number - 5]) for row in expected for number in row}
    assert lengths >= {1, 2, 3, 4, 5}
    assert any("><0x" in unit for row in cut(ALIKE)[1] for unit in row)


def test_every_piece_is_a_unit_that_texts_can_have():
    numbers = preset_tokenizers.possible_units(model().to_bytes())
    # Special tokens are none, whatever a text has.
    assert min(numbers.values()) == 5 and max(numbers.values()) == len(hub().vocabulary) - 1
    assert {"￭The", "the", preset_units.MARK, "␊", "␊␠", "␠␠", "￭<0xE6>"} <= set(numbers)
    assert not any(" " in unit or "\n" in unit for unit in numbers)


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_joining_gives_the_text_back(kind):
    texts = KEPT if kind == "text" else [text for text in ALIKE if text.split(" ") == text.split()]
    assert preset_cutting.join(cut(texts, kind=kind)[0]) == texts


def test_random_characters_come_back():
    rng = np.random.default_rng(0)
    ranges = [(0xA1, 900), (0x3041, 0x3100), (0x1F600, 0x1F640)]
    alphabet = [chr(c) for first, end in ranges for c in range(first, end)] + [" "] * 200
    texts = [" ".join("".join(rng.choice(alphabet, 60)).split()) for _ in range(50)]
    assert preset_cutting.join(cut(texts)[0]) == texts


def test_protected_tokens_stay_whole():
    assert cut(["the%s,%d <b>nation</b>", "<s>of the"])[1] == [
        ["￭the", "￭", "%s", "￭,", "￭", "%d", "<b>", "￭nation", "￭", "</b>"],
        ["<s>", "￭of", "the"],
    ]


def test_a_text_does_not_depend_on_those_beside_it():
    assert [cut([text])[1][0] for text in ALIKE] == cut(ALIKE)[1]


def test_a_long_word_is_cut_first():
    word = "nation" * LONGEST
    made, cuts = cut([word])
    assert preset_cutting.join(made) == [word]
    assert "".join(unit.removeprefix("￭") for unit in cuts[0]) == word
    assert [len(row) for row in cuts] < [len(word) / 4]


def test_no_words_and_no_merges():
    import tensorflow as tf

    none = tokenizer().tokenize(tf.constant([], tf.string))
    assert none.to_list() == [] and cut(["", "%s"])[1] == [[], ["%s"]]
    bytes_alone = BytePairs({"a": 0}, ["#version: 0.2"]).to_bytes()
    bare = preset_tokenizers.make(tokenization.Tokenizer(), bytes_alone)
    assert bare.tokenize(tf.constant(["ab é"])).to_list() == [
        ["￭a".encode(), "￭b".encode(), "▁".encode(), "￭<0xC3>".encode(), "￭<0xA9>".encode()]
    ]


def test_lower_case():
    assert cut(["THE Nation"], lowercase=True)[1] == cut(["the nation"])[1]


def test_units():
    assert [unit_of(raw) for raw in (b" a", b"a", b" ", b"\xe2\x80", b" \xe2")] == [
        "a",
        "￭a",
        "▁",
        "￭<0xE2><0x80>",
        "<0xE2>",
    ]
