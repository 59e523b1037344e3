"""Transformed pairs on disk, read at random."""

import dataclasses
import hashlib
import mmap
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.features import feature_names
from pipeline.training.row_digests import row_digests
from pipeline.training.transformed_files import TrainingDataError, read_batches

# Rows after which the pages that they stood on are given back: a read maps up to 64 KB around it,
# which would count as memory of this process until the whole file is in it.
_ROWS_IN_MEMORY = 2048


@dataclasses.dataclass(eq=False)
class StoredPairs:
    """Pairs of id features in a file without a name; memory holds some bytes a pair.

    The pairs are numbered in an order that depends on what they hold alone: Beam writes them in
    another order each time, and the same data and seed make the same training.

    The file is on the disk until the process ends, however it ends. Nothing is left behind, and
    nothing that is stale is ever read.

    Attributes:
        names: the features.
        digest: the same bytes wherever the pairs are the same, in whatever order they were written.
        lengths: int32 `[pairs, features]`.
        corpora: the number of each pair's corpus, where they were read.
    """

    names: tuple[str, ...]
    digest: bytes
    lengths: NDArray[np.int32]
    corpora: NDArray[np.int32] | None
    _starts: NDArray[np.int64]
    _pages: mmap.mmap | None
    _rows_in_memory: int = 0

    @classmethod
    def read(
        cls,
        file_patterns: Sequence[str],
        names: Sequence[str] = feature_names.ID_FEATURES,
        folder: str | None = None,
        with_corpora: bool = False,
    ) -> "StoredPairs":
        """Reads transformed tf.Examples.

        Args:
            file_patterns: list of glob patterns of gzipped TFRecord files.
            names: the features to read, lists of ids.
            folder: where the file of the pairs goes; by default the system's folder for temporary
                files.
            with_corpora: whether to read `feature_names.CORPUS` too.

        Raises:
            TrainingDataError: a file is damaged, or the disk is full.
        """
        stored = (*names, feature_names.CORPUS) if with_corpora else names
        with tempfile.TemporaryFile(dir=folder) as file:
            digests, lengths = _write(file, file_patterns, stored, folder or tempfile.gettempdir())
            pages = mapped(file)
        if pages is not None and hasattr(mmap, "MADV_RANDOM"):
            pages.madvise(mmap.MADV_RANDOM)
        totals = lengths.sum(axis=1, dtype="int64")
        order = np.argsort(digests, kind="stable")
        starts, lengths = (np.cumsum(totals) - totals)[order], lengths[order]
        digest = hashlib.sha256(digests[order].tobytes()).digest()
        corpora = None
        if with_corpora:
            if np.any(lengths[:, -1] != 1):
                raise TrainingDataError(
                    f"The examples in {', '.join(file_patterns)} have no corpora: run the "
                    "Transform again."
                )
            # The last number of each pair.
            flat = np.frombuffer(pages or b"", "int32")
            corpora = flat[starts + lengths.sum(axis=1, dtype="int64") - 1]
            del flat
        return cls(tuple(names), digest, lengths[:, : len(names)], corpora, starts, pages)

    def __len__(self) -> int:
        return len(self.lengths)

    def column(self, name: str) -> int:
        """Returns the place of a feature in `lengths`."""
        return self.names.index(name)

    def batch(self, pairs: NDArray[np.int64]) -> dict[str, NDArray[np.int32]]:
        """Returns pairs by their numbers, as dict of int32 `[batch, length]`.

        Padding is what `feature_names.PADDING` says, else 0.
        """
        if self._pages is None:
            return {name: np.zeros((len(pairs), 0), "int32") for name in self.names}
        flat = np.frombuffer(self._pages, "int32")
        starts, lengths = self._starts[pairs], self.lengths[pairs]
        made = {}
        for name, own in zip(self.names, lengths.T):
            places = np.arange(own.max(initial=0))
            values = flat.take(starts[:, np.newaxis] + places, mode="clip")
            padding = feature_names.PADDING.get(name, 0)
            made[name] = np.where(places < own[:, np.newaxis], values, np.int32(padding))
            starts = starts + own
        del flat
        self._rows_in_memory += len(pairs)
        if self._rows_in_memory >= _ROWS_IN_MEMORY and hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)
            self._rows_in_memory = 0
        return made


def interleaved(
    parsed: Mapping[str, tf.RaggedTensor], names: Sequence[str]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Returns rows with the values of all features one behind the other.

    Returns:
        int32 `[total]`; `[rows + 1]`, where the rows begin and end in it; and the lengths of the
        features, `[rows, features]`.
    """
    parts = [(parsed[name].values.numpy(), parsed[name].row_splits.numpy()) for name in names]
    lengths = np.stack([np.diff(splits) for _, splits in parts], axis=1)
    splits = np.concatenate([np.zeros(1, "int64"), np.cumsum(lengths.sum(axis=1))])
    flat = np.empty(splits[-1], "int32")
    begins = splits[:-1]
    for (values, value_splits), own in zip(parts, lengths.T):
        flat[np.arange(len(values)) + np.repeat(begins - value_splits[:-1], own)] = values
        begins = begins + own
    return flat, splits, lengths.astype("int32")


def _write(
    file: IO[bytes], file_patterns: Sequence[str], names: Sequence[str], folder: str
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Writes the features of each row one behind the other; returns digests and lengths."""
    digests, lengths = [np.zeros(0, "uint64")], [np.zeros((0, len(names)), "int32")]
    for parsed in read_batches(file_patterns, dict.fromkeys(names, tf.int64)):
        flat, splits, own = interleaved(parsed, names)
        digests.append(row_digests(flat, splits, own))
        lengths.append(own)
        write_part(file, flat, folder)
    return np.concatenate(digests), np.concatenate(lengths)


def write_part(file: IO[bytes], numbers: NDArray[np.int32], folder: str) -> None:
    """Writes numbers at the end of a file.

    Raises:
        TrainingDataError: the disk is full.
    """
    try:
        file.write(numbers.data)
    except OSError as error:
        raise TrainingDataError(
            f"The training's data cannot be written to {folder} ({error.strerror}): free some "
            "space there."
        ) from error


def mapped(file: IO[bytes]) -> mmap.mmap | None:
    """Returns the content of a file that was just written, None if it is empty."""
    file.flush()
    size = file.tell()
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else None
