"""What a copy of a source token writes, where it is not the token:
entities of phrases, translations of words.
"""

import tensorflow as tf


def text_table(path):
    """Returns a lookup table from the first column of a TSV file of two to the second, "" where the
    file lacks the key.
    """
    initializer = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.string, 1, delimiter="\t")
    return tf.lookup.StaticHashTable(initializer, default_value="")


def longest_phrase(path):
    """Returns the number of tokens of the longest phrase of a lexicon file, whose tokens are parted
    by spaces.
    """
    with tf.io.gfile.GFile(path) as file:
        # Not splitlines, which parts at more than line feeds.
        return max(
            (line.split("\t")[0].count(" ") + 1 for line in file.read().split("\n") if line),
            default=0,
        )


def phrase_surfaces(tokens, lookup, longest):
    """Looks up, at each position, the longest phrase that starts there.

    Args:
        tokens: ragged string `[batch, (length)]`.
        lookup: function from string `[tokens]`, phrases of tokens parted by spaces, to string
            `[tokens]`, "" for none.
        longest: tokens of the longest phrase that is looked up.

    Returns:
        Like `tokens`: the phrase's entity, or the token itself where no phrase starts.
    """
    flat = tokens.flat_values
    places = tf.range(tf.size(flat, out_type=tf.int64))
    ends = tf.gather(tokens.row_limits(), tokens.value_rowids())
    surfaces, phrases = flat, tf.fill(tf.shape(flat), "")
    for length in range(1, longest + 1):
        last = places + length - 1
        inside = last < ends
        token = tf.gather(flat, tf.where(inside, last, places))
        phrases = token if length == 1 else tf.strings.join([phrases, token], " ")
        # A phrase that the text is too short for is none.
        found = lookup(tf.where(inside, phrases, ""))
        surfaces = tf.where(found != "", found, surfaces)
    return tokens.with_flat_values(surfaces)


def translated_surfaces(tokens, surfaces, lookup, keep):
    """Puts a word's translation where a copy would write the word.

    Args:
        tokens: ragged string `[batch, (length)]`.
        surfaces: like `tokens`: what a copy would write; where that is not the token, it stays.
        lookup: function from string `[tokens]` to string `[tokens]`, "" for none.
        keep: bool, over the flat values: tokens that are written as they are.

    Returns:
        Like `tokens`.
    """
    found = lookup(tokens.flat_values)
    translate = (found != "") & tf.equal(tokens.flat_values, surfaces.flat_values) & ~keep
    return tokens.with_flat_values(tf.where(translate, found, surfaces.flat_values))
