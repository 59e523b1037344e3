"""Transformed examples to padded batches of similar length."""

import tensorflow as tf

from pipeline import preprocessing

LABELS = "target_extended_ids"


def batch_size(length, batch_tokens):
    """Returns how many pairs of a bucket fill `batch_tokens`, padding included, at least 1."""
    return max(1, batch_tokens // (2 * length))


def read_examples(file_patterns, names=preprocessing.ID_FEATURES):
    """Reads transformed tf.Examples.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.
        names: the features to read.

    Returns:
        tf.data.Dataset of dicts of int32 `[length]` tensors.
    """
    files = tf.data.Dataset.list_files(file_patterns, shuffle=False)
    features = {name: tf.io.RaggedFeature(tf.int64) for name in names}

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
        tf.data.Dataset of `(inputs, labels)`: dict of int32 `[batch, length]`, and int32 `[batch, target_length]`; padding is
        what `preprocessing.PADDING` says, else 0.
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
        padding_values={name: tf.constant(preprocessing.PADDING.get(name, 0)) for name in examples.element_spec},
    )
    options = tf.data.Options()
    # Ending an iterator waits for the autotuner's thread, which sleeps up to a minute between two looks (TensorFlow 2.16):
    # with two iterators an epoch, training stood still for longer than it ran.
    options.autotune.enabled = False
    return batches.map(lambda inputs: (inputs, inputs[LABELS])).prefetch(8).with_options(options)


def check_head(head, file_patterns, split):
    """Makes sure before a training that the head can output the targets.

    Args:
        head: name of the head.
        file_patterns: list of glob patterns of gzipped TFRecord files.
        split: what the pairs are called in messages.

    Raises:
        ValueError: head `pointer_network` and a target with a word that does not stand in its source; or a head that copies, and not
            a single source.
    """
    if head == "softmax":
        return
    examples = read_examples(file_patterns, preprocessing.ID_FEATURES)
    sources = examples.filter(lambda pair: tf.size(pair["source_ids"]) > 0)
    if not any(True for _ in sources.take(1)) and any(True for _ in examples.take(1)):
        raise ValueError(
            f"None of the {split} pairs has a source, so head {head} has nothing to copy: set model.head=softmax."
        )
    if head != "pointer_network":
        return

    def lacking(pair):
        """Which words of the target, its end aside, do not stand in the source."""
        words = pair[LABELS][:-1]
        return tf.reduce_all(words[:, tf.newaxis] != pair["source_extended_ids"], axis=1)

    numbers = tf.data.Dataset.range(2**62)
    surfaces = read_surfaces(file_patterns)
    impossible = tf.data.Dataset.zip(numbers, examples, surfaces).filter(
        lambda _, pair, __: tf.reduce_any(lacking(pair))
    )
    for number, pair, source in impossible.take(1):
        place = int(tf.argmax(lacking(pair)))
        text = b" ".join(source.numpy()).decode("utf-8", errors="replace")
        raise ValueError(
            f"Head pointer_network outputs words of the source alone, but in the {split} pair {int(number) + 1}, with the source "
            f"{text[:200]!r}, word {place + 1} of the target does not stand there: mend the data, or choose a head with a "
            "vocabulary, such as joint_copy."
        )


def read_surfaces(file_patterns):
    """Returns the source tokens of each pair, in the order of `read_examples`: a tf.data.Dataset of string `[length]`."""
    files = tf.data.Dataset.list_files(file_patterns, shuffle=False)
    features = {"source_tokens": tf.io.RaggedFeature(tf.string)}
    records = tf.data.TFRecordDataset(files, compression_type="GZIP")
    return records.map(lambda serialized: tf.io.parse_single_example(serialized, features)["source_tokens"])
