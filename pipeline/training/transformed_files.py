"""Files of transformed examples, read in parts of some thousand, and checked to their end."""

import zlib
from collections.abc import Iterator, Mapping, Sequence

import tensorflow as tf

from pipeline.common import shards
from pipeline.common.errors import VerbatimError

# Records that are parsed at a time.
READ_AT_ONCE = 4096
_BLOCK = 1 << 20
# Bytes that a TFRecord file has beside each record: its length, and two checksums.
_BESIDE = 16
# A gzip file ends with its content's length, modulo 2^32, in 4 bytes; none has less than these.
_MODULUS = 1 << 32
_SHORTEST = 18
# zlib's number for content with the header of gzip.
_GZIP = zlib.MAX_WBITS | 16


class TrainingDataError(VerbatimError, ValueError):
    """The data of a training cannot be read; one sentence."""


def read_batches(
    file_patterns: Sequence[str], features: Mapping[str, tf.DType]
) -> Iterator[dict[str, tf.RaggedTensor]]:
    """Reads examples as they come, as dicts of ragged tensors of some thousand rows.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.
        features: tf.int64 or tf.string by name; the former are returned as int32.

    Raises:
        TrainingDataError: a file is damaged or ends early.
        pipeline.common.shards.ShardsError: a file is missing, or there are those of two attempts.
    """
    spec = {name: tf.io.RaggedFeature(dtype) for name, dtype in features.items()}

    def parse(serialized: tf.Tensor) -> tuple[dict[str, tf.RaggedTensor], tf.Tensor]:
        parsed = tf.io.parse_example(serialized, spec)
        size = tf.reduce_sum(tf.strings.length(serialized) + _BESIDE)
        return {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in parsed.items()
        }, size

    files = shards.matching(file_patterns)
    records = tf.data.TFRecordDataset(files, compression_type="GZIP")
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = records.batch(READ_AT_ONCE).map(parse).prefetch(2).with_options(options)
    read = 0
    try:
        for parsed, size in batches:
            read += int(size)
            yield parsed
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise TrainingDataError(
            f"A file of transformed examples among {', '.join(file_patterns)} is damaged or ends "
            f"early ({error.message.splitlines()[0]}): remove it and run the Transform again."
        ) from error
    _check_ends(files, read)


def _check_ends(paths: Sequence[str], read: int) -> None:
    """Checks that files were read to their end.

    TensorFlow takes a file that was cut off between two records, or in the 12 bytes before one, for
    a whole one. That all of it was read show the lengths at the files' ends; only where these do
    not fit are the files read again, to find the one that was cut off.
    """
    sizes = [_size(path) for path in paths]
    if None not in sizes and (sum(size or 0 for size in sizes) - read) % _MODULUS == 0:
        return
    for path in paths:
        if not _is_whole(path):
            raise TrainingDataError(
                f"The file of transformed examples {path} ends early: remove it and run the "
                "Transform again."
            )


def _size(path: str) -> int | None:
    """Returns how long the content of a gzip file is by its end; None if it has none."""
    with tf.io.gfile.GFile(path, "rb") as file:
        size = file.size()
        if size < _SHORTEST:
            return None
        file.seek(size - 4)
        return int.from_bytes(file.read(4), "little")


def _is_whole(path: str) -> bool:
    """Whether a file is some gzip files, one behind the other, and the last ends."""
    ended = False
    with tf.io.gfile.GFile(path, "rb") as file:
        rest = b""
        unpacker = zlib.decompressobj(_GZIP)
        while rest or (rest := file.read(_BLOCK)):
            if unpacker.eof:
                unpacker = zlib.decompressobj(_GZIP)
            try:
                unpacker.decompress(rest)
            except zlib.error:
                return False
            rest, ended = unpacker.unused_data, unpacker.eof
    return ended
