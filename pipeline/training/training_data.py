"""Transformed examples to padded batches of similar length."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.features import feature_names

LABELS = "target_extended_ids"
SURFACES = "source_tokens"
# Records.
_READ_AT_ONCE = 4096


def batch_size(length: int, batch_tokens: int) -> int:
    """Returns how many pairs of a bucket fill `batch_tokens`, padding included, at least 1."""
    return max(1, batch_tokens // (2 * length))


def read_examples(
    file_patterns: Sequence[str], names: Sequence[str] = feature_names.ID_FEATURES
) -> tf.data.Dataset:
    """Reads transformed tf.Examples, in an order that depends on what they hold alone.

    Beam writes them in another order each time; with this one, the same data and seed make the same
    training.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.
        names: the features to read; `SURFACES` may be one of them.

    Returns:
        tf.data.Dataset of dicts of `[length]` tensors, held in memory: int32, string for
        `SURFACES`.
    """
    return read_examples_and_digest(file_patterns, names)[0]


def read_examples_and_digest(
    file_patterns: Sequence[str], names: Sequence[str] = feature_names.ID_FEATURES
) -> tuple[tf.data.Dataset, bytes]:
    """Returns what `read_examples` does, and a digest of the examples.

    The digest is the same where the examples are, in whatever order they were written.
    """
    columns: dict[str, list[tf.RaggedTensor]] = {name: [] for name in names}
    for parsed in _read_batches(file_patterns, names):
        for name in names:
            columns[name].append(parsed[name])
    if not columns[names[0]]:
        # There are none.
        return _pairs(_read_batches(file_patterns, names).unbatch()), b""
    whole = {name: tf.concat(parts, axis=0) for name, parts in columns.items()}
    digests = _digests(whole.values())
    order = np.argsort(digests, kind="stable")
    ordered = tf.data.Dataset.from_tensor_slices(
        {name: tf.gather(rows, order) for name, rows in whole.items()}
    )
    return _pairs(ordered), digests[order].tobytes()


def _read_batches(file_patterns: Sequence[str], names: Sequence[str]) -> tf.data.Dataset:
    """Reads examples as they come, as dicts of ragged tensors of `_READ_AT_ONCE` rows."""
    dtypes = {
        name: (tf.string, tf.string) if name == SURFACES else (tf.int64, tf.int32) for name in names
    }
    features = {name: tf.io.RaggedFeature(stored) for name, (stored, _) in dtypes.items()}

    def parse(serialized: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        parsed = tf.io.parse_example(serialized, features)
        return {name: tf.cast(parsed[name], dtype) for name, (_, dtype) in dtypes.items()}

    files = tf.data.Dataset.list_files(file_patterns, shuffle=False)
    return tf.data.TFRecordDataset(files, compression_type="GZIP").batch(_READ_AT_ONCE).map(parse)


def _pairs(rows: tf.data.Dataset) -> tf.data.Dataset:
    """Returns single rows of ragged tensors as dicts of `[length]` tensors."""
    return rows.map(
        lambda pair: {name: tf.ensure_shape(value, [None]) for name, value in pair.items()}
    )


def _digests(columns: Iterable[tf.RaggedTensor]) -> NDArray[np.uint64]:
    """Returns a number for each row of some ragged tensors that depends on what it holds.

    Their order looks drawn, and is the same always.
    """
    parts = []
    for column in columns:
        flat, splits = column.values.numpy(), column.row_splits.numpy()
        write = b" ".join if flat.dtype == object else bytes
        parts.append([write(flat[start:end]) + b"|" for start, end in zip(splits, splits[1:])])
    rows = (hashlib.blake2b(b"".join(row), digest_size=8).digest() for row in zip(*parts))
    return np.array([int.from_bytes(row, "little") for row in rows], "uint64")


def pair_length(pair: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the longer of source and target length, a scalar."""
    return tf.maximum(tf.shape(pair["source_ids"])[0], tf.shape(pair[LABELS])[0])


