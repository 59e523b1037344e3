"""Digests of rows of numbers, computed for many rows at a time."""

import numpy as np
from numpy.typing import NDArray

# Odd constants without structure: the golden ratio's, and those of splitmix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns numbers that look drawn, each from one number alone (the end of splitmix64).

    Args:
        numbers: uint64 of any shape.

    References:
        Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators"
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))


def row_digests(
    values: NDArray[np.int32], splits: NDArray[np.int64], lengths: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """Returns a number for each row that depends on what the row holds alone.

    Rows that differ in a value, a place or a length have the same number with a chance of 2^-64.

    Args:
        values: `[total]`, the values of all rows.
        splits: `[rows + 1]`, where the rows begin and end in `values`.
        lengths: `[rows, columns]`, the lengths of the parts of a row.
    """
    places = np.arange(len(values), dtype="int64") - np.repeat(splits[:-1], np.diff(splits))
    terms = mixed((places + 1).astype("uint64") * _STEP + values.astype("uint32").astype("uint64"))
    # Sums modulo 2^64, from which the difference of two sums is exact.
    sums = np.concatenate([np.zeros(1, "uint64"), np.cumsum(terms, dtype="uint64")])
    digests = sums[splits[1:]] - sums[splits[:-1]]
    for column in lengths.T:
        digests = mixed(digests * _STEP + column.astype("uint64"))
    return digests
