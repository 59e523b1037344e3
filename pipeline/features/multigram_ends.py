"""The likeliest words of a multigram model, found in a TensorFlow graph."""

import tensorflow as tf

from pipeline.features.table import Table
from pipeline.text.multigrams import LONGEST

# The score of what is no word, and what a table gives for it, which no log p is.
_IMPOSSIBLE = -1e9
_UNKNOWN = 1.0


def multigram_table(path: str) -> Table:
    """Returns a lookup table from the words of a `multigrams.FILE` to log p."""
    initializer = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.float32, 1, delimiter="\t")
    table: Table = tf.lookup.StaticHashTable(initializer, default_value=_UNKNOWN)
    return table


def multigram_ends(
    characters: tf.RaggedTensor, table: Table, is_alone: tf.Tensor
) -> tf.RaggedTensor:
    """Returns where the words of the likeliest segmentation end.

    Args:
        characters: ragged string `[batch, (length)]`.
        table: what `multigram_table` returned.
        is_alone: bool, like the flat values of `characters`: what is never part of a longer word.

    Returns:
        ragged int64 like `characters`: 1 at the last character of each word, else 0.
    """
    scores = characters.with_flat_values(_scores(characters, table, is_alone))
    # Each place of padding is a word. One there is at least, because a loop needs a step.
    padding = tf.constant([0.0] + [_IMPOSSIBLE] * (LONGEST - 1))
    last = tf.broadcast_to(padding, [1, characters.nrows(), LONGEST])
    padded = tf.concat([tf.transpose(scores.to_tensor(padding), [1, 0, 2]), last], axis=0)
    ends = tf.RaggedTensor.from_tensor(tf.transpose(_viterbi(padded)), characters.row_lengths())
    return characters.with_flat_values(tf.cast(ends.flat_values, tf.int64))


def _scores(characters: tf.RaggedTensor, table: Table, is_alone: tf.Tensor) -> tf.Tensor:
    """Returns log p of the words of 1, 2, ... characters that end at each place.

    float32 `[places, LONGEST]`, places of all texts one after the other.
    """
    flat = characters.flat_values
    number = tf.size(flat)
    places = tf.range(number)
    in_text = places - tf.cast(
        tf.gather(characters.row_starts(), characters.value_rowids()), tf.int32
    )
    word, alone = flat, is_alone
    # A character that the model does not know is in no word but its own, so any score will do.
    scores = [tf.minimum(table.lookup(flat), 0.0)]
    for size in range(2, LONGEST + 1):
        first = tf.maximum(places - (size - 1), 0)
        word = tf.strings.join([tf.gather(flat, first), word], " ")
        alone |= tf.gather(is_alone, first)
        score = table.lookup(word)
        is_word = (in_text >= size - 1) & ~alone & (score != _UNKNOWN)
        scores.append(tf.where(is_word, score, _IMPOSSIBLE))
    return tf.stack(scores, axis=1)


def _viterbi(scores: tf.Tensor) -> tf.Tensor:
    """Returns where the best words end, bool `[time, batch]`, of scores `[time, batch, LONGEST]`.

    `scores[t, b, n - 1]` is that of the word of n characters that ends at t.
    """

    def advance(state: tuple[tf.Tensor, tf.Tensor], here: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        best, _ = state
        totals = best + here
        return (
            tf.concat([tf.reduce_max(totals, axis=1, keepdims=True), best[:, :-1]], axis=1),
            tf.argmax(totals, axis=1, output_type=tf.int32),
        )

    def go_back(state: tuple[tf.Tensor, tf.Tensor], size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inside, _ = state
        is_end = tf.equal(inside, 0)
        return tf.where(is_end, size, inside - 1), is_end

    # The best segmentations up to the last places, the latest first.
    begin = tf.fill(tf.shape(scores[0]), _IMPOSSIBLE)
    begin = tf.concat([tf.zeros_like(begin[:, :1]), begin[:, 1:]], axis=1)
    none = tf.zeros(tf.shape(begin)[:1], tf.int32)
    _, further = tf.scan(advance, scores, (begin, none))
    _, ends = tf.scan(go_back, further, (none, tf.zeros_like(none, tf.bool)), reverse=True)
    return ends
