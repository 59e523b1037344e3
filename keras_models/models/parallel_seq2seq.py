"""Base of the encoder-decoder bodies that train all steps at once and decode with a cache."""

import keras
from keras import ops

from keras_models import losses
from keras_models.models.seq2seq import Seq2Seq


class ParallelSeq2Seq(Seq2Seq):
    """Base of Transformers.

    A subclass defines `encode`, whose carry is empty without a `max_length`, and `decode_steps`.
    It sets `coverage_loss_weight`.
    """

    coverage_loss_weight = 0.0

    def decode_steps(self, embedded, positions, memory, carry=None, index=None, training=False):
        """What the head reads of some steps.

        Args:
            embedded: `[batch, length, embedding_size]`, the previous tokens.
            positions: int `[length]`.
            memory: what `encode` returned.
            carry, index: for a decoding step, of length 1; see `step`.
            training: whether dropout is on.

        Returns:
            `state`, tensors `[batch, length, ...]`, and the next carry.
        """
        raise NotImplementedError(f"{type(self).__name__} must define decode_steps.")

    def _sample_inputs(self, inputs, positions, memory):
        """Target ids to feed, some gold and some the model's own: int32 `[batch, target_length]`.

        The two passes of Mihaylova and Martins 2019: the first decodes the gold inputs, and what it
        predicts at each step takes the place of some of them in the second. It has no dropout and
        no gradient.
        """
        gold = ops.cast(inputs["target_input_ids"], "int32")
        chosen = self.choose_gold(inputs)
        memory = keras.tree.map_structure(ops.stop_gradient, memory)
        state, _ = self.decode_steps(self.embed_target(gold), positions, memory)
        state = keras.tree.map_structure(ops.stop_gradient, state)

        def predict(step):
            return self.feed_ids(self.likeliest(step, memory), memory)

        # Step by step, so that no distribution of all steps at once is held.
        own = ops.map(
            predict, {name: ops.transpose(value, (1, 0, 2)) for name, value in state.items()}
        )
        own = ops.concatenate([gold[:, :1], ops.transpose(own)[:, :-1]], axis=1)
        return ops.where(chosen, gold, own)

    def call(self, inputs, training=False):
        inputs = self.in_passes(inputs, training)
        memory, _ = self.encode(inputs, training=training)
        positions = ops.arange(ops.shape(inputs["target_input_ids"])[1], dtype="int32")
        ids = inputs["target_input_ids"]
        if training and self.scheduled_sampling:
            ids = self._sample_inputs(inputs, positions, memory)
        embedded = self.embed_target(ids)
        state, _ = self.decode_steps(embedded, positions, memory, training=training)
        if self.coverage_loss_weight:
            attention = ops.exp(state["attention_log_weights"])
            covered = ops.cumsum(attention, axis=1) - attention
            real = ops.not_equal(ops.cast(inputs["target_extended_ids"], "int32"), 0)
            self.add_loss(
                self.coverage_loss_weight * losses.coverage_loss(attention, covered, real)
            )
        return self.score_targets(state, memory, inputs, training)

    def step(self, actions, carry, memory, index=None):
        """One decoding step.

        Args:
            actions: int `[batch]`, just decoded; extended ids where the head's `max_span` is 1.
            carry: what `encode` or the last `step` returned.
            memory: what `encode` returned, with `feed_ids`.
            index: number of the step, from 0; an int or scalar tensor, at most `encode`'s
                `max_length`.

        Returns:
            log_probs `[batch, V + max_span * source_length]`, copy_log_probs `[batch,
            source_length]`, attention `[batch, source_length]`, and the next carry.

        Raises:
            ValueError: `encode` was given no `max_length`, or the step has no index.
        """
        if not carry or index is None:
            raise ValueError(
                "A step of a Transformer needs its index, and a carry of encode(..., "
                "max_length=...)."
            )
        index = ops.convert_to_tensor(index, dtype="int32")
        embedded = ops.expand_dims(self.embed_target(self.feed_ids(actions, memory)), 1)
        state, carry = self.decode_steps(embedded, ops.reshape(index, (1,)), memory, carry, index)
        state = {name: ops.squeeze(value, 1) for name, value in state.items()}
        log_probs, copy_log_probs = self.head.step_log_probs(state, memory)
        return log_probs, copy_log_probs, ops.exp(state["attention_log_weights"]), carry
