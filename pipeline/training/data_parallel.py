"""Training by several processes, each on its share of every batch (data parallelism).

All workers hold the same weights and make the same batches. Of each batch a worker takes every n-th
row; the workers' gradients are added up, and each makes the same update. With L_r the loss of
worker r's rows, a mean over their tokens,

    gradient = sum_r (tokens_r / tokens) grad L_r

is the gradient of the whole batch's loss: several workers train as one does, but for their dropout.
It is clipped after the sum, as one worker would clip it; under Keras' own distributed `fit`, each
replica clips its own part.

The weights are plain variables of each process. `MultiWorkerMirroredStrategy` finds the other
workers, by `TF_CONFIG`, and adds up; Keras 3 does not train under it.
"""

import json
import zlib

import numpy as np
import tensorflow as tf

from pipeline.common.errors import VerbatimError
from pipeline.training import training_callbacks, training_data


class DataParallelError(VerbatimError, ValueError):
    """The workers cannot train together; one sentence."""


def tasks_of(config):
    """Returns a TF_CONFIG's number of workers, and which of them this process is, from 0;
    None without several workers.

    Args:
        config: text of the environment variable; may be empty.

    Raises:
        DataParallelError: it is not what TensorFlow documents, or has other tasks than `chief` and
            `worker`.
    """
    if not config:
        return None
    try:
        parsed = json.loads(config)
        cluster, task = parsed.get("cluster", {}), parsed.get("task", {})
        addresses = {kind: len(cluster[kind]) for kind in cluster}
        kind, index = task.get("type", "worker"), int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError) as error:
        raise DataParallelError(
            f"TF_CONFIG cannot be read ({error}); unset it, or set it as TensorFlow documents."
        ) from error
    if unknown := sorted(set(addresses) - {"chief", "worker"}):
        raise DataParallelError(
            f"TF_CONFIG names tasks {', '.join(unknown)}; only chief and worker can train here."
        )
    count = sum(addresses.values())
    if count < 2:
        return None
    if not 0 <= index < addresses.get(kind, 0):
        raise DataParallelError(
            f"TF_CONFIG says that this is {kind} {index}, which its cluster lacks."
        )
    return count, index + (addresses.get("chief", 0) if kind == "worker" else 0)


class Workers:
    """The workers of one training, of which this process is one.

    Made before TensorFlow does anything else.

    Args:
        config: `TF_CONFIG`'s text, of two workers or more.

    Attributes:
        count: how many they are.
        index: which one this is; 0 is the chief, who writes checkpoints, logs and the model.
    """

    def __init__(self, config):
        self.count, self.index = tasks_of(config)
        if gpus := tf.config.list_physical_devices("GPU"):
            # One each. Where every worker sees all of the machine's, they take them in turn.
            tf.config.set_visible_devices(gpus[self.index % len(gpus)], "GPU")
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @property
    def is_chief(self):
        return self.index == 0

    def sum(self, vector):
        """Returns the sum of all workers' vectors of one shape and type. Waits for them."""

        def reduced(part):
            # Made here, so that it has a device: the sum goes where its part is.
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, tf.identity(part)
            )

        return self._strategy.run(reduced, args=(vector,))

    @tf.function
    def sum_now(self, vector):
        """`sum`, outside of other functions of TensorFlow."""
        return self.sum(vector)

    def wait(self):
        """Waits until all workers are here."""
        self.sum_now(tf.zeros([1]))

    def agree(self, digest, place):
        """Makes sure that all train the same, from the same place.

        Args:
            digest: text; what the training is made from.
            place: text; where in it this worker is.

        Raises:
            DataParallelError: they do not; on every worker.
        """
        own = np.array([zlib.crc32(text.encode()) for text in (digest, place)], "float64")
        chief = self.sum_now(tf.constant(own * self.is_chief)).numpy()
        differing = self.sum_now(tf.constant((own != chief).astype("float64"))).numpy()
        if differing[0]:
            raise DataParallelError(
                f"{int(differing[0])} of the {self.count} workers would train on other data, with "
                "another recipe or other versions than the "
                "first: give all of them the same files and the same environment."
            )
        if differing[1]:
            raise DataParallelError(
                f"{int(differing[1])} of the {self.count} workers read another checkpoint than "
                "the first, or none: the folder of checkpoints "
                "must be one that all of them share."
            )

    def own_rows(self, inputs, labels):
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
        inputs = {name: tf.gather(values, own) for name, values in inputs.items()}
        own_labels = tf.where(real[:, tf.newaxis], tf.gather(labels, own), 0)
        inputs[training_data.LABELS] = own_labels
        tokens, of_all = (
            tf.math.count_nonzero(ids, dtype=tf.float32) for ids in (own_labels, labels)
        )
        return inputs, own_labels, tokens / tf.maximum(of_all, 1.0)


