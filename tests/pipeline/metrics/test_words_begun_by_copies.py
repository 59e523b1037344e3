"""Words of units that an output began to copy, and those that arrived whole."""

from pipeline.metrics.copying import words_begun_by_copies

SOURCE = ["go", "Zan", "￭zi", "￭bar", "￭,", "io", "￭wa"]


def test_counts_words_of_pieces():
    tokens = ["va", "Zan", "￭zi", "￭bar", "￭,", "io", "￭wa", "￭wa"]
    origins = [0, 1, 2, 3, 4, 5, 6, 6]
    # `va` and `￭,` are one unit on both sides.
    assert words_begun_by_copies(tokens, origins, SOURCE) == (2, 1)


def test_a_word_that_breaks_off_is_not_whole():
    assert words_begun_by_copies(["Zan", "￭zi"], [1, 2], SOURCE) == (1, 0)
    assert words_begun_by_copies(["Zan"], [1], SOURCE) == (1, 0)


def test_generated_words_and_inner_pieces_do_not_count():
    assert words_begun_by_copies(["Zan", "￭zi", "￭bar"], [-1, 2, 3], SOURCE) == (0, 0)
    # A piece of the source's word's inside begins nothing.
    assert words_begun_by_copies(["zi", "￭bar"], [2, 3], SOURCE) == (0, 0)
    assert words_begun_by_copies([], [], SOURCE) == (0, 0)
