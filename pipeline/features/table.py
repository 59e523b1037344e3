"""The part of a lookup table's interface that the graph uses."""

from typing import Protocol

import tensorflow as tf


class Table(Protocol):
    """The part of a lookup table's interface that the graph uses."""

    def lookup(self, keys: tf.Tensor) -> tf.Tensor:
        """Returns the values of keys; a table decides the value of an unknown key."""

    def size(self) -> tf.Tensor:
        """Returns the number of keys."""
