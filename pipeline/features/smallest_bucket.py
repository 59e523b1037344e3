"""The size that something is padded to, of a fixed list of sizes."""

from collections.abc import Sequence

import tensorflow as tf


def smallest_bucket(size: tf.Tensor, buckets: Sequence[int]) -> tf.Tensor:
    """Returns the smallest bucket that holds `size`, the largest if none does; int32 scalars."""
    sizes = tf.constant(buckets, tf.int32)
    index = tf.searchsorted(sizes, tf.expand_dims(size, 0))[0]
    return sizes[tf.minimum(index, tf.size(sizes) - 1)]
