"""Sequences of ids as buckets of a table: n-grams of characters, words that an encoder finds."""

from keras import ops

# A prime, so that sequences spread over the buckets; with so many buckets at most, each step stays
# within int32.
_FACTOR = 1009
MOST_BUCKETS = 2_000_000


def extend(value, ids, buckets):
    """The bucket of a sequence with one id more: (1009 value + ids) mod buckets.

    Args:
        value: int32, the bucket of the sequence before.
        ids: int32 of the same shape.
        buckets: how many there are, at most `MOST_BUCKETS`.
    """
    return ops.mod(value * _FACTOR + ids, buckets)
