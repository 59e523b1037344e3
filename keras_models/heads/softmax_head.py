"""The head without copying: the baseline of every copy mechanism."""

import keras
from keras import ops

from keras_models.heads.copy_head import CopyHead
from keras_models.heads.label_smoothing import smooth
from keras_models.layers.numerics import LOG_ZERO
from keras_models.layers.vocabulary import VocabularySoftmax


@keras.saving.register_keras_serializable("verbatim")
class SoftmaxHead(CopyHead):
    """p(w) = softmax(W h + b)_w over the target vocabulary; source tokens cannot be copied.

    A target outside the vocabulary (a copy id) is trained as `unknown_id`.

    Args:
        vocabulary_size: V.
        unknown_id: the id that stands for targets outside the vocabulary.

    Call arguments:
        hidden: `[batch, target_length, hidden_size]`.
        targets: int `[batch, target_length]`, extended ids; or None.

    Returns:
        float32 `[batch, target_length]` log-probability of the targets, or `[batch, target_length,
        V]` without targets.

    Example:

    >>> import numpy as np
    >>> from keras_models.heads import SoftmaxHead
    >>> head = SoftmaxHead(vocabulary_size=10)
    >>> tuple(head(np.ones((2, 3, 4))).shape)
    (2, 3, 10)
    """

    copies = False

    def __init__(self, vocabulary_size, unknown_id=1, **kwargs):
        super().__init__(vocabulary_size, **kwargs)
        self.unknown_id = unknown_id
        self.vocabulary = VocabularySoftmax(
            vocabulary_size, dtype=self.dtype_policy, name="vocabulary"
        )

    def build(self, hidden_shape):
        # A tied one is already built.
        if not self.vocabulary.built:
            self.vocabulary.build(hidden_shape)

    def call(self, hidden, targets=None):
        if targets is None:
            return self.vocabulary.log_probs(hidden)
        return self.target_log_prob({"hidden": hidden}, {}, targets)

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        targets = ops.where(targets < self.vocabulary_size, targets, self.unknown_id)
        candidates = memory.get("candidates")
        if not label_smoothing:
            return self.vocabulary.target_log_prob(state["hidden"], targets, candidates)
        log_prob, normaliser = self.vocabulary.score(state["hidden"], targets, candidates)
        mean = self.vocabulary.mean_logit(state["hidden"]) - normaliser
        return smooth(log_prob, mean, label_smoothing)

    def step_log_probs(self, state, memory):
        no_copy = ops.full_like(ops.cast(memory["extended_ids"], "float32"), LOG_ZERO)
        words = self.vocabulary.log_probs(state["hidden"], memory.get("shortlist"))
        return ops.concatenate([words, no_copy], axis=-1), no_copy

    def get_config(self):
        config = super().get_config()
        config["unknown_id"] = self.unknown_id
        return config
