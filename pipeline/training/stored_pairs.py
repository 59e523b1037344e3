"""Transformed pairs on disk, read at random."""

import dataclasses
import hashlib
import mmap
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
        words: the words of the texts, each one time, where they were read; see `words_of`.
    """

    names: tuple[str, ...]
    digest: bytes
    lengths: NDArray[np.int32]
    corpora: NDArray[np.int32] | None
    words: list[str]
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
        with_words: bool = False,
    ) -> "StoredPairs":
        """Reads transformed tf.Examples.

        Args:
            file_patterns: list of glob patterns of gzipped TFRecord files.
            names: the features to read, lists of ids.
            folder: where the file of the pairs goes; by default the system's folder for temporary
                files.
            with_corpora: whether to read `feature_names.CORPUS` too.
            with_words: whether to read `feature_names.WORDS` too.

        Raises:
            TrainingDataError: a file is damaged, or the disk is full.
        """
        names = (*names, *(feature_names.WORDS.values() if with_words else ()))
        stored = (*names, feature_names.CORPUS) if with_corpora else names
        numbers: dict[bytes, int] = {}
        with tempfile.TemporaryFile(dir=folder) as file:
            folder = folder or tempfile.gettempdir()
            digests, lengths = _write(file, file_patterns, stored, folder, numbers)
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
        words = [word.decode("utf-8") for word in numbers]
        return cls(names, digest, lengths[:, : len(names)], corpora, words, starts, pages)

    def __len__(self) -> int:
        return len(self.lengths)

    def column(self, name: str) -> int:
        """Returns the place of a feature in `lengths`."""
        return self.names.index(name)

    def words_of(self, pairs: NDArray[np.int64], name: str) -> tuple[list[str], NDArray[np.int32]]:
        """Returns the words of pairs, one behind the other, and how many each pair has.

        Args:
            pairs: their numbers.
            name: one of `feature_names.WORDS`.
        """
        numbers, lengths = self.batch(pairs, [name])[name], self.lengths[pairs, self.column(name)]
        real = np.arange(numbers.shape[1]) < lengths[:, np.newaxis]
        return [self.words[number] for number in numbers[real].tolist()], lengths

    def batch(
        self, pairs: NDArray[np.int64], only: Sequence[str] = ()
    ) -> dict[str, NDArray[np.int32]]:
        """Returns pairs by their numbers, as dict of int32 `[batch, length]`.

        Padding is what `feature_names.PADDING` says, else 0. Words are numbers in `words`.

        Args:
            pairs: the numbers.
            only: the features that are needed; all by default.
        """
        if self._pages is None:
            return {name: np.zeros((len(pairs), 0), "int32") for name in self.names}
        flat = np.frombuffer(self._pages, "int32")
        starts, lengths = self._starts[pairs], self.lengths[pairs]
        made = {}
        for name, own in zip(self.names, lengths.T):
            if only and name not in only:
                starts = starts + own
                continue
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
    file: IO[bytes],
    file_patterns: Sequence[str],
    names: Sequence[str],
    folder: str,
    numbers: dict[bytes, int],
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Writes the features of each row one behind the other; returns digests and lengths.

    Words are written as their numbers, which `numbers` gets.
    """
    digests, lengths = [np.zeros(0, "uint64")], [np.zeros((0, len(names)), "int32")]
    words = [name for name in names if name in feature_names.WORDS.values()]
    kinds = {name: tf.string if name in words else tf.int64 for name in names}
    for parsed in read_batches(file_patterns, kinds):
        # Numbers depend on what was read before; a row's digest, on the row alone.
        hashed = {name: _with(parsed[name], _hashes) for name in words}
        flat, splits, own = interleaved({**parsed, **hashed}, names)
        digests.append(row_digests(flat, splits, own))
        lengths.append(own)
        if words:
            numbered = {name: _with(parsed[name], lambda w: _numbers(w, numbers)) for name in words}
            flat, _, _ = interleaved({**parsed, **numbered}, names)
        write_part(file, flat, folder)
    return np.concatenate(digests), np.concatenate(lengths)


def _with(ragged: tf.RaggedTensor, function: Callable[[tf.Tensor], tf.Tensor]) -> tf.RaggedTensor:
    return ragged.with_values(function(ragged.values))


def _hashes(words: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.strings.to_hash_bucket_fast(words, np.iinfo("int32").max), tf.int32)


def _numbers(words: tf.Tensor, numbers: dict[bytes, int]) -> tf.Tensor:
    """Returns the number of each word; a word that is new gets the next one."""
    found = [numbers.setdefault(word, len(numbers)) for word in words.numpy()]
    return tf.constant(found, tf.int32, shape=[len(found)])


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
