"""Runs of one script: a heuristic segmentation of text that has no spaces."""

import tensorflow as tf

# Valid for RE2. A character of no script, such as punctuation, is alone.
_SCRIPTS = (r"\p{Han}|々", r"\p{Hiragana}", r"\p{Katakana}|ー", r"\p{N}", r"\p{L}")
# The number of the script, from 1.
_HIRAGANA = 2


def script_ends(characters: tf.RaggedTensor, kana_alone: bool = False) -> tf.RaggedTensor:
    """Returns where a run of one script ends.

    Kanji, hiragana, katakana, digits and other letters are a script each; marks count as their
    letter does.

    Args:
        characters: ragged string `[batch, (length)]`.
        kana_alone: whether each hiragana is a run of its own. Japanese writes its particles and
            endings in them, most of one character or two, without anything between one and the
            next.

    Returns:
        ragged int64 like `characters`: 1 at the last character of each run, else 0.
    """
    flat = characters.flat_values
    script = tf.zeros(tf.shape(flat), tf.int64)
    for number, pattern in reversed(list(enumerate(_SCRIPTS, start=1))):
        matches = tf.strings.regex_full_match(flat, rf"(?:{pattern})[\p{{M}}\x{{200D}}]*")
        script = tf.where(matches, tf.constant(number, tf.int64), script)
    places = tf.range(tf.size(flat, out_type=tf.int64))
    last = tf.gather(characters.row_limits(), characters.value_rowids()) - 1
    following = tf.concat([script[1:], [0]], axis=0)
    ends = (places == last) | (script != following) | (script == 0)
    if kana_alone:
        ends |= script == _HIRAGANA
    return characters.with_flat_values(tf.cast(ends, tf.int64))
