"""Keys and values of the steps before, which the hypotheses of a source share."""

import typing

import keras
from keras import ops

from keras_models.layers.axes import merge_axes, product, split_axis


class Shared(typing.NamedTuple):
    """Tensors `[batch, ...]` that belong to the sources, in the carry or the memory of a search.

    A search has a row for each hypothesis, moves the rows as hypotheses are chosen, and repeats
    what a body gives it for the hypotheses of each source. These it does not repeat or move.
    """

    tensors: typing.Any


def map_rows(function, tree, of_sources=None):
    """Applies a function to the tensors of a nest that have a row for each hypothesis.

    Args:
        function: of a tensor `[batch * hypotheses, ...]`.
        tree: a nest, in which `Shared` may be.
        of_sources: function of a tensor `[batch, ...]` that is `Shared`; None leaves it alone.
    """

    def visit(node):
        if isinstance(node, Shared):
            return node if of_sources is None else keras.tree.map_structure(of_sources, node)
        return None if keras.tree.is_nested(node) else function(node)

    return keras.tree.traverse(visit, tree)


def write_step(cache, values, index):
    """Writes what a step has into a cache.

    Args:
        cache: `[batch, heads, max_length, hypotheses, size]`, or `[batch, heads, max_length, size]`
            for one hypothesis of each source.
        values: `[batch, heads, hypotheses, size]`.
        index: number of the step, an int or scalar tensor.

    Returns:
        The new cache. XLA writes in place; picking the values by a mask would write all of it.
    """
    batch, heads, length, *rest = ops.shape(cache)
    rows = product([batch, heads])
    # Not `ops.slice_update`, which is an XLA operation even where a served model does without XLA.
    places = ops.arange(rows, dtype="int32") * length + index
    steps = ops.scatter_update(
        ops.reshape(cache, (rows * length, product(rest))),
        ops.expand_dims(places, 1),
        ops.reshape(values, (rows, product(rest))),
    )
    return ops.reshape(steps, (batch, heads, length, *rest))


def entries(cache):
    """Returns a cache as keys or values: `[batch, heads, max_length * hypotheses, size]`."""
    if len(cache.shape) == 4:
        return cache
    batch, heads, length, hypotheses, size = ops.shape(cache)
    return ops.reshape(cache, (batch, heads, length * hypotheses, size))


def follow(ancestors, index, hypotheses):
    """Notes where the hypotheses write a step, and returns what they may read.

    A hypothesis writes each step at its own place among those of its source. When it gets another
    place, or several hypotheses continue it, the cache stays as it is, and the number of the place
    of each of its steps moves with it.

    Args:
        ancestors: int32 `[batch * hypotheses, max_length]`, the place of each step before.
        index: number of the step, an int or scalar tensor.
        hypotheses: how many a source has.

    Returns:
        `ancestors` with the step, and bool `[batch, hypotheses, max_length * hypotheses]`: which
        `entries` of the source's cache are a hypothesis' own steps, up to this one.
    """
    rows, length = ops.shape(ancestors)
    times = ops.arange(length, dtype="int32")
    places = ops.arange(hypotheses, dtype="int32")
    own = ops.expand_dims(ops.arange(rows, dtype="int32") % hypotheses, 1)
    ancestors = ops.where(ops.equal(times, index), own, ancestors)
    allowed = ops.logical_and(
        ops.equal(ops.expand_dims(ancestors, -1), places), ops.expand_dims(times <= index, -1)
    )
    return ancestors, split_axis(ops.reshape(allowed, (rows, length * hypotheses)), hypotheses)


def beside(rows, hypotheses):
    """Puts the hypotheses of each source beside each other.

    `[batch * hypotheses, 1, size]` becomes `[batch, hypotheses, size]`.
    """
    return split_axis(merge_axes(rows, 2), hypotheses)


def one_below_another(states):
    """The inverse of `beside`."""
    return ops.expand_dims(merge_axes(states, 2), 1)
