"""Functions of tensors with one graph, however many other graphs call them.

A nested `tf.function` would be traced again by each graph that calls it, and a plain function
writes its operations into each.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Result = TypeVar("_Result")


class TracedOnce(Generic[_Result]):
    """A function that is traced by its first call for tensors of the same types and shapes.

    Args:
        function: of tensors, ragged tensors, and dicts and tuples of them; it returns such. It
            must read no other tensors of a graph.
    """

    def __init__(self, function: Callable[..., _Result]) -> None:
        self._function = function
        self._graphs: dict[tuple[Any, ...], Callable[..., _Result]] = {}

    def __call__(self, *inputs: Any) -> _Result:
        """Returns what the function returns."""
        import tensorflow as tf

        structure = tf.nest.map_structure(tf.type_spec_from_value, inputs)
        key = tuple(tf.nest.flatten(structure))
        if key not in self._graphs:

            def of_parts(*parts: "tf.Tensor") -> _Result:
                packed = tf.nest.pack_sequence_as(structure, parts, expand_composites=True)
                return self._function(*packed)

            specs = tf.nest.flatten(structure, expand_composites=True)
            traced = tf.function(of_parts, input_signature=specs, autograph=False)
            with tf.init_scope():
                self._graphs[key] = traced.get_concrete_function()
        return self._graphs[key](*tf.nest.flatten(inputs, expand_composites=True))
