"""The optimizers of trainings by Keras: one that a recipe names, clipped over all replicas."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from pipeline.recipes.sections import TrainingConfig

# Zeiler (2012), section 4: with them Adadelta needs no tuning.
_ADADELTA = {"rho": 0.95, "epsilon": 1e-6}
# Weights that do not decay, by their names in Keras.
_NO_DECAY = ("bias", "gamma", "beta", "scale")


class _SummedClipping(keras.optimizers.Optimizer):
    """Clips the sum of all replicas' gradients: each element first, then the global norm.

    Keras' own clips each replica's by itself, before they are added up, and either elements or the
    norm. Stands before a Keras optimizer among the bases.

    Args:
        learning_rate: a number.
        clip_norm: the largest global norm; None clips nothing.
        accumulated_batches: how many batches' gradients make one update.
        clip_value: the largest element; None clips nothing.
        weight_decay: the share of each weight, times the learning rate, that an update takes away;
            biases, and the scales of normalisation, keep theirs. None takes nothing.
        name: Keras' name of it.
        **options: the optimizer's own.

    Raises:
        ValueError: several replicas and accumulated batches, which Keras cannot do.
    """

    def __init__(
        self,
        learning_rate: float,
        clip_norm: float | None = None,
        accumulated_batches: int = 1,
        clip_value: float | None = None,
        weight_decay: float | None = None,
        name: str = "",
        **options: Any,
    ) -> None:
        count = tf.distribute.get_strategy().num_replicas_in_sync
        if count > 1 and accumulated_batches > 1:
            raise ValueError(
                f"On {count} GPUs one process cannot accumulate batches: set training.workers = "
                f"{count}, one process per GPU, or training.accumulated_batches = 1."
            )
        steps = accumulated_batches if accumulated_batches > 1 else None
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            gradient_accumulation_steps=steps,
            name=name or type(self).__name__.lower(),
            **options,
        )
        self._several = count > 1
        self._own = {
            "clip_norm": clip_norm,
            "accumulated_batches": accumulated_batches,
            "clip_value": clip_value,
            "weight_decay": weight_decay,
            **options,
        }
        self._clip_norm, self._clip_value = clip_norm, clip_value
        self._shares: Mapping[str, float] = {}
        if weight_decay:
            self.exclude_from_weight_decay(var_names=_NO_DECAY)

    def slow_down(self, shares: Mapping[str, float]) -> None:
        """Gives weights a share of the learning rate.

        Args:
            shares: from the path of a weight to its share; others have 1.
        """
        self._shares = shares

    def _share(self, variable: keras.Variable | tf.Variable) -> float:
        path = self._trainable_variables[self._get_variable_index(variable)].path
        return self._shares.get(path, 1.0)

    def _rate(self, variable: tf.Variable, learning_rate: tf.Tensor) -> tf.Tensor:
        return learning_rate * self._share(variable) if self._shares else learning_rate

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        super().update_step(gradient, variable, self._rate(variable, learning_rate))

    def _apply_weight_decay(self, variables: Sequence[keras.Variable]) -> None:
        whole: float | None = self._own["weight_decay"]
        if whole is None or not self._shares:
            super()._apply_weight_decay(variables)
            return
        # Keras multiplies one decay by one learning rate.
        for variable in variables:
            self.weight_decay = whole * self._share(variable)
            super()._apply_weight_decay([variable])
        self.weight_decay = whole

    def apply(
        self,
        grads: Sequence[tf.Tensor | None],
        trainable_variables: Sequence[keras.Variable] | None = None,
    ) -> None:
        # A word that stands in a batch twice is two rows of an embedding's gradient, until they are
        # added up here: Keras would take the norm, and Adam's second moment, of the rows as they
        # are.
        grads = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        if self._several and (self._clip_norm or self._clip_value):
            grads = self._sum_and_clip(grads)
        super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
        return grads if self._several else self._clip(grads)

    def _clip(self, grads: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
        if self._clip_value:
            size = self._clip_value
            grads = [
                None if grad is None else tf.clip_by_value(grad, -size, size) for grad in grads
            ]
        if self._clip_norm:
            # As Keras does it, without a tensor of all squares.
            grads = tf.clip_by_global_norm(grads, self._clip_norm)[0]
        return grads

    def _sum_and_clip(self, grads: list[tf.Tensor | None]) -> list[tf.Tensor | None]:
        context = tf.distribute.get_replica_context()
        learnt = [number for number, grad in enumerate(grads) if grad is not None]
        summed = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [grads[number] for number in learnt]
        )
        for number, grad in zip(learnt, self._clip(summed)):
            # Keras adds them up once more.
            grads[number] = None if grad is None else grad / context.num_replicas_in_sync
        return grads

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {"learning_rate": config["learning_rate"], "name": config["name"], **self._own}


@keras.saving.register_keras_serializable("verbatim")
class Adam(_SummedClipping, keras.optimizers.Adam):
    """Keras' Adam (AdamW with `weight_decay`), in one pass over the weights.

    The update of a weight is one operation of TensorFlow's, which reads and writes everything once;
    Keras' own is ten, each over all weights, and took a fifth of a small training's time on a CPU.
    The equations are the same (Kingma and Ba 2014, end of section 2; Loshchilov and Hutter 2019,
    algorithm 2).
    """

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        if self._several:
            # Which replica's moments belong to the variable is Keras' affair.
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        rate = self._rate(variable, learning_rate)
        # Keras gives TensorFlow's own variable, whose moments are Keras'.
        weights, momentum, velocity = (
            variable,
            self._momentums[index].value,
            self._velocities[index].value,
        )
        step = keras.ops.cast(self.iterations + 1, weights.dtype)
        beta_1, beta_2, rate, epsilon = (
            tf.cast(number, weights.dtype)
            for number in (self.beta_1, self.beta_2, rate, self.epsilon)
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


@keras.saving.register_keras_serializable("verbatim")
class Adadelta(_SummedClipping, keras.optimizers.Adadelta):
    """Keras' Adadelta (Zeiler 2012)."""


@keras.saving.register_keras_serializable("verbatim")
class SGD(_SummedClipping, keras.optimizers.SGD):
    """Keras' stochastic gradient descent, with momentum if asked."""


def make_optimizer(config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Returns the optimizer that a recipe's training names.

    Raises:
        ValueError: several GPUs and accumulated batches.
    """
    adam: dict[str, Any] = {"beta_1": config.beta_1, "beta_2": config.beta_2}
    kinds: dict[str, tuple[Callable[..., keras.optimizers.Optimizer], dict[str, Any]]] = {
        "adam": (Adam, adam),
        "adamw": (Adam, adam),
        "adadelta": (Adadelta, _ADADELTA),
        "sgd": (SGD, {"momentum": config.momentum}),
    }
    kind, options = kinds[config.optimizer]
    return kind(
        config.learning_rate,
        clip_norm=config.gradient_clip_norm or None,
        accumulated_batches=config.accumulated_batches,
        clip_value=config.gradient_clip_value or None,
        weight_decay=config.weight_decay or None,
        **options,
    )
