"""Random numbers that are the same wherever they are drawn."""

import numpy as np
from keras import ops


def draw_uniforms(seed, batch, n_samples, max_length):
    """Returns random numbers, float32 `[batch, n_samples, max_length + 1]` in [0, 1).

    They depend on the seed and the sizes alone: compiled or not, on any backend and device. A
    backend's own generator does not promise that (TensorFlow's differs under XLA), so each number
    is a hash of its place and the seed.

    Args:
        seed: int, of which the remainder by 2^31 counts, or an int32 scalar tensor.
        batch, n_samples, max_length: ints or scalar tensors.
    """
    count = batch * n_samples * (max_length + 1)
    seed = seed % 2**31 if isinstance(seed, int) else seed
    key = _hash(ops.cast(seed, "uint32"))
    numbers = _hash(_hash(ops.cast(ops.arange(count, dtype="int32"), "uint32") ^ key) + key)
    # The 24 high bits: as many as a float32 holds.
    numbers = ops.cast(ops.right_shift(numbers, _constant(8)), "float32") * 2.0**-24
    return ops.reshape(numbers, (batch, n_samples, max_length + 1))


def _constant(number):
    return ops.convert_to_tensor(np.uint32(number))


def _hash(numbers):
    """Mixes the bits of uint32 numbers: C. Wellons' lowbias32, after MurmurHash3's finalizer."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        numbers = (numbers ^ ops.right_shift(numbers, _constant(shift))) * _constant(factor)
    return numbers ^ ops.right_shift(numbers, _constant(16))
