"""Which pairs make which batch of an epoch, found for all of them at a time."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def batch_size(length: int, batch_tokens: int) -> int:
    """Returns how many pairs of a bucket fill `batch_tokens`, padding included, at least 1."""
    return max(1, batch_tokens // (2 * length))


def buckets_of(lengths: NDArray[np.int32], bucket_lengths: Sequence[int]) -> NDArray[np.int8]:
    """Returns the number of the bucket of each length; that of no bucket if it fits none."""
    return np.searchsorted(np.asarray(bucket_lengths), lengths, side="left").astype("int8")


@dataclasses.dataclass(frozen=True, eq=False)
class EpochOrder:
    """The batches of an epoch: similar lengths together, in an order that is drawn.

    Attributes:
        pairs: int64 `[pairs]`, the numbers of the pairs, a batch behind the other.
        ends: int64 `[batches]`, where each batch ends in `pairs`.
    """

    pairs: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(
        cls, pairs: NDArray[np.int64], buckets: NDArray[np.int8], sizes: Sequence[int]
    ) -> "EpochOrder":
        """Returns the batches of pairs in a given order.

        Each pair goes to its bucket, and a bucket that is full is the next batch. At the end the
        buckets that are not full are batches too, the shortest first.

        Args:
            pairs: their numbers.
            buckets: the bucket of each of them.
            sizes: how many fill a bucket.
        """
        counts = np.bincount(buckets, minlength=len(sizes))
        # Places in `pairs`, by bucket.
        grouped = np.argsort(buckets, kind="stable")
        batch_sizes: list[NDArray[np.int64]] = []
        last_places: list[NDArray[np.int64]] = []
        start = 0
        for bucket, (count, size) in enumerate(zip(counts.tolist(), sizes)):
            full, rest = divmod(count, size)
            own = np.full(full + bool(rest), size)
            last = grouped[start + size - 1 : start + count : size]
            if rest:
                own[-1] = rest
                last = np.append(last, len(pairs) + bucket)
            batch_sizes.append(own)
            last_places.append(last)
            start += count
        in_bucket = np.concatenate(batch_sizes)
        starts = np.cumsum(in_bucket) - in_bucket
        order = np.argsort(np.concatenate(last_places), kind="stable")
        sizes_of = in_bucket[order]
        ends = np.cumsum(sizes_of)
        places = np.repeat(starts[order] - (ends - sizes_of), sizes_of) + np.arange(len(pairs))
        return cls(pairs[grouped[places]], ends)

    def __len__(self) -> int:
        return len(self.ends)

    def batch(self, number: int) -> NDArray[np.int64]:
        """Returns the numbers of the pairs of a batch."""
        start = self.ends[number - 1] if number else 0
        return self.pairs[start : self.ends[number]]


def count_batches(buckets: NDArray[np.int8], sizes: Sequence[int]) -> int:
    """Returns how many batches `EpochOrder.of` makes."""
    counts = np.bincount(buckets, minlength=len(sizes))
    return int(sum(-(-count // size) for count, size in zip(counts.tolist(), sizes)))
