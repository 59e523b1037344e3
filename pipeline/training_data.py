"""Transformed examples to padded batches of similar length."""

import tensorflow as tf

LABELS = "target_extended_ids"
ID_FEATURES = ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")


def batch_size(length, batch_tokens):
    """Returns how many pairs of a bucket fill `batch_tokens`, padding included, at least 1."""
    return max(1, batch_tokens // (2 * length))


def read_examples(file_patterns):
    """Reads transformed tf.Examples.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.

    Returns:
        tf.data.Dataset of dicts of int32 `[length]` tensors.
    """
    files = tf.data.Dataset.list_files(file_patterns, shuffle=False)
    features = {name: tf.io.RaggedFeature(tf.int64) for name in ID_FEATURES}

    def parse(serialized):
        parsed = tf.io.parse_single_example(serialized, features)
        return {name: tf.cast(value, tf.int32) for name, value in parsed.items()}

    return tf.data.TFRecordDataset(files, compression_type="GZIP").map(parse)


def pair_length(pair):
    """Returns the longer of source and target length, a scalar."""
    return tf.maximum(tf.shape(pair["source_ids"])[0], tf.shape(pair[LABELS])[0])


def count_too_long(examples, bucket_lengths):
    """Returns how many pairs no bucket holds, and how many there are."""
    longest = bucket_lengths[-1]
    zero = tf.constant(0, tf.int64)
    too_long, total = examples.reduce(
        (zero, zero), lambda sums, pair: (sums[0] + tf.cast(pair_length(pair) > longest, tf.int64), sums[1] + 1)
    )
    return int(too_long), int(total)


def make_batches(examples, bucket_lengths, batch_tokens, shuffle_seed=None):
    """Groups pairs of similar length into padded batches.

    Args:
        examples: what `read_examples` returned.
        bucket_lengths: rising list of lengths; a pair that fits none is left out (count them with `count_too_long`).
        batch_tokens: source and target tokens of a batch, padding included.
        shuffle_seed: shuffles, in another order each epoch, if given.

    Returns:
        tf.data.Dataset of `(inputs, labels)`: dict of int32 `[batch, length]`, and int32 `[batch, target_length]`.
    """
    examples = examples.filter(lambda pair: pair_length(pair) <= bucket_lengths[-1]).cache()
    if shuffle_seed is not None:
        examples = examples.shuffle(100_000, seed=shuffle_seed, reshuffle_each_iteration=True)
    sizes = [batch_size(length, batch_tokens) for length in bucket_lengths]
    batches = examples.bucket_by_sequence_length(
        pair_length,
        bucket_boundaries=[length + 1 for length in bucket_lengths],
        # The last size is for pairs beyond the last bucket, of which the filter left none.
        bucket_batch_sizes=[*sizes, 1],
    )
    options = tf.data.Options()
    # Ending an iterator waits for the autotuner's thread, which sleeps up to a minute between two looks (TensorFlow 2.16):
    # with two iterators an epoch, training stood still for longer than it ran.
    options.autotune.enabled = False
    return batches.map(lambda inputs: (inputs, inputs[LABELS])).prefetch(8).with_options(options)
