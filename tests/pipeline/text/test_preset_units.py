"""Units of a pre-trained model: cut as it cuts, joined to the same text."""

import functools

import pytest

from pipeline.text import preset_units, tokenization
from tests.keras_models import keras_hub_presets
from tests.pipeline.text import preset_cutting

TEXTS = [
    "The nations of the world, and the international nation.",
    "nation nations (the) world's national anthem: 10.5 of 20",
    "the the the the the the nation nation nation",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z ! ? - ' \" %",
]
SOURCES = [
    "The nations, internationally (of the world's) 20.",
    "x",
    "qu-q ?!",
    "of of of",
]
KEPT = [
    *SOURCES,
    "%(name)s <b>the{0}nation</b> --force",
    "the%s,%d nations%s",
    "朝食 and the 朝食",
    "Two  blanks\nand\n  lines",
    "ﬁ ① … ｗｉｄｅ \u0301",
    "The&nbsp;\u00a0«nation\u00a0»",
    "",
]


@functools.cache
def model():
    return keras_hub_presets.sentencepiece_model(TEXTS, 70)


@functools.cache
def tokenizer(kind="text", lowercase=False):
    cutting = preset_units.without_normalisation(model())
    return preset_units.PresetTokenizer(tokenization.Tokenizer(kind, lowercase), cutting)


def cut(texts, **options):
    return preset_cutting.cut(tokenizer(**options), texts)


def test_cuts_as_the_preset_cuts():
    hub = keras_hub_presets.keras_hub.tokenizers.T5Tokenizer(proto=model(), dtype="string")
    expected = [[preset_units.unit_of(piece) for piece in row] for row in hub(SOURCES)]
    assert cut(SOURCES)[1] == expected
    assert any(len(row) > 3 for row in expected)


def test_every_unit_has_the_number_of_its_piece():
    hub = keras_hub_presets.keras_hub.tokenizers.T5Tokenizer(proto=model())
    numbers = preset_units.possible_units(model())
    assert [[numbers[unit] for unit in row] for row in cut(SOURCES)[1]] == hub(SOURCES)
    # Padding, the end and what is unknown are none.
    assert sorted(numbers.values()) == list(range(3, hub.vocabulary_size()))


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_joining_gives_the_text_back(kind):
    texts = KEPT if kind == "text" else SOURCES
    made, _ = cut(texts, kind=kind)
    assert preset_cutting.join(made) == texts


def test_protected_tokens_stay_whole():
    assert cut(["the%s,%d <b>nation</b>", "%(name)s (%s)"])[1] == [
        ["▁", "￭the", "￭", "%s", "￭,", "￭", "%d", "<b>", "￭nation", "￭", "</b>"],
        ["%(name)s", "▁", "￭(", "￭", "%s", "￭)"],
    ]


def test_what_the_preset_does_not_know_is_a_unit():
    assert cut(["朝食 the日"])[1] == [["▁", "￭朝食", "▁", "￭the", "￭日"]]
    # A mark in the text is another character.
    assert preset_cutting.join(cut(["a▁b"])[0]) == ["a▂b"]


def test_lower_case():
    assert cut(["THE Nation"], lowercase=True)[1] == cut(["the nation"])[1]
