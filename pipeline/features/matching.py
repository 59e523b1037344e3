"""Equal tokens of a source and its target, found in time and memory linear in the tokens."""

import tensorflow as tf


def first_occurrences(
    source: tf.Tensor, target: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds the first place of each target item in its source, in memory linear in the items.

    Args:
        source, target: int64 `[items]` each: keys that say which item it is and, if rows must be
            told apart, of which row.

    Returns:
        ids of the source's and of the target's items (equal items have equal ids), and, for each
        target item, the first index in `source` or -1; all int64.
    """
    number = tf.size(source, out_type=tf.int64)
    unique, ids = tf.unique(tf.concat([source, target], axis=0), out_idx=tf.int64)
    places = tf.range(tf.size(ids, out_type=tf.int64))
    first = tf.gather(tf.math.unsorted_segment_min(places, ids, tf.size(unique)), ids[number:])
    return ids[:number], ids[number:], tf.where(first < number, first, -1)


def token_keys(
    source_tokens: tf.RaggedTensor, target_tokens: tf.RaggedTensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Numbers the surface forms of each row: equal numbers are equal tokens of the same row.

    Args:
        source_tokens, target_tokens: ragged string `[batch, (length)]`.

    Returns:
        Two int64 tensors, one number for each of the `flat_values`.
    """

    def forms(tokens: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.join(
            [tf.strings.as_string(tokens.value_rowids()), tokens.flat_values], separator=" "
        )

    _, numbers = tf.unique(
        tf.concat([forms(source_tokens), forms(target_tokens)], axis=0), out_idx=tf.int64
    )
    number = tf.size(source_tokens.flat_values)
    return numbers[:number], numbers[number:]
