"""Which units continue a word: the rule that lets decoding copy words whole."""

import pytest

from pipeline.text import units

CONTINUES = ["￭bar", "￭1", "￭é", "￭\u0301", "￭_", "￭朝", "￭<0xC3>", "￭<0xA9>", "￭<0x61>", "￭<0xE6>"]
STANDS_ALONE = [
    "bar",
    "￭",
    "￭,",
    "￭'￭",
    "￭(",
    "",
    "<0xC3>",
    "￭<0x2C>",
    "￭<0xE2>",
    "[PAD]",
    "%s",
    "￭<",
]


@pytest.mark.parametrize("token", CONTINUES)
def test_letters_and_their_bytes_continue(token):
    assert units.continues(token)


@pytest.mark.parametrize("token", STANDS_ALONE)
def test_words_and_punctuation_do_not(token):
    assert not units.continues(token)


def test_the_graph_agrees():
    tokens = CONTINUES + STANDS_ALONE
    found = units.continues_word(tokens).numpy().tolist()
    assert found == [units.continues(token) for token in tokens]


def test_letters_alone_are_counted():
    tokens = ["￭wa", "￭é", "￭0", "￭w0", "￭<0xC3>", "wa", "￭,", "￭wa￭"]
    assert units.continues_with_letters(tokens).numpy().tolist() == [True, True] + [False] * 6


def test_words_as_the_tokenizer_cuts_them():
    """Of `Zanzibar, iowa's (x)`: only the pieces inside words continue."""
    tokens = ["Zan", "￭zi", "￭bar", "￭,", "io", "￭wa", "￭'￭", "s", "(￭", "x", "￭)"]
    found = [token for token in tokens if units.continues(token)]
    assert found == ["￭zi", "￭bar", "￭wa"]
