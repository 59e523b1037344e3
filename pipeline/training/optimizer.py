"""The optimizer of trainings by Keras: Adam in one pass over the weights."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("verbatim")
class Adam(keras.optimizers.Adam):
    """Keras' Adam, which clips the sum of all replicas' gradients by its global norm.

    Keras' own clips each replica's by itself, before they are added up.

    The update of a weight is one operation of TensorFlow's, which reads and writes everything once;
    Keras' own is ten, each over all weights, and took a fifth of a small training's time on a CPU.
    The equations are the same (Kingma and Ba 2014, end of section 2).

    Args:
        learning_rate: a number.
        clip_norm: the largest global norm; None clips nothing.
        accumulated_batches: how many batches' gradients make one update.
        name: Keras' name of it.

    Raises:
        ValueError: several replicas and accumulated batches, which Keras cannot do.
    """

    def __init__(
        self,
        learning_rate: float,
        clip_norm: float | None = None,
        accumulated_batches: int = 1,
        name: str = "adam",
    ) -> None:
        count = tf.distribute.get_strategy().num_replicas_in_sync
        several = count > 1
        if several and accumulated_batches > 1:
            raise ValueError(
                f"On {count} GPUs one process cannot accumulate batches: set training.workers = "
                f"{count}, one process per GPU, or training.accumulated_batches = 1."
            )
        steps = accumulated_batches if accumulated_batches > 1 else None
        clips_later = None if several else clip_norm
        super().__init__(
            learning_rate, global_clipnorm=clips_later, gradient_accumulation_steps=steps, name=name
        )
        self._own = {"clip_norm": clip_norm, "accumulated_batches": accumulated_batches}
        self._summed_clip_norm = clip_norm if several else None
        self._several = several

    def apply(
        self,
        grads: Sequence[tf.Tensor | None],
        trainable_variables: Sequence[keras.Variable] | None = None,
    ) -> None:
        # A word that stands in a batch twice is two rows of an embedding's gradient, until they are
        # added up here: Keras would take the norm, and Adam's second moment, of the rows as they
        # are.
        grads = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        if self._summed_clip_norm:
            grads = self._sum_and_clip(grads)
        super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        # As Keras does it, without a tensor of all squares.
        return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        if self._several:
            # Which replica's moments belong to the variable is Keras' affair.
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        # Keras gives TensorFlow's own variable, whose moments are Keras'.
        weights, momentum, velocity = (
            variable,
            self._momentums[index].value,
            self._velocities[index].value,
        )
        step = keras.ops.cast(self.iterations + 1, weights.dtype)
        beta_1, beta_2, rate, epsilon = (
            tf.cast(number, weights.dtype)
            for number in (self.beta_1, self.beta_2, learning_rate, self.epsilon)
        )
        tf.raw_ops.ResourceApplyAdam(
            var=weights.handle,
            m=momentum.handle,
            v=velocity.handle,
            beta1_power=tf.pow(beta_1, step),
            beta2_power=tf.pow(beta_2, step),
            lr=rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=tf.cast(gradient, weights.dtype),
        )

    def _sum_and_clip(self, grads: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
        context = tf.distribute.get_replica_context()
        learnt = [number for number, grad in enumerate(grads) if grad is not None]
        summed = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [grads[number] for number in learnt]
        )
        clipped, _ = tf.clip_by_global_norm(summed, self._summed_clip_norm)
        for number, grad in zip(learnt, clipped):
            # Keras adds them up once more.
            grads[number] = grad / context.num_replicas_in_sync
        return grads

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {"learning_rate": config["learning_rate"], "name": config["name"], **self._own}
