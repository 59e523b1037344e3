"""Words as rows of characters, from which the encoder composes their vectors.

`tokenization.CHARACTER` defines a character. An unseen placeholder, tag, URL or option is a
single character, its class, so that all of a kind look alike.
"""

from collections.abc import Mapping

import tensorflow as tf

from pipeline.text import tokenization
from pipeline.text.placeholders import ProtectedSyntax, syntax_of

CHARACTERS_FILE = "source_characters.txt"
FEATURE = "source_characters"
# The lines before the characters themselves: padding, unknown characters, and the classes of
# protected tokens in the order of their ids.
_FIRST_CLASS = tokenization.END_ID + 1
SPECIALS = (tokenization.PAD, tokenization.UNK, *tokenization.SPECIAL_TOKENS[_FIRST_CLASS:-1])

# White space, which no token contains.
_BREAK = "\x1f"


def count(words: Mapping[str, int], syntax: ProtectedSyntax | None = None) -> dict[str, int]:
    """Returns a dict from character to its count in the words.

    Args:
        words: dict from word to count; the characters of protected tokens are not counted.
        syntax: what is protected, by default what recipes protect by default.
    """
    syntax = syntax or syntax_of()
    counts: dict[str, int] = {}
    for word, number in words.items():
        if not syntax.is_protected(word):
            for character in tokenization.split_characters(word):
                counts[character] = counts.get(character, 0) + number
    return counts


def choose(counts: Mapping[str, int], size: int, min_count: int) -> list[str]:
    """Returns the lines of `CHARACTERS_FILE`: the specials, then characters by falling count.

    Args:
        counts: what `count` returned.
        size: the most lines.
        min_count: rarer characters are unknown.
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    chosen = [
        character
        for character, number in ranked
        if number >= min_count and character.splitlines() == [character]
    ]
    return [*SPECIALS, *chosen][:size]


def split_tokens(tokens: tf.Tensor) -> tf.RaggedTensor:
    """Returns the characters of tokens, in the graph.

    Args:
        tokens: string `[tokens]`.

    Returns:
        ragged string `[tokens, (characters)]`.
    """
    marked = tf.strings.regex_replace(tokens, f"({tokenization.CHARACTER})", rf"\1{_BREAK}")
    return tf.strings.split(marked, _BREAK)[:, :-1]


def class_lines(class_ids: tf.Tensor) -> tf.Tensor:
    """Returns the lines of protected classes, by their ids in a word vocabulary."""
    return class_ids - _FIRST_CLASS + SPECIALS.index(tokenization.SPECIAL_TOKENS[_FIRST_CLASS])


def character_ids(
    tokens: tf.Tensor,
    table: tf.lookup.StaticHashTable,
    classes: tf.Tensor,
    word_characters: int,
) -> tf.Tensor:
    """Returns the ids of the characters of tokens, with an equal number of places for each.

    Args:
        tokens: string `[tokens]`.
        table: lookup table of `CHARACTERS_FILE`, -1 for characters that it lacks.
        classes: int64 `[tokens]`, line of the class of a token that is an unseen placeholder, tag,
            URL or option; else 0.
        word_characters: places of a word. Of a longer word the first and the last characters are
            read, half each.

    Returns:
        int64 `[tokens, word_characters]`, 0 behind the word.
    """
    characters = split_tokens(tokens)
    lengths = characters.row_lengths()[:, tf.newaxis]
    places = tf.range(word_characters, dtype=tf.int64)[tf.newaxis]
    first = (word_characters + 1) // 2
    index = tf.where(
        (lengths > word_characters) & (places >= first), lengths - word_characters + places, places
    )
    inside = index < lengths
    flat = tf.concat([characters.flat_values, [""]], axis=0)
    at = tf.where(
        inside, characters.row_starts()[:, tf.newaxis] + index, tf.size(flat, tf.int64) - 1
    )
    known = table.lookup(tf.gather(flat, at))
    ids = tf.where(inside, tf.where(known >= 0, known, tokenization.UNK_ID), 0)
    classes = classes[:, tf.newaxis]
    return tf.where(classes > 0, tf.where(places == 0, classes, 0), ids)
