"""Training on several GPUs by one process (`MirroredStrategy`), with the loss of a training on one.

Keras 3 hands a loss that is a function to each replica as it is, so that n replicas' gradients add
up to n times one's. That is put right here, and what it does with their clipping in
`optimizer.Adam`. (Replicas of an update weigh alike, although one may have some tokens fewer.)
"""

from collections.abc import Callable

import tensorflow as tf

from keras_models import losses


def strategy() -> tf.distribute.Strategy:
    """Returns a strategy with one replica per GPU where there are several, else the default one.

    The default one has no overhead.
    """
    gpus = tf.config.list_physical_devices("GPU")
    return tf.distribute.MirroredStrategy() if len(gpus) > 1 else tf.distribute.get_strategy()


def loss(count: int) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns a replica's part of the loss, for `compile`.

    The parts of `count` replicas add up to the mean of their `losses.negative_log_likelihood`.
    """
    if count == 1:
        return losses.negative_log_likelihood

    def part(targets: tf.Tensor, target_log_prob: tf.Tensor) -> tf.Tensor:
        return losses.negative_log_likelihood(targets, target_log_prob) / count

    return part
