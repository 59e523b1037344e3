"""Trainings that always end with the same bits, at some cost of speed."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def same_bits(enabled: bool = True) -> Iterator[None]:
    """Within it, what TensorFlow computes in this thread is the same each time, to the last bit.

    That holds on the same machine. Two things are not so otherwise. Some kernels, most of them a
    GPU's, add in the order in which their threads come; TensorFlow has others in their place. And
    `AddN`, which adds up gradients, begins with whichever of its inputs nobody else reads any more:
    that depends on which of two operations came first. So operations run one after the other, each
    still on all cores. Not where there is a GPU: what runs there and here at once may wait for each
    other, so there the second reason stays.

    Args:
        enabled: False changes nothing.
    """
    if not enabled:
        yield
        return
    # Stays on in the process; TensorFlow has no public way back.
    tf.config.experimental.enable_op_determinism()
    one_by_one = "" if tf.config.list_physical_devices("GPU") else "SINGLE_THREADED_EXECUTOR"
    with tf.experimental.function_executor_type(one_by_one):
        yield
