"""Training by several processes, each on its share of every batch (data parallelism).

All workers hold the same weights and make the same batches. Of each batch a worker takes every n-th
row; the workers' gradients are added up, and each makes the same update. With L_r the loss of
worker r's rows, a mean over their tokens,

    gradient = sum_r (tokens_r / tokens) grad L_r

is the gradient of the whole batch's loss: several workers train as one does, but for their dropout.
It is clipped after the sum, as one worker would clip it; under Keras' own distributed `fit`, each
replica clips its own part.

The weights are plain variables of each process. `MultiWorkerMirroredStrategy` finds the other
workers, by `TF_CONFIG`, and adds up; Keras 3 does not train under it. Workers on one machine add up
in memory (`shared_gradients`).
"""

from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from pipeline.training import shared_gradients
from pipeline.training.fitting import Fitting, OneTraining
from pipeline.training.shared_gradients import SharedGradients
from pipeline.training.workers import Workers


def _loss(
    model: keras.Model, inputs: Mapping[str, tf.Tensor], labels: tf.Tensor, training: bool
) -> tf.Tensor:
    return tf.cast(
        model.compute_loss(inputs, labels, model(inputs, training=training), training=training),
        tf.float32,
    )


def _make_update(
    model: keras.Model,
    workers: Workers,
    shared: SharedGradients | None,
    signature: Sequence[tf.TypeSpec],
) -> Callable[[Mapping[str, tf.Tensor], tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns the function of one update, in which all workers take part.

    It takes a batch and the chief's orders, and returns the loss and whether the chief ends the
    training. Orders are float32 `[2]`: the learning rate, and 1 to end; zeros from other workers.
    """

    @tf.function(input_signature=[*signature, tf.TensorSpec([2])])
    def update(
        inputs: Mapping[str, tf.Tensor], labels: tf.Tensor, orders: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        inputs, labels, share = workers.own_rows(inputs, labels)
        weights = model.trainable_weights
        with tf.GradientTape() as tape:
            loss = _loss(model, inputs, labels, training=True)
        gradients = tape.gradient(loss, [weight.value for weight in weights])
        learnt = [number for number, gradient in enumerate(gradients) if gradient is not None]
        own = [tf.cast(tf.convert_to_tensor(gradients[number]), tf.float32) for number in learnt]
        scalars = tf.concat([[loss * share], orders], axis=0)
        if shared is None:
            summed, scalars = sum_over_network(workers, own, share, scalars)
        else:
            summed, scalars = shared.summed(workers, own, learnt, share, scalars)
        loss, orders = scalars[0], scalars[1:]
        model.optimizer.learning_rate.assign(orders[0])
        model.optimizer.apply(summed, [weights[number] for number in learnt])
        return loss, orders[1] > 0

    return update


def sum_over_network(
    workers: Workers, gradients: Sequence[tf.Tensor], share: tf.Tensor, scalars: tf.Tensor
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns the sums over all workers of their gradients times their shares, and of `scalars`."""
    # One sum for all: each has its price, however small.
    vector = tf.concat([*(tf.reshape(part * share, [-1]) for part in gradients), scalars], axis=0)
    sizes = [*(tf.size(part) for part in gradients), tf.size(scalars)]
    *summed, scalars = tf.split(workers.sum(vector), sizes)
    return [tf.reshape(flat, part.shape) for flat, part in zip(summed, gradients)], scalars


def _part_dropout(model: keras.Model, index: int) -> None:
    """Gives each worker random numbers of its own; all began with the same."""
    for variable in model.variables:
        if variable.path.endswith("seed_generator_state"):
            shift = np.array([index * 1_000_003, 0], variable.dtype)
            variable.assign(variable.value + shift)


def fit(fitting: Fitting, workers: Workers, digest: str) -> None:
    """Trains together with the other workers, as `Fitting.run` does alone; every worker calls it.

    Args:
        fitting: model and batches are the same on each worker. What its callbacks decide by the
            clock (learning rate, end), the chief's decide for all.
        workers: the workers.
        digest: what the training is made from.
    """
    checkpointing, model = fitting.checkpointing, fitting.model
    skipped, stopped = checkpointing.batch, checkpointing.stopped
    workers.agree(digest, f"{checkpointing.epoch} {skipped} {stopped}")
    callbacks = fitting.callback_list()
    callbacks.begin()
    _part_dropout(model, workers.index)
    shapes = [weight.shape for weight in model.trainable_weights]
    shared = shared_gradients.open_together(workers, shapes)
    update = _make_update(model, workers, shared, fitting.eval_batches.element_spec)

    @tf.function(input_signature=fitting.eval_batches.element_spec)
    def evaluate(inputs: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
        return _loss(model, inputs, labels, training=False)

    for epoch in range(checkpointing.epoch, fitting.epochs):
        if stopped:
            break
        model.stop_training = False
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        stops = _train_epoch(model, workers, callbacks, update, fitting.batches_of(epoch, skipped))
        skipped = 0
        callbacks.on_test_begin()
        sums = np.zeros(3)
        for inputs, labels in fitting.eval_batches.shard(workers.count, workers.index):
            rows = len(labels)
            sums += (float(evaluate(inputs, labels)) * rows, rows, 0)
        sums[2] = workers.is_chief and stops
        loss, rows, chief_stops = workers.sum_now(tf.constant(sums)).numpy()
        callbacks.on_test_end()
        model.stop_training = model.stop_training or bool(chief_stops)
        callbacks.on_epoch_end(epoch, {**model.get_metrics_result(), "val_loss": loss / rows})
        stopped = model.stop_training
    callbacks.end()


def _train_epoch(
    model: keras.Model,
    workers: Workers,
    callbacks: OneTraining,
    update: Callable[[Mapping[str, tf.Tensor], tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    batches: tf.data.Dataset,
) -> bool:
    """Trains on batches until the chief stops; returns whether this worker's callbacks would."""
    stops = False
    for number, (inputs, labels) in enumerate(batches):
        callbacks.on_train_batch_begin(number)
        orders = [0.0, 0.0]
        if workers.is_chief:
            orders = [
                float(model.optimizer.learning_rate.numpy()),
                float(stops or model.stop_training),
            ]
        loss, stopped = update(inputs, labels, tf.constant(orders))
        model.metrics[0].update_state(loss, sample_weight=tf.shape(labels)[0])
        callbacks.on_train_batch_end(number, model.get_metrics_result())
        stops, model.stop_training = model.stop_training, bool(stopped)
        if model.stop_training:
            break
    return stops
