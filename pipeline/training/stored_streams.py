"""The stream of a language model's words, on disk."""

import mmap
import tempfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.training.stored_pairs import mapped, write_part
from pipeline.training.transformed_files import read_batches

_FEATURES = ("ids", "context", "order")
# Passages that are put in order at a time.
_AT_ONCE = 4096


def read_stream(file_patterns: Sequence[str], folder: str | None = None) -> NDArray[np.int32]:
    """Reads transformed passages back into the stream that they were cut from.

    Args:
        file_patterns: list of glob patterns of gzipped TFRecord files.
        folder: where the stream stands: see `StoredPairs.read`.

    Returns:
        int32 `[words]`, in a file without a name. What a passage repeats of the one before is left
        out.

    Raises:
        TrainingDataError: a file is damaged, or the disk is full.
    """
    place = folder or tempfile.gettempdir()
    with (
        tempfile.TemporaryFile(dir=folder) as as_written,
        tempfile.TemporaryFile(dir=folder) as file,
    ):
        orders, lengths = [np.zeros(0, "int32")], [np.zeros(0, "int64")]
        for parsed in read_batches(file_patterns, dict.fromkeys(_FEATURES, tf.int64)):
            ids, context, order = (parsed[name] for name in _FEATURES)
            splits, repeated = ids.row_splits.numpy(), context.values.numpy()
            kept = np.diff(splits) - repeated
            starts = np.repeat(splits[:-1] + repeated, kept)
            places = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
            write_part(as_written, ids.values.numpy()[starts + places], place)
            orders.append(order.values.numpy())
            lengths.append(kept)
        order, length = np.argsort(np.concatenate(orders), kind="stable"), np.concatenate(lengths)
        starts = (np.cumsum(length) - length)[order]
        length = length[order]
        pages = mapped(as_written)
        for first in range(0, len(order), _AT_ONCE):
            own = length[first : first + _AT_ONCE]
            shifts = np.repeat(starts[first : first + _AT_ONCE] - (np.cumsum(own) - own), own)
            flat = np.frombuffer(pages or b"", "int32")
            write_part(file, flat[shifts + np.arange(own.sum())], place)
            del flat
            if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)
        return np.frombuffer(mapped(file) or b"", "int32")