def _loss(model, inputs, labels, training):
    return tf.cast(
        model.compute_loss(inputs, labels, model(inputs, training=training), training=training),
        tf.float32,
    )


def _make_update(model, workers, signature):
    """Returns the function of one update:
    batch and what the chief says to what all take part in, the loss and what the chief said.
    """

    @tf.function(input_signature=[*signature, tf.TensorSpec([2])])
    def update(inputs, labels, said):
        inputs, labels, share = workers.own_rows(inputs, labels)
        weights = model.trainable_weights
        with tf.GradientTape() as tape:
            loss = _loss(model, inputs, labels, training=True)
        gradients = tape.gradient(loss, [weight.value for weight in weights])
        learnt = [number for number, gradient in enumerate(gradients) if gradient is not None]
        parts = [
            tf.cast(tf.convert_to_tensor(gradients[number]), tf.float32) * share
            for number in learnt
        ]
        # One sum for all: each has its price, however small.
        vector = tf.concat(
            [*(tf.reshape(part, [-1]) for part in parts), [loss * share], said], axis=0
        )
        vector = workers.sum(vector)
        *summed, loss, said = tf.split(vector, [*(tf.size(part) for part in parts), 1, 2])
        summed = [tf.reshape(flat, part.shape) for flat, part in zip(summed, parts)]
        model.optimizer.learning_rate.assign(said[0])
        model.optimizer.apply(summed, [weights[number] for number in learnt])
        return loss[0], said[1] > 0

    return update


def _part_dropout(model, index):
    """Gives each worker random numbers of its own; all began with the same."""
    for variable in model.variables:
        if variable.path.endswith("seed_generator_state"):
            shift = np.array([index * 1_000_003, 0], variable.dtype)
            variable.assign(variable.value + shift)


def fit(model, workers, batches_of, eval_batches, epochs, callbacks, digest):
    """Trains a compiled model together with the other workers, as `trainer` does alone;
    every worker calls it.

    Args:
        model: the same on each worker.
        workers: a `Workers`.
        batches_of: function of an epoch's number to its batches, the same on each worker.
        eval_batches: the batches of the eval split.
        epochs: how many.
        callbacks: Keras callbacks; the last is a `training_callbacks.Checkpointing`. What they
            decide by the clock (learning rate, end), the chief's decide for all.
        digest: text; what the training is made from.
    """
    checkpointing = callbacks[-1]
    skipped, stopped = checkpointing.batch, checkpointing.stopped
    workers.agree(digest, f"{checkpointing.epoch} {skipped} {stopped}")
    one = training_callbacks.OneTraining(
        callbacks, add_history=True, model=model, verbose=0, epochs=epochs
    )
    one.begin()
    _part_dropout(model, workers.index)
    update = _make_update(model, workers, eval_batches.element_spec)

    @tf.function(input_signature=eval_batches.element_spec)
    def evaluate(inputs, labels):
        return _loss(model, inputs, labels, training=False)

    stops = False  # what this worker's callbacks said last
    for epoch in range(checkpointing.epoch, epochs):
        if stopped:
            break
        model.stop_training = False
        model.reset_metrics()
        one.on_epoch_begin(epoch)
        for number, (inputs, labels) in enumerate(batches_of(epoch).skip(skipped)):
            one.on_train_batch_begin(number)
            said = (
                [float(model.optimizer.learning_rate.numpy()), float(stops)]
                if workers.is_chief
                else [0.0, 0.0]
            )
            loss, stopped = update(inputs, labels, tf.constant(said))
            model.metrics[0].update_state(loss, sample_weight=tf.shape(labels)[0])
            one.on_train_batch_end(number, model.get_metrics_result())
            stops, model.stop_training = model.stop_training, bool(stopped)
            if model.stop_training:
                break
        skipped = 0
        sums = np.zeros(3)
        for inputs, labels in eval_batches.shard(workers.count, workers.index):
            rows = len(labels)
            sums += (float(evaluate(inputs, labels)) * rows, rows, 0)
        sums[2] = workers.is_chief and stops
        loss, rows, stops = workers.sum_now(tf.constant(sums)).numpy()
        model.stop_training = model.stop_training or bool(stops)
        one.on_epoch_end(epoch, {**model.get_metrics_result(), "val_loss": loss / rows})
        stops, stopped = False, model.stop_training
    one.end()
