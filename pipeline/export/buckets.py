"""Padding to a fixed list of sizes, so that the number of compilations is known."""

import tensorflow as tf


def smallest_bucket(size, buckets):
    """Returns the smallest bucket that holds `size`, the largest if none does; int32 scalars."""
    buckets = tf.constant(buckets, tf.int32)
    index = tf.searchsorted(buckets, tf.expand_dims(size, 0))[0]
    return buckets[tf.minimum(index, tf.size(buckets) - 1)]


def map_in_buckets(
    function,
    ragged,
    batch_buckets,
    length_buckets,
    output_types,
    sequences=(),
    output_length=None,
    widths=None,
):
    """Calls a function of dense tensors on ragged ones, padded to buckets and chunk by chunk.

    Rows of similar length share a chunk, so that short ones are not padded to the longest of all.

    Args:
        function: of one `[batch, length]` tensor for each of `ragged`, and int32 `[batch]` lengths
            (0 for rows that are padding); returns a dict of tensors `[batch, ...]`.
        ragged: list of ragged tensors `[N, (length)]`, int or bool, of the same row lengths; in all
            but the first a row may be a whole number of times as long, its width, and is padded to
            so many times the bucket.
        batch_buckets, length_buckets: rising lists. More rows than the last are done in chunks of
            it; longer ones are cut.
        output_types: dict from output name to dtype.
        sequences: names of the outputs whose last axis goes with the length of the chunk; they are
            padded with zeros.
        output_length: function from a length of `length_buckets` to the last axis of `sequences`;
            by default it is that length.
        widths: list of the widths of `ragged`; by default all are 1.

    Returns:
        The function's outputs for the N rows; the last axis of `sequences` is that of the longest
        row's bucket.
    """
    output_length = output_length or (lambda length: length)
    lengths = tf.cast(ragged[0].row_lengths(), tf.int32)
    number = tf.size(lengths)
    batch = smallest_bucket(number, batch_buckets)
    chunks = (number + batch - 1) // batch
    order = tf.argsort(lengths, stable=True)
    longest = smallest_bucket(tf.reduce_max(lengths), length_buckets)

    def of_chunk(chunk):
        rows = order[chunk * batch : (chunk + 1) * batch]
        padding = batch - tf.size(rows)
        own = tf.gather(lengths, rows)
        length = smallest_bucket(tf.reduce_max(own), length_buckets)
        padded = []
        for values, width in zip(ragged, widths or [1] * len(ragged), strict=True):
            # A text beyond the last bucket fails its check; cut here so that it cannot be compiled
            # for meanwhile.
            dense = tf.gather(values, rows)[:, : length * width].to_tensor()
            dense = tf.pad(dense, [[0, padding], [0, length * width - tf.shape(dense)[1]]])
            padded.append(tf.reshape(dense, [batch, length * width]))
        outputs = function(*padded, tf.pad(tf.minimum(own, length), [[0, padding]]))
        missing = output_length(longest) - output_length(length)
        return {
            name: tf.pad(value, [[0, 0]] * (value.shape.rank - 1) + [[0, missing]])
            if name in sequences
            else value
            for name, value in outputs.items()
        }

    chunked = tf.map_fn(
        of_chunk, tf.range(chunks), fn_output_signature=output_types, parallel_iterations=1
    )
    place = tf.math.invert_permutation(order)
    return {
        name: tf.gather(
            tf.reshape(value, tf.concat([[chunks * batch], tf.shape(value)[2:]], axis=0)), place
        )
        for name, value in chunked.items()
    }


def scatter_rows(outputs, rows, new, sequences=()):
    """Puts new rows in the place of some.

    Args:
        outputs: dict of tensors `[N, ...]`, such as `map_in_buckets` returns.
        rows: int64 `[M]`, which rows.
        new: dict of tensors `[M, ...]`; the last axis of `sequences` may be shorter, and is padded
            with zeros.

    Returns:
        dict of tensors like `outputs`.
    """
    scattered = {}
    for name, value in outputs.items():
        replacing = new[name]
        if name in sequences:
            missing = tf.shape(value)[-1] - tf.shape(replacing)[-1]
            replacing = tf.pad(replacing, [[0, 0]] * (value.shape.rank - 1) + [[0, missing]])
        scattered[name] = tf.tensor_scatter_nd_update(value, rows[:, tf.newaxis], replacing)
    return scattered
