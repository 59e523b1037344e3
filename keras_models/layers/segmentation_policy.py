"""The segmenting encoder's decisions: REINFORCE with priors (Arthur 2018, section 5.3)."""

import keras
from keras import ops

from keras_models import segmentation
from keras_models.layers.numerics import scale_gradient
from keras_models.uniforms import draw_uniforms

#: The name of the segmentation to imitate in the inputs of training; see `SegmentationPolicy`.
WORD_ENDS = "source_word_ends"
#: What a policy may imitate at first.
WARM_UPS = ("none", "prior", "script", "kana", "multigrams")


@keras.saving.register_keras_serializable("verbatim")
class SegmentCounts(keras.layers.Layer):
    """Counts how often training has met each segment, so that new ones can be rewarded.

    A right segment that was never seen has a poor likelihood, because the decoder does not know it,
    so REINFORCE keeps its first samples (Arthur 2018, 5.5.3). As in count-based exploration (Strehl
    and Littman 2008), a sampled segmentation earns

        bonus = mean over its segments of 1 / sqrt(1 + n(segment))

    which fades as the segment becomes known. Segments are told apart by a hash of their ids into
    `buckets` counters.

    Args:
        buckets: how many counters, at most 2,000,000.
    """

    def __init__(self, buckets=100_003, **kwargs):
        super().__init__(**kwargs)
        self.buckets = buckets

    def build(self, ids_shape=None):
        self.counts = self.add_weight(
            shape=(self.buckets,),
            initializer="zeros",
            trainable=False,
            autocast=False,
            dtype="float32",
            name="counts",
        )

    def call(self, ids, ends, training=False):
        """Returns each sentence's bonus, float32 `[batch]`.

        In training it counts the sentence's segments afterwards.
        """
        buckets = segmentation.hashes(ids, ends, self.buckets)
        weight = ops.cast(ends, "float32")
        new = weight / ops.sqrt(1.0 + ops.take(self.counts, buckets, axis=0))
        bonus = ops.sum(new, axis=1) / ops.maximum(ops.sum(weight, axis=1), 1.0)
        if training:
            flat = ops.reshape(buckets, (-1, 1))
            self.counts.assign_add(ops.scatter(flat, ops.reshape(weight, (-1,)), (self.buckets,)))
        return ops.stop_gradient(bonus)

    def get_config(self):
        return {**super().get_config(), "buckets": self.buckets}


