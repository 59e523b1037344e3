"""The log-probabilities of a training's targets, and the losses that come with them."""

import keras
from keras import ops

from keras_models import alignment, losses
from keras_models.heads.copy_head import LABEL_FEATURES
from keras_models.layers.vocabulary import softmax_candidates
from keras_models.models.word_vectors import WordVectors


class TargetScoring(WordVectors):
    """Base of `Seq2Seq` that scores the targets of a training.

    With a `consistency_weight` alpha, a batch runs twice through the network, and dropout draws
    other masks (R-Drop, Liang et al. 2021, https://arxiv.org/abs/2106.14448). With p and q the two
    distributions over all that the head can say,

        loss = 1/2 (-log p(y) - log q(y)) + alpha / 2 * 1/2 (KL(p || q) + KL(q || p))

    as a mean over tokens: half of the paper's, so the loss has the size that it has without.
    """

    def set_scoring(
        self,
        large_vocabulary_size,
        large_vocabulary_drawn,
        label_smoothing,
        consistency_weight,
        scheduled_sampling,
    ):
        """Keeps the options. See `Seq2Seq` for the arguments.

        Raises:
            ValueError: options that do not fit together.
        """
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing must be from 0 to below 1; got {label_smoothing}.")
        if label_smoothing and large_vocabulary_size and not large_vocabulary_drawn:
            raise ValueError(
                "label_smoothing with a large_vocabulary_size needs a large_vocabulary_drawn above "
                "0: it would raise the scores of words that no softmax runs over."
            )
        if consistency_weight < 0:
            raise ValueError(f"consistency_weight must be at least 0; got {consistency_weight}.")
        if consistency_weight and (large_vocabulary_size or scheduled_sampling):
            raise ValueError(
                "consistency_weight compares the distributions over all words of two passes that "
                "read the same: it goes neither with a large_vocabulary_size nor with "
                "scheduled_sampling."
            )
        self.large_vocabulary_size = large_vocabulary_size
        self.large_vocabulary_drawn = large_vocabulary_drawn if large_vocabulary_size else 0
        self.candidates_seed = keras.random.SeedGenerator() if self.large_vocabulary_drawn else None
        self.label_smoothing = label_smoothing
        self.consistency_weight = consistency_weight
        self.scheduled_sampling = scheduled_sampling

    def choose_gold(self, inputs):
        """Draws which inputs of a training step are the gold ones, the first always.

        Returns bool `[batch, target_length]`.

        Raises:
            ValueError: the inputs lack what a copy feeds.
        """
        if "source_feed_ids" not in inputs:
            raise ValueError(
                "Scheduled sampling feeds the model's own copies; the inputs need "
                "'source_feed_ids'."
            )
        shape = ops.shape(inputs["target_input_ids"])
        drawn = (
            keras.random.uniform(shape, dtype="float32", seed=self.sampling_seed)
            < self.gold_probability
        )
        return ops.logical_or(
            drawn, ops.expand_dims(ops.equal(ops.arange(shape[1], dtype="int32"), 0), 0)
        )

    def likeliest(self, state, memory):
        """The likeliest action of one step, int32 `[batch]`; no gradient passes through it."""
        state, memory = keras.tree.map_structure(ops.stop_gradient, (state, memory))
        return ops.cast(ops.argmax(self.head.step_log_probs(state, memory)[0], axis=-1), "int32")

    def in_passes(self, inputs, training):
        """The inputs of all passes of an update, one behind the other: two for consistency.

        A body's `call` begins with it.
        """
        if not training or not self.consistency_weight:
            return inputs
        return {name: ops.concatenate([value, value]) for name, value in inputs.items()}

    def score_targets(self, state, memory, inputs, training, smooths=True):
        """The head's log-probabilities of the targets, float32 `[batch, target_length]`.

        They are smoothed in training if `smooths` is true. Of two passes it is their mean.
        """
        targets = ops.cast(inputs["target_extended_ids"], "int32")
        labels = {name: inputs[name] for name in LABEL_FEATURES if name in inputs}
        if training and self.large_vocabulary_size:
            sizes = (
                self.target_vocabulary_size,
                self.large_vocabulary_size,
                self.large_vocabulary_drawn,
            )
            memory = {
                **memory,
                "candidates": softmax_candidates(targets, *sizes, seed=self.candidates_seed),
            }
        if training and self.guided_alignment_weight:
            self.add_loss(
                self.guided_alignment_weight * self._alignment_loss(state, memory, targets, inputs)
            )
        options = {}
        if training and smooths and self.label_smoothing:
            options["label_smoothing"] = self.label_smoothing
        log_prob = self.head.target_log_prob(
            state, memory, targets, labels, training=training, **options
        )
        if not training or not self.consistency_weight:
            return log_prob
        distributions = self.head.fold_time(state, memory)
        divergence = losses.symmetric_divergence(*ops.split(distributions, 2))
        targets, chosen = (
            ops.split(value, 2)[0] for value in (targets, self.head.is_choice(targets, labels))
        )
        divergence = losses.token_mean(
            ops.where(chosen, divergence, 0.0), ops.not_equal(targets, 0)
        )
        self.add_loss(self.consistency_weight / 2 * divergence)
        return sum(ops.split(log_prob, 2)) / 2

    def _alignment_loss(self, state, memory, targets, inputs):
        translations = None
        if self.guided_by_lexicon:
            rows = ops.cast(inputs["source_lexicon_rows"], "int32")
            translations = alignment.translation_probabilities(
                targets,
                ops.take(self.lexicon_ids, rows, axis=0),
                ops.take(self.lexicon_probabilities, rows, axis=0),
            )
        teacher = alignment.teacher_alignment(
            targets, memory["extended_ids"], memory["mask"], translations
        )
        log_weights = self.head.copy_log_weights(state, memory)
        return alignment.guided_alignment_loss(log_weights, teacher, ops.not_equal(targets, 0))
