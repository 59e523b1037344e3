"""Products of a few rows with large kernels, which are laid out for them beforehand."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_models.layers.numerics import rowwise

# Columns of a panel. Of 16 to 128, products with 32 and 64 were the fastest.
WIDTH = 64
# Products that may be computed at the same time, by a core each.
PARTS = 4
# The fewest numbers of a kernel for which panels are made. Smaller ones stay in the caches anyway.
SMALLEST = 2**16
# With one row a processor reads the kernel as it is; with many the order in which it is read costs
# little beside the product.
FEWEST_ROWS, MOST_ROWS = 2, 20

_in_use = contextvars.ContextVar("panels", default=None)


def lay_out(kernel):
    """Cuts a kernel `[size, units]` into panels of `WIDTH` columns, each of which lies together.

    A product of matrices first copies its factors into the order in which it reads them. For a few
    rows, such as the hypotheses of one sentence, this copy takes longer than the product.

    Returns:
        Tensors `[panels, size, width]`, one for each part of a `product`, in the order of the
        columns. The last has what is left of less than a panel, if anything.
    """
    size, units = kernel.shape
    kernel = ops.convert_to_tensor(kernel)
    number = units // WIDTH
    ends = [WIDTH * (number * part // PARTS) for part in range(PARTS + 1)]
    parts = [
        ops.transpose(
            ops.reshape(kernel[:, first:end], (size, (end - first) // WIDTH, WIDTH)), (1, 0, 2)
        )
        for first, end in zip(ends, ends[1:])
        if end > first
    ]
    rest = kernel[:, WIDTH * number :]
    return [*parts, ops.expand_dims(rest, 0)] if units % WIDTH else parts


def tables_of(kernels, dtype):
    """Returns the panels of those kernels that are large enough, as a dict from name to tensor.

    Args:
        kernels: pairs of a variable and the kernel `[size, units]` that it is, or that is made of
            it.
        dtype: that of the products.
    """
    return {
        _name(number, place): ops.cast(part, dtype)
        for number, (_, kernel) in enumerate(kernels)
        if kernel.shape[0] * kernel.shape[1] >= SMALLEST
        for place, part in enumerate(lay_out(kernel))
    }


@contextlib.contextmanager
def in_use(kernels, tables):
    """Makes each `product` with one of the kernels use its panels, until the context ends.

    Args:
        kernels: those that `tables_of` was given.
        tables: what it returned, perhaps among others.
    """
    panels = {}
    for number, (variable, _) in enumerate(kernels):
        parts = []
        while _name(number, len(parts)) in tables:
            parts.append(tables[_name(number, len(parts))])
        if parts:
            panels[id(variable)] = parts
    token = _in_use.set(panels)
    try:
        yield
    finally:
        _in_use.reset(token)


def product(rows, kernel, variable=None):
    """Returns rows times a kernel, by its panels if those are in use.

    They are used for few rows alone, of which the number must be known when the graph is made.

    Args:
        rows: `[batch, size]`.
        kernel: `[size, units]`.
        variable: what the kernel is made of, if it is none itself.

    Returns:
        `[batch, units]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import panels
    >>> kernel, rows = np.ones((300, 250), "float32"), np.ones((2, 300), "float32")
    >>> kernels = [(kernel, kernel)]
    >>> with panels.in_use(kernels, panels.tables_of(kernels, "float32")):
    ...     tuple(panels.product(rows, kernel).shape)
    (2, 250)
    """
    parts = _parts(kernel if variable is None else variable)
    few = FEWEST_ROWS <= (rows.shape[0] or 0) <= MOST_ROWS
    if parts is None or not few or len({_dtype(parts[0]), _dtype(rows)}) > 1:
        return ops.matmul(rows, kernel)
    products = [_product_of_part(rows, ops.convert_to_tensor(part)) for part in parts]
    return ops.concatenate(products, axis=-1)


def _product_of_part(rows, part):
    """`[batch, size]` times `[panels, size, width]`: `[batch, panels * width]`."""
    batch, size = rows.shape
    number, _, width = part.shape
    # Rows of each panel's own: with one matrix for all, a compiler makes one product of them again
    # and moves the panels.
    copies = ops.broadcast_to(ops.expand_dims(rows, 0), (number, batch, size))
    return ops.reshape(ops.transpose(ops.matmul(copies, part), (1, 0, 2)), (batch, number * width))


def _parts(variable):
    return (_in_use.get() or {}).get(id(variable))


def _dtype(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def _name(number, place):
    return f"panels_{number}_{place}"


class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, whose kernel's panels are used if there are any: see `product`."""

    def call(self, inputs, training=None):
        if _parts(self.kernel) is None:
            return super().call(inputs, training=training)
        outputs = rowwise(lambda rows: product(rows, self.kernel), inputs)
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs if self.activation is None else self.activation(outputs)