@keras.saving.register_keras_serializable("verbatim")
class SegmentationPolicy(keras.layers.Layer):
    """Draws segmentations by the encoder's logits and computes the loss of the choice.

    With the reward R = log p(E | F, S) / |E| (eq. 5.5) of a sampled segmentation S, without
    gradient,

        R' = R + w_lambda log Poisson(|S|; |F| / lambda) + w_new bonus(S)
        L_R = - sum_i log pi(S_i) (R' - b_i)                                     eq. 5.7
        L_b = sum_i (R' - b_i)^2,   b_i = w_b H_i + b_b                          eqs. 5.8, 5.9
        L_c = - sum_i entropy(pi_i)                                              eq. 5.15
        L_f = sum over segments of (1 - their attention)^2                       eq. 5.14
        loss = (w_R L_R + L_b + w_c L_c + w_f L_f) / number of target tokens     eq. 5.10

    R' is then optionally normalised to mean 0 and variance 1 (eq. 5.16). H and b are without
    gradient in L_b and L_R. A token weighs in the loss as it does in the translation's.

    Three places differ from the printed thesis: it has pi where REINFORCE has log pi (eq. 5.7); it
    multiplies R, a negative number, by the prior's probability (eq. 5.13), which would reward
    unlikely segmentations, where log-probabilities are to be added; and the fertility's loss has
    the other sign. Beyond the thesis, from its own list of what failed (5.5.3): several samples of
    a sentence are a baseline of each other, a bonus for new segments (`SegmentCounts`), and phases
    in turn.

    `imitation`, `translation_share` and `policy_share` are weights that are not trained, for who
    leads the training to set: 1 while the segmentation is a heuristic that the policy imitates,
    loss - sum_i log pi(heuristic_i); and 1 or 0, whether the translation and the policy learn.

    Args:
        units: size of the encoder's states.
        mean_length: lambda, the prior's expected characters per segment; at least 1.
        baseline: `"linear"`, or `"samples"`: the mean reward of the sentence's other samples.
        samples: segmentations of a sentence in training; at least 2 for baseline `"samples"`.
        reinforce_weight, length_prior_weight, novelty_weight, confidence_penalty, fertility_weight:
            w_R, w_lambda, w_new, w_c, w_f.
        normalize_rewards: whether to normalise them over the batch.
        epsilon: share of the training's sentences whose segments' lengths are drawn from the prior.
        warm_up: `"none"`, or the segmentation that is imitated: `"prior"`; or `"script"`, `"kana"`
            or `"multigrams"`, which the inputs then hold as `source_word_ends`.
        decoding_samples: segmentations of a sentence in decoding, the first the likeliest.
        detached: whether REINFORCE leaves the encoder's states as they are (ours): its gradients
            are noise for the translation. Imitation may change them.

    Raises:
        ValueError: settings that do not fit together.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import SegmentationPolicy
    >>> policy = SegmentationPolicy(units=4)
    >>> policy.build()
    >>> tuple(policy.decode(np.array([[-1.0, 2.0, 0.5]]), np.array([[True, True, True]])).shape)
    (1, 3)

    References:
        Arthur 2018, "Learning Lexical Representations for Neural Machine Translation", section 5.3;
        Williams 1992, "Simple statistical gradient-following algorithms for connectionist
        reinforcement learning"; Kool, van Hoof, Welling 2019, "Buy 4 REINFORCE samples, get a
        baseline for free!".
    """

    def __init__(
        self,
        units,
        mean_length=2.0,
        baseline="linear",
        samples=1,
        reinforce_weight=1.0,
        length_prior_weight=0.0,
        novelty_weight=0.0,
        normalize_rewards=False,
        confidence_penalty=0.0,
        fertility_weight=0.0,
        epsilon=0.0,
        warm_up="none",
        decoding_samples=1,
        detached=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if baseline not in ("linear", "samples"):
            raise ValueError(f"baseline must be 'linear' or 'samples'; got {baseline!r}.")
        if warm_up not in WARM_UPS:
            raise ValueError(f"warm_up must be one of {', '.join(WARM_UPS)}; got {warm_up!r}.")
        if baseline == "samples" and samples < 2:
            raise ValueError(
                "baseline 'samples' compares samples with each other: samples must be at least "
                f"2; got {samples}."
            )
        if mean_length < 1:
            raise ValueError(f"mean_length must be at least 1 character; got {mean_length}.")
        self._settings = dict(
            units=units,
            mean_length=mean_length,
            baseline=baseline,
            samples=samples,
            reinforce_weight=reinforce_weight,
            length_prior_weight=length_prior_weight,
            novelty_weight=novelty_weight,
            normalize_rewards=normalize_rewards,
            confidence_penalty=confidence_penalty,
            fertility_weight=fertility_weight,
            epsilon=epsilon,
            warm_up=warm_up,
            decoding_samples=decoding_samples,
            detached=detached,
        )
        for name, value in self._settings.items():
            setattr(self, name, value)
        self.regression = (
            keras.layers.Dense(1, dtype="float32", name="baseline")
            if baseline == "linear"
            else None
        )
        self.counts = SegmentCounts(name="segment_counts") if novelty_weight else None
        self.seeds = keras.random.SeedGenerator()

    def build(self, input_shape=None):
        if self.regression is not None:
            self.regression.build((None, None, self.units))
        if self.counts is not None:
            self.counts.build()

        def state(name, value):
            return self.add_weight(
                shape=(),
                initializer=value,
                trainable=False,
                autocast=False,
                dtype="float32",
                name=name,
            )

        self.imitation = state("imitation", "zeros")
        self.translation_share = state("translation_share", "ones")
        self.policy_share = state("policy_share", "ones")

    # Decisions.

    def draw(self, logits, mask, word_ends=None):
        """Draws training's segmentations.

        Returns bool like `logits`, whose rows are a sentence's samples side by side.
        """
        shape = ops.shape(logits)
        drawn = keras.random.uniform(shape, dtype="float32", seed=self.seeds) < ops.sigmoid(logits)
        prior = None
        if self.epsilon or self.warm_up == "prior":
            uniforms = keras.random.uniform(shape, dtype="float32", seed=self.seeds)
            prior = segmentation.drawn_from_prior(uniforms, mask, self.mean_length)
        if self.epsilon:
            explores = (
                keras.random.uniform((shape[0], 1), dtype="float32", seed=self.seeds) < self.epsilon
            )
            drawn = ops.where(explores, prior, drawn)
        if self.warm_up != "none":
            heuristic = prior if self.warm_up == "prior" else ops.not_equal(word_ends, 0)
            drawn = ops.where(self.imitation > 0, heuristic, drawn)
        return segmentation.closed(drawn, mask)

    def decode(self, logits, mask, samples=1):
        """Returns decoding's segmentations, a sentence's rows side by side.

        The first is the likeliest; the others are drawn, always alike.
        """
        if samples == 1:
            return segmentation.closed(logits > 0, mask)
        rows, length = ops.shape(logits)
        uniforms = ops.reshape(draw_uniforms(0, rows, 1, length - 1), (rows, length))
        first = ops.expand_dims(ops.equal(ops.arange(rows, dtype="int32") % samples, 0), -1)
        return segmentation.closed(
            ops.where(first, logits > 0, uniforms < ops.sigmoid(logits)), mask
        )

    # Learning.

    def state_gradient(self):
        """The share of the decisions' gradient that may reach the encoder's states, a scalar."""
        return self.imitation if self.detached else 1.0

    def loss(self, encoded, source_ids, mask, target_log_prob, target_mask, attention):
        """The loss of the sampled segmentations, a scalar.

        Args:
            encoded: what `SegmentingEncoder` returned.
            source_ids, mask: int and bool `[rows, source_length]`.
            target_log_prob: float32 `[rows, target_length]`.
            target_mask: bool `[rows, target_length]`.
            attention: `[rows, target_length, source_length]`, attention probabilities.
        """
        logits, ends = encoded["logits"], encoded["ends"]
        counted = ops.cast(target_mask, "float32")
        tokens = ops.sum(counted, axis=1)
        reward = ops.sum(ops.stop_gradient(target_log_prob) * counted, axis=1) / ops.maximum(
            tokens, 1.0
        )
        if self.length_prior_weight:
            reward = reward + self.length_prior_weight * segmentation.length_prior(
                ends, mask, self.mean_length
            )
        if self.counts is not None:
            reward = reward + self.novelty_weight * self.counts(source_ids, ends, training=True)
        if self.normalize_rewards:
            reward = segmentation.normalized(reward)
        decided = ops.cast(segmentation.decided_places(mask), "float32")
        regression = 0.0
        if self.regression is not None:
            expected = ops.squeeze(self.regression(ops.stop_gradient(encoded["characters"])), -1)
            error = ops.expand_dims(reward, -1) - expected
            regression = ops.sum(ops.square(error) * decided)
            advantage = ops.stop_gradient(error)
        else:
            advantage = ops.expand_dims(
                reward - segmentation.leave_one_out(reward, self.samples), -1
            )
        log_prob = segmentation.decision_log_prob(logits, ends, mask)
        reinforce = self.reinforce_weight * -ops.sum(log_prob * advantage)
        if self.warm_up != "none":
            reinforce = ops.where(self.imitation > 0, -ops.sum(log_prob), reinforce)
        total = reinforce + regression
        if self.confidence_penalty:
            total = total - self.confidence_penalty * ops.sum(
                segmentation.decision_entropy(logits, mask)
            )
        if self.fertility_weight:
            off = segmentation.fertility_loss(attention, ends, target_mask)
            total = total + self.fertility_weight * ops.sum(off)
        return self.policy_share * total / ops.maximum(ops.sum(tokens), 1.0)

    def share(self, target_log_prob):
        """The translation's log-probabilities, without gradient while the policy alone learns."""
        return scale_gradient(target_log_prob, self.translation_share)

    def get_config(self):
        return {**super().get_config(), **self._settings}
