"""Padding to a fixed list of sizes, so that the number of compilations is known."""

import tensorflow as tf


def smallest_bucket(size, buckets):
    """Returns the smallest bucket that holds `size`, the largest if none does; int32 scalars."""
    buckets = tf.constant(buckets, tf.int32)
    index = tf.searchsorted(buckets, tf.expand_dims(size, 0))[0]
    return buckets[tf.minimum(index, tf.size(buckets) - 1)]


def map_in_buckets(function, ragged, batch_buckets, length_buckets, output_types, widths=None):
    """Calls a function of dense tensors on ragged ones, padded to buckets and chunk by chunk.

    Args:
        function: of one `[batch, length]` tensor for each of `ragged`, and int32 `[batch]` lengths (0 for rows that are
            padding); returns a dict of tensors `[batch, ...]`.
        ragged: list of ragged tensors `[N, (length)]`, int or bool, of the same row lengths; in all but the first a row may be a whole
            number of times as long, its width, and is padded to so many times the bucket.
        batch_buckets, length_buckets: rising lists. More rows than the last are done in chunks of it; longer ones are cut.
        output_types: dict from output name to dtype.
        widths: list of the widths of `ragged`; by default all are 1.

    Returns:
        The function's outputs for the N rows.
    """
    lengths = ragged[0].row_lengths()
    number = tf.cast(tf.size(lengths), tf.int32)
    batch = smallest_bucket(number, batch_buckets)
    chunks = (number + batch - 1) // batch
    length = smallest_bucket(tf.cast(tf.reduce_max(lengths), tf.int32), length_buckets)
    padded = []
    for values, width in zip(ragged, widths or [1] * len(ragged), strict=True):
        # A text beyond the last bucket fails its check; cut here so that it cannot be compiled for meanwhile.
        dense = values[:, : length * width].to_tensor()
        dense = tf.pad(dense, [[0, chunks * batch - number], [0, length * width - tf.shape(dense)[1]]])
        padded.append(tf.reshape(dense, [chunks, batch, length * width]))
    rows = tf.minimum(tf.cast(lengths, tf.int32), length)
    padded.append(tf.reshape(tf.pad(rows, [[0, chunks * batch - number]]), [chunks, batch]))
    chunked = tf.map_fn(
        lambda inputs: function(*inputs), tuple(padded), fn_output_signature=output_types, parallel_iterations=1
    )
    return {
        name: tf.reshape(value, tf.concat([[chunks * batch], tf.shape(value)[2:]], axis=0))[:number]
        for name, value in chunked.items()
    }
