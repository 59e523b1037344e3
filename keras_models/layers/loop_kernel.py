"""A kernel that every step of a loop multiplies by."""

import keras
from keras import ops

from keras_models.layers.panels import product


class LoopKernel:
    """A kernel K `[size, units]`, made ready outside a loop for its products' gradients.

        y = x K,    dL/dx = dL/dy K^T,    dL/dK = x^T dL/dy

    TensorFlow's product with a transposed matrix copies that matrix at every step; for the rows of
    one batch this costs about as much as the product. Here K is transposed once. Other backends
    compile the whole loop and need no help.

    Args:
        kernel: a variable or tensor `[size, units]`.
        dtype: that of the products, the layer's `compute_dtype`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers.loop_kernel import LoopKernel
    >>> tuple(LoopKernel(np.eye(2), "float32").multiply(np.array([[1.0, 2.0]], "float32")).shape)
    (1, 2)
    """

    def __init__(self, kernel, dtype):
        # Always a tensor: gradients of the product cannot be taken for a variable.
        self._kernel = ops.cast(ops.convert_to_tensor(kernel), dtype)
        self._transposed = None
        if keras.backend.backend() == "tensorflow":
            self._transposed = ops.stop_gradient(ops.transpose(self._kernel))

    def multiply(self, rows):
        """Returns x K for rows `[batch, size]`: `[batch, units]`."""
        if self._transposed is None:
            return ops.matmul(rows, self._kernel)

        @ops.custom_gradient
        def product(rows, kernel):
            def gradients(upstream):
                return ops.matmul(upstream, self._transposed), ops.matmul(
                    ops.transpose(rows), upstream
                )

            return ops.matmul(rows, kernel), gradients

        return product(rows, self._kernel)


def multiply(rows, kernel):
    """Returns `rows [batch, size]` times a `LoopKernel`, variable or tensor `[size, units]`."""
    return kernel.multiply(rows) if isinstance(kernel, LoopKernel) else product(rows, kernel)
