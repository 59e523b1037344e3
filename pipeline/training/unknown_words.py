"""Words that a network reads in training become [UNK] at random (a kind of word dropout)."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from pipeline.text import tokenization

#: The inputs whose words are dropped. What a copy writes comes from the extended ids, which stay.
DROPPED = ("source_ids", "target_input_ids")


def hide_words(
    batches: tf.data.Dataset, probability: float, seed: int, epoch: int, first: int = 0
) -> tf.data.Dataset:
    """Replaces words by [UNK], each with a probability, apart from the others.

    Which ones depends on the seed, the epoch and the number of the batch alone, so a training can
    go on where it was. Padding, start and end stay (Bowman et al. 2016, section 3.1; Dai and Le
    2015).

    Args:
        batches: dataset of `(inputs, labels)`, as `TrainingBatches.epoch` returns it.
        probability: that of each word.
        seed: the training's.
        epoch: the epoch's number.
        first: the number of the first batch.

    Returns:
        Such a dataset.
    """
    if not probability:
        return batches
    (drawn,) = np.random.SeedSequence((seed % (1 << 63), epoch, 1)).generate_state(1)
    specials = (tokenization.PAD_ID, tokenization.START_ID, tokenization.END_ID)

    def drop(
        number: tf.Tensor, batch: tuple[Mapping[str, tf.Tensor], tf.Tensor]
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        inputs, labels = dict(batch[0]), batch[1]
        for place, name in enumerate(DROPPED):
            ids = inputs[name]
            uniforms = tf.random.stateless_uniform(
                tf.shape(ids), [tf.constant(int(drawn), tf.int64) + place, number]
            )
            is_word = tf.reduce_all(ids[..., tf.newaxis] != tf.constant(specials, ids.dtype), -1)
            dropped = is_word & (uniforms < probability)
            inputs[name] = tf.where(dropped, tf.constant(tokenization.UNK_ID, ids.dtype), ids)
        return inputs, labels

    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.enumerate(first).map(drop).prefetch(8).with_options(options)
