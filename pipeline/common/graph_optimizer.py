"""TensorFlow's optimizer of graphs (Grappler), which exported models do without.

It works on each function before its first call, which takes seconds for a search, and makes none of
them faster: an exported graph is written as it should run, and XLA has an optimizer of its own.
Trainings keep it.
"""

import contextlib
from collections.abc import Iterator

_OFF = "disable_meta_optimizer"


def turn_off() -> None:
    """Calls functions as they are written, from now on and in the whole process."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({_OFF: True})


@contextlib.contextmanager
def turned_off() -> Iterator[None]:
    """Calls functions as they are written while the block runs, in the whole process."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    turn_off()
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_OFF: before.get(_OFF, False)})
