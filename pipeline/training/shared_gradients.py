"""The sum of the workers' gradients on one machine, by memory that they share.

TensorFlow's workers add up over gRPC, on one machine too: gradients are packed, sent, added,
received and unpacked. Here each worker writes its gradients to a place in memory that all of them
see, waits for the others, and adds up what all have written, in one order. So all get the same
bits. The wait is a sum over gRPC of a few numbers, with all that TensorFlow does where a worker is
lost.

The file of the memory is removed as soon as all workers have opened it, before they train. So a
worker that is killed later leaves nothing behind.
"""

import contextlib
import math
import mmap
import os
import pathlib
import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from pipeline.training.workers import Workers

#: Where Linux has files that are memory.
FOLDER = pathlib.Path("/dev/shm")
# TensorFlow takes an array as it is, without a copy, where it begins at a multiple of 64 bytes.
_FLOATS_OF_64_BYTES = 16
_FLOAT_BYTES = 4
# A float64 holds whole numbers of up to 53 bits, and workers exchange nothing but sums of floats.
_NAME_BITS = 48

Gradient = npt.NDArray[np.float32]


class SharedGradients:
    """Gradients of all workers, float32, each worker's in a place of its own, twice.

    An update writes to one half of the memory and the next one to the other half. All workers wait
    for each other in each update, so one can be ahead of another by less than two updates, and
    nobody writes to what is still read.

    Args:
        memory: `size_of(shapes, count)` bytes, which all workers see.
        shapes: the gradients' shapes.
        count: how many workers there are.
        index: which one this is.
    """

    def __init__(
        self, memory: mmap.mmap, shapes: Sequence[Sequence[int]], count: int, index: int
    ) -> None:
        self._shapes, self._index = [tuple(shape) for shape in shapes], index
        self._starts = _starts(shapes)
        floats = self._starts[-1]
        self._written = np.frombuffer(memory, np.float32).reshape(2, count, floats)
        # A map begins at a page, so a multiple of 64 bytes.
        self._sum = np.frombuffer(mmap.mmap(-1, floats * _FLOAT_BYTES), np.float32)
        self._half = 0

    def write(self, share: float, gradients: Sequence[Gradient], numbers: Sequence[int]) -> None:
        """Writes this worker's part of the sum.

        Args:
            share: what its gradients are multiplied by.
            gradients: some of its gradients.
            numbers: which ones, as numbers of `shapes`.
        """
        self._half = 1 - self._half
        own = self._written[self._half, self._index]
        for number, gradient in zip(numbers, gradients, strict=True):
            np.multiply(gradient, share, out=self._part(own, number))

    def total(self, numbers: Sequence[int]) -> list[Gradient]:
        """Returns the sums of what all workers have written; they hold until the next call.

        Args:
            numbers: which gradients, as numbers of `shapes`.
        """
        first, second, *others = self._written[self._half]
        np.add(first, second, out=self._sum)
        for other in others:
            np.add(self._sum, other, out=self._sum)
        return [self._part(self._sum, number) for number in numbers]

    def _part(self, floats: Gradient, number: int) -> Gradient:
        """Returns one gradient's place in `floats`, which has all of a worker's."""
        start, shape = self._starts[number], self._shapes[number]
        return floats[start : start + math.prod(shape)].reshape(shape)

    def summed(
        self,
        workers: Workers,
        gradients: Sequence[tf.Tensor],
        numbers: Sequence[int],
        share: tf.Tensor,
        scalars: tf.Tensor,
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Returns sums over all workers: of their gradients times their shares, and of scalars.

        Every worker calls it, in a function of TensorFlow; it waits for them.

        Args:
            workers: the workers.
            gradients: float32, of this worker.
            numbers: which ones they are, as numbers of `shapes`.
            share: float32 scalar, what this worker's gradients are multiplied by.
            scalars: float32 `[n]`.
        """

        def write(share: Gradient, *gradients: Gradient) -> Gradient:
            self.write(float(share), gradients, numbers)
            return np.zeros(1, "float32")

        written = tf.numpy_function(write, [share, *gradients], tf.float32)
        scalars = workers.sum(tf.concat([scalars, tf.ensure_shape(written, [1])], axis=0))[:-1]
        with tf.control_dependencies([scalars]):
            sums = tf.numpy_function(lambda: self.total(numbers), [], [tf.float32] * len(gradients))
        shaped = [tf.ensure_shape(one, self._shapes[number]) for number, one in zip(numbers, sums)]
        return shaped, scalars


def _starts(shapes: Sequence[Sequence[int]]) -> list[int]:
    """Returns where each gradient begins, in floats, and after them where the last one ends."""
    starts = [0]
    for shape in shapes:
        blocks = -(-math.prod(shape) // _FLOATS_OF_64_BYTES)
        starts.append(starts[-1] + blocks * _FLOATS_OF_64_BYTES)
    return starts


def size_of(shapes: Sequence[Sequence[int]], count: int) -> int:
    """Returns the bytes that the gradients of `count` workers take."""
    return 2 * count * _starts(shapes)[-1] * _FLOAT_BYTES


def open_together(workers: Workers, shapes: Sequence[Sequence[int]]) -> SharedGradients | None:
    """Returns the workers' shared gradients; None, on each of them, if one cannot share memory.

    That is so on several machines, and where the machine's shared memory is too small (a container
    has 64 MB of it by default). On GPUs, TensorFlow's own sum is the faster one. Every worker calls
    it.

    Args:
        workers: the workers.
        shapes: the gradients' shapes, the same on each worker.
    """
    size = size_of(shapes, workers.count)
    wanted = FOLDER.is_dir() and not tf.config.get_visible_devices("GPU")
    memory = None
    name = secrets.randbits(_NAME_BITS) if workers.is_chief else 0
    name = int(workers.sum_now(tf.constant([float(name)], tf.float64)).numpy()[0])
    path = FOLDER / f"verbatim-{name:012x}"
    try:
        # The chief makes the file; then the others look for it.
        if workers.is_chief and wanted:
            memory = _map(path, size, create=True)
        workers.wait()
        if not workers.is_chief and wanted:
            memory = _map(path, size, create=False)
        have = workers.sum_now(tf.constant([float(memory is not None)])).numpy()[0]
    finally:
        if workers.is_chief:
            path.unlink(missing_ok=True)
    if memory is None or have < workers.count:
        return None
    return SharedGradients(memory, shapes, workers.count, workers.index)


def _map(path: pathlib.Path, size: int, create: bool) -> mmap.mmap | None:
    """Returns the memory of a file, which is made with `create`; None if there is not enough."""
    flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0)
    # ValueError: the file is smaller, for its maker had not enough memory.
    with contextlib.suppress(OSError, ValueError):
        file = os.open(path, flags, 0o600)
        try:
            if create:
                # All of it now: a page that the machine lacks later would end the process.
                os.posix_fallocate(file, 0, size)
            return mmap.mmap(file, size)
        finally:
            os.close(file)
    return None
