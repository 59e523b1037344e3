"""TensorFlow's graph optimizer (Grappler), which exported models do not need.

It optimizes each function before its first call. That takes seconds for a search and makes it no
faster. Training keeps it on.
"""

import contextlib
from collections.abc import Iterator

_OFF = "disable_meta_optimizer"


def turn_off() -> None:
    """Turns it off in this thread, and in threads that have not called a function yet."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({_OFF: True})


@contextlib.contextmanager
def turned_off() -> Iterator[None]:
    """Turns it off while the block runs: see `turn_off`."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    turn_off()
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_OFF: before.get(_OFF, False)})