def count_too_long(examples: tf.data.Dataset, bucket_lengths: Sequence[int]) -> tuple[int, int]:
    """Returns how many pairs no bucket holds, and how many there are."""
    longest = bucket_lengths[-1]
    zero = tf.constant(0, tf.int64)
    too_long, total = examples.reduce(
        (zero, zero),
        lambda sums, pair: (sums[0] + tf.cast(pair_length(pair) > longest, tf.int64), sums[1] + 1),
    )
    return int(too_long), int(total)


def make_batches(
    examples: tf.data.Dataset,
    bucket_lengths: Sequence[int],
    batch_tokens: int,
    shuffle_seed: int | None = None,
    epoch: int = 0,
) -> tf.data.Dataset:
    """Groups pairs of similar length into padded batches.

    Args:
        examples: what `read_examples` returned.
        bucket_lengths: rising list of lengths; a pair that fits none is left out (count them with
            `count_too_long`).
        batch_tokens: source and target tokens of a batch, padding included.
        shuffle_seed: shuffles, if given.
        epoch: the number of the epoch; each has an order of its own, which nothing else decides. So
            a training can go on where it was.

    Returns:
        tf.data.Dataset of `(inputs, labels)`: dict of int32 `[batch, length]`, and int32 `[batch,
        target_length]`; padding is what `feature_names.PADDING` says, else 0.
    """
    examples = examples.filter(lambda pair: pair_length(pair) <= bucket_lengths[-1])
    if shuffle_seed is not None:
        (seed,) = np.random.SeedSequence((shuffle_seed % (1 << 63), epoch)).generate_state(1)
        examples = examples.shuffle(100_000, seed=int(seed), reshuffle_each_iteration=False)
    sizes = [batch_size(length, batch_tokens) for length in bucket_lengths]
    batches = examples.bucket_by_sequence_length(
        pair_length,
        bucket_boundaries=[length + 1 for length in bucket_lengths],
        # The last size is for pairs beyond the last bucket, of which the filter left none.
        bucket_batch_sizes=[*sizes, 1],
        padding_values={
            name: tf.constant(feature_names.PADDING.get(name, 0)) for name in examples.element_spec
        },
    )
    options = tf.data.Options()
    # Ending an iterator waits for the autotuner's thread, which sleeps up to a minute between two
    # looks (TensorFlow 2.16): with two iterators an epoch, training stood still for longer than it
    # ran.
    options.autotune.enabled = False
    return batches.map(lambda inputs: (inputs, inputs[LABELS])).prefetch(8).with_options(options)


def check_head(head: str, file_patterns: Sequence[str], split: str) -> None:
    """Checks before a training that the head can output the targets.

    Args:
        head: name of the head.
        file_patterns: list of glob patterns of gzipped TFRecord files.
        split: what the pairs are called in messages.

    Raises:
        ValueError: head `pointer_network` and a target with a word that does not stand in its
            source; or a head that copies, and not a single source.
    """
    if head == "softmax":
        return
    names = (
        feature_names.ID_FEATURES
        if head != "pointer_network"
        else (*feature_names.ID_FEATURES, SURFACES)
    )
    # In no order and only as far as need be: nothing of it is trained on.
    examples = _pairs(_read_batches(file_patterns, names).unbatch())
    sources = examples.filter(lambda pair: tf.size(pair["source_ids"]) > 0)
    if not any(True for _ in sources.take(1)) and any(True for _ in examples.take(1)):
        raise ValueError(
            f"None of the {split} pairs has a source, so head {head} has nothing to copy: set "
            "model.head=softmax."
        )
    if head != "pointer_network":
        return

    def lacking(pair: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Returns which words of the target, its end aside, do not stand in the source."""
        words = pair[LABELS][:-1]
        return tf.reduce_all(words[:, tf.newaxis] != pair["source_extended_ids"], axis=1)

    for pair in examples.filter(lambda pair: tf.reduce_any(lacking(pair))).take(1):
        place = int(tf.argmax(lacking(pair)))
        text = b" ".join(pair[SURFACES].numpy()).decode("utf-8", errors="replace")
        raise ValueError(
            f"Head pointer_network only outputs words of the source, but in the {split} pair "
            f"with the source {text[:200]!r}, word {place + 1} of the target does not occur there: "
            "correct the data, or choose a head with a vocabulary, such as joint_copy."
        )
