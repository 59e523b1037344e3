"""The glossary of a served model: marks its terms in texts, as `serving.glossary` does."""

import math

import tensorflow as tf

from pipeline.text import terms
from serving import glossary, term_markup

_LETTER = r"[\p{L}\p{N}\p{M}_]"
_MARK = r"\p{M}"
# Ids of a character's script: no letter, a letter of a script with blanks, then the others.
_NONE, _WORD = 0, 1
_OTHERS = sorted({script for _, _, script in glossary.UNSPACED})


class DefaultGlossary(tf.Module):
    """Marks the terms of a glossary in texts that have no marked terms.

    The rules are those of `serving.glossary.Glossary`. All texts of a batch are looked at together,
    as one row of characters.

    Args:
        terms: from phrase to translation.
    """

    def __init__(self, terms: dict[str, str]) -> None:
        super().__init__(name="default_glossary")
        phrases = sorted(terms)
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant(phrases), tf.constant([terms[phrase] for phrase in phrases])
        )
        self.table = tf.lookup.StaticHashTable(initializer, default_value="")
        self._lengths = sorted(set(map(len, phrases)))

    def mark(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns string `[batch]` with the markup of its terms."""
        characters = tf.strings.unicode_split(texts, "UTF-8")
        flat, rows = characters.flat_values, characters.value_rowids()
        begins, ends = _boundaries(flat, rows)
        longest, translations = self._longest(flat, rows, begins, ends)
        chosen = _from_left(longest)
        number = tf.size(flat)
        places = tf.boolean_mask(tf.range(number), chosen)
        limits = places + tf.boolean_mask(longest, chosen)
        phrases = _substrings(flat, places, limits)
        marked = term_markup.ANCHOR + phrases + term_markup.SEPARATOR
        marked += tf.gather(translations, places) + term_markup.TERMINATOR
        # What is in a term is written by its first character.
        steps = tf.tensor_scatter_nd_add(
            tf.zeros([number + 1], tf.int32), places[:, tf.newaxis], tf.ones_like(places)
        )
        steps = tf.tensor_scatter_nd_sub(steps, limits[:, tf.newaxis], tf.ones_like(limits))
        inside = tf.cumsum(steps)[:number] > 0
        escaped = tf.strings.regex_replace(
            flat,
            f"[{term_markup.MARKS}]",
            rf"{term_markup.ANCHOR}{term_markup.SEPARATOR}\0{term_markup.TERMINATOR}",
        )
        written = tf.tensor_scatter_nd_update(
            tf.where(inside, "", escaped), places[:, tf.newaxis], marked
        )
        joined = tf.strings.reduce_join(characters.with_flat_values(written), axis=-1)
        changed = tf.reduce_any(characters.with_flat_values(chosen), axis=1)
        return tf.where(changed & ~terms.has_markup(texts), joined, texts)

    def _longest(
        self, flat: tf.Tensor, rows: tf.Tensor, begins: tf.Tensor, ends: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the length of the longest term that begins at each character, and its
        translation: int32 and string `[characters]`.
        """
        number = tf.size(flat)
        lower = _lower(flat)
        starts = tf.boolean_mask(tf.range(number), begins)
        lengths = tf.constant(self._lengths, tf.int32)
        # All pairs of a start and a length that end a word of the same row.
        starts, lengths = (
            tf.reshape(part, [-1]) for part in tf.meshgrid(starts, lengths, indexing="ij")
        )
        last = starts + lengths - 1
        fits = last < number
        last = tf.where(fits, last, 0)
        fits &= tf.gather(tf.concat([ends, [False]], axis=0), last)
        padded = tf.concat([rows, [-1]], axis=0)
        fits &= tf.gather(padded, last) == tf.gather(padded, starts)
        starts, lengths = tf.boolean_mask(starts, fits), tf.boolean_mask(lengths, fits)
        phrases = _substrings(flat, starts, starts + lengths)
        exact = self.table.lookup(phrases)
        in_lower = self.table.lookup(_substrings(lower, starts, starts + lengths))
        capitals = tf.strings.upper(in_lower, encoding="utf-8")
        in_lower = tf.where(_is_in_capitals(phrases), capitals, in_lower)
        found = tf.where(exact != "", exact, in_lower)
        lengths = tf.where(found != "", lengths, 0)
        longest = tf.maximum(tf.math.unsorted_segment_max(lengths, starts, number), 0)
        best = (lengths > 0) & (lengths == tf.gather(longest, starts))
        translations = tf.tensor_scatter_nd_update(
            tf.fill([number], ""),
            tf.boolean_mask(starts, best)[:, tf.newaxis],
            tf.boolean_mask(found, best),
        )
        return longest, translations


def _lower(flat: tf.Tensor) -> tf.Tensor:
    lower = tf.strings.lower(flat, encoding="utf-8")
    return tf.where(tf.strings.length(lower, unit="UTF8_CHAR") == 1, lower, flat)


def _is_in_capitals(phrases: tf.Tensor) -> tf.Tensor:
    """Returns which phrases have two letters or more, none of them a small one."""
    cased = tf.strings.regex_full_match(phrases, r"(?s)[^\p{Ll}\p{Lt}]*\p{Lu}[^\p{Ll}\p{Lt}]*")
    return cased & tf.strings.regex_full_match(phrases, r"(?s).*\p{L}.*\p{L}.*")


def _substrings(flat: tf.Tensor, starts: tf.Tensor, limits: tf.Tensor) -> tf.Tensor:
    """Returns the texts of runs of characters, string `[runs]`."""
    offsets = tf.concat([[0], tf.cumsum(tf.strings.length(flat))], axis=0)
    begin = tf.gather(offsets, starts)
    return tf.strings.substr(
        tf.strings.reduce_join(flat), begin, tf.gather(offsets, limits) - begin
    )


def _from_left(longest: tf.Tensor) -> tf.Tensor:
    """Returns which terms are chosen, from left to right without overlap; bool `[characters]`.

    They are those on the way from the first character, which a term or else one character leads on.
    """
    number = tf.size(longest)
    ahead = tf.minimum(tf.range(number) + tf.maximum(longest, 1), number)
    jumps = tf.concat([ahead, [number]], axis=0)
    reached = tf.range(number + 1) == 0
    spec = tf.TensorShape([None])

    def double(reached: tf.Tensor, jumps: tf.Tensor, step: tf.Tensor) -> list[tf.Tensor]:
        further = tf.boolean_mask(jumps, reached)
        counts = tf.tensor_scatter_nd_add(
            tf.cast(reached, tf.int32), further[:, tf.newaxis], tf.ones_like(further)
        )
        return [counts > 0, tf.gather(jumps, jumps), step * 2]

    # As many characters as 2 ** rounds can be reached.
    reached, _, _ = tf.while_loop(
        lambda reached, jumps, step: step <= number,
        double,
        [reached, jumps, tf.constant(1)],
        shape_invariants=[spec, spec, tf.TensorShape([])],
        maximum_iterations=int(math.log2(2**31)) + 1,
    )
    return reached[:number] & (longest > 0)


def _boundaries(flat: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where a word may begin, and behind which characters one may end."""
    is_letter = tf.strings.regex_full_match(flat, _LETTER)
    script = tf.where(is_letter, _WORD, _NONE)
    code = tf.strings.unicode_decode(flat, "UTF-8")[:, :1].to_tensor(0, shape=[None, 1])[:, 0]
    for first, last, name in glossary.UNSPACED:
        inside = (code >= first) & (code <= last) & (code != ord(glossary.MIDDLE_DOT))
        script = tf.where(inside, _OTHERS.index(name) + _WORD + 1, script)

    def at(values: tf.Tensor, offset: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The value so many characters on, and whether that is in the same row."""
        places = tf.range(tf.size(flat)) + offset
        inside = (places >= 0) & (places < tf.size(flat))
        places = tf.where(inside, places, tf.range(tf.size(flat)))
        return tf.gather(values, places), inside & (tf.gather(rows, places) == rows)

    is_mark = tf.strings.regex_full_match(flat, _MARK)
    is_joiner = flat == glossary.ZERO_WIDTH_JOINER
    inner = tf.strings.regex_full_match(flat, "[" + glossary.INSIDE_WORDS.replace("-", r"\-") + "]")
    word = script == _WORD
    katakana, hangul = (_OTHERS.index(name) + _WORD + 1 for name in ("Katakana", "Hangul"))

    def parts(before: int, behind: int, ends: bool) -> tf.Tensor:
        """Whether words part between two neighbours, given as offsets."""
        first, second = at(script, before)[0], at(script, behind)[0]
        same = (first != _NONE) & (first == second)
        together = same & ((first == _WORD) | (first == katakana))
        if not ends:
            together |= same & (first == hangul)
        return ~(
            together | at(is_mark, behind)[0] | at(is_joiner, before)[0] | at(is_joiner, behind)[0]
        )

    def holds(edge: int, far: int) -> tf.Tensor:
        """Whether a word goes on over the character beside its edge."""
        there, inside = at(word, far)
        return at(inner, edge)[0] & there & inside & word

    before, behind = at(word, -1)[1], at(word, 1)[1]
    begins = ~before | (parts(-1, 0, False) & ~holds(-1, -2))
    ends = ~behind | (parts(0, 1, True) & ~holds(1, 2))
    return begins, ends
