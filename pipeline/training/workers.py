"""The processes that train together, and what they exchange."""

import zlib
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from pipeline.training import training_data
from pipeline.training.tf_config import DataParallelError, WorkerPlace


class Workers:
    """The workers of one training, of which this process is one.

    Made before TensorFlow does anything else.

    Args:
        place: which of several workers this process is.

    Attributes:
        count: how many they are.
        index: which one this is; 0 is the chief, who writes checkpoints, logs and the model.
    """

    def __init__(self, place: WorkerPlace) -> None:
        self.count, self.index = place
        if gpus := tf.config.list_physical_devices("GPU"):
            # One each. Where every worker sees all of the machine's, they take them in turn.
            tf.config.set_visible_devices(gpus[self.index % len(gpus)], "GPU")
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @property
    def is_chief(self) -> bool:
        """Whether this process is the chief."""
        return self.index == 0

    def sum(self, vector: tf.Tensor) -> tf.Tensor:
        """Returns the sum of all workers' vectors of one shape and type. Waits for them."""

        def reduced(part: tf.Tensor) -> tf.Tensor:
            # Made here, so that it has a device: the sum goes where its part is.
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, tf.identity(part)
            )

        return self._strategy.run(reduced, args=(vector,))

    @tf.function
    def sum_now(self, vector: tf.Tensor) -> tf.Tensor:
        """Returns `sum`, outside of other functions of TensorFlow."""
        return self.sum(vector)

    def wait(self) -> None:
        """Waits until all workers are here."""
        self.sum_now(tf.zeros([1]))

    def agree(self, digest: str, place: str) -> None:
        """Makes sure that all train the same, from the same place.

        Args:
            digest: what the training is made from.
            place: where in it this worker is.

        Raises:
            DataParallelError: they do not; on every worker.
        """
        own = np.array([zlib.crc32(text.encode()) for text in (digest, place)], "float64")
        chief = self.sum_now(tf.constant(own * self.is_chief)).numpy()
        differing = self.sum_now(tf.constant((own != chief).astype("float64"))).numpy()
        if differing[0]:
            raise DataParallelError(
                f"{int(differing[0])} of the {self.count} workers have other data, another recipe "
                "or other versions than the first: give all of them the same files and the same "
                "environment."
            )
        if differing[1]:
            raise DataParallelError(
                f"{int(differing[1])} of the {self.count} workers read another checkpoint than the "
                "first, or none: let all of them share the folder of checkpoints."
            )

    def own_rows(
        self, inputs: Mapping[str, tf.Tensor], labels: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns this worker's rows of a batch, and its share of the batch's tokens.

        Args:
            inputs: dict of `[batch, ...]` tensors, with the labels among them.
            labels: int `[batch, target_length]`, 0 at padding.

        Returns:
            `inputs` and `labels` of `[rows, ...]`, at least one row: where a batch has fewer rows
            than there are workers, a first row without a target; and a float32 scalar, the shares
            of all workers sum to 1.
        """
        rows = tf.shape(labels)[0]
        own = tf.range(self.index, tf.maximum(rows, self.index + 1), self.count)
        real = own < rows
        own = tf.where(real, own, 0)
        own_inputs = {name: tf.gather(values, own) for name, values in inputs.items()}
        own_labels = tf.where(real[:, tf.newaxis], tf.gather(labels, own), 0)
        own_inputs[training_data.LABELS] = own_labels
        tokens, of_all = (
            tf.math.count_nonzero(ids, dtype=tf.float32) for ids in (own_labels, labels)
        )
        return own_inputs, own_labels, tokens / tf.maximum(of_all, 1.0)
