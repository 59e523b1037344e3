"""A lookup table, as far as the graph uses it."""

from typing import Protocol

import tensorflow as tf


class Table(Protocol):
    """What the graph asks of a lookup table."""

    def lookup(self, keys: tf.Tensor) -> tf.Tensor:
        """Returns the values of keys; a table says which value an unknown key has."""

    def size(self) -> tf.Tensor:
        """Returns the number of keys."""
