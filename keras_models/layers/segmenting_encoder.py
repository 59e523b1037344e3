"""An encoder that reads characters and finds the words itself (Arthur 2018, chapter 5)."""

import keras
from keras import ops

from keras_models import hashing, segmentation
from keras_models.layers.dropout import Dropout
from keras_models.layers.embeddings import token_embedding
from keras_models.layers.numerics import repeat_rows, scale_gradient
from keras_models.layers.recurrent import LSTM, FeedbackCell, bidirectional
from keras_models.layers.transformer import EPSILON


@keras.saving.register_keras_serializable("verbatim")
class SegmentingEncoder(keras.layers.Layer):
    """Character BiLSTM, decisions where segments end, and a BiLSTM over the segments.

    Each decision is a Bernoulli variable of its character.

        H = W_h BiLSTM(embedded) + b_h                          the character encoder
        P(S_i = end | F) = sigmoid(w_s H_i + b_s)               eq. 5.1
        c_j = LSTM(H_first(j), ..., H_last(j))                  the composer, its last state
        states = BiLSTM(c_1, ..., c_J)                          the word encoder

    Ours, because three stacked LSTMs learn slowly at first:

        `residual`:      H, c_j and states_j are LayerNorm of the above, and
                         states_j = LayerNorm(BiLSTM(c_1, ..., c_J)_j + c_j + H_last(j))
        `word_buckets`:  c_j = ... + embedding of the bucket that segment j's characters fall into

    Nothing changes its shape: a segment's vector stands at the place of its last character, the
    composer's state is reset where a segment begins, and the word encoder passes over the places
    between. So one graph serves every segmentation.

    Args:
        units: size of the states; even.
        dropout: share of units dropped between the layers.
        composes: `"states"`, the composer reads H, or `"embeddings"`, it reads the characters
            themselves.
        residual: whether a segment's state also has its composed vector and the state of its last
            character as they are, all normalised.
        word_buckets: how many vectors of whole segments there are, added to the composed ones; 0
            for none. A frequent segment has one nearly for itself, as a word has in a vocabulary
            (`segmentation.hashes`).

    Call arguments:
        embedded: `[batch, source_length, size]`.
        mask: bool `[batch, source_length]`.
        choose: function of logits and mask, float32 and bool `[rows, source_length]`, to bool of
            that shape: where segments end. By default where that is likelier than not.
        samples: segmentations of each sentence, rows = samples * batch, those of a sentence side by
            side.
        training: whether dropout is on.
        ids: int `[batch, source_length]`, of the characters; with `word_buckets`.
        policy_gradient: share of the decisions' gradient that reaches H, a number or a scalar
            tensor.

    Returns:
        dict: `states` `[rows, source_length, units]`, whose padding and places inside a segment
            mean nothing; `ends` and `mask` bool
        `[rows, source_length]`, `last`: the four last states of the word encoder; `logits` float32
        and `characters` (H), `[rows, source_length, ...]`.

    Raises:
        ValueError: odd `units`, an unknown `composes`, `word_buckets` out of range, or given
            without `ids`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import SegmentingEncoder
    >>> encode = SegmentingEncoder(units=4)
    >>> tuple(encode(np.ones((2, 5, 3)), np.ones((2, 5), bool))["states"].shape)
    (2, 5, 4)
    """

    def __init__(
        self, units, dropout=0.0, composes="states", residual=False, word_buckets=0, **kwargs
    ):
        super().__init__(**kwargs)
        if units % 2:
            raise ValueError(f"units must be even, one half for each direction; got {units}.")
        if composes not in ("states", "embeddings"):
            raise ValueError(f"composes must be 'states' or 'embeddings'; got {composes!r}.")
        if not 0 <= word_buckets <= hashing.MOST_BUCKETS:
            raise ValueError(f"word_buckets must be between 0 and 2,000,000; got {word_buckets}.")
        self.units = units
        self.dropout = dropout
        self.composes = composes
        self.residual = residual
        self.word_buckets = word_buckets
        policy = self.dtype_policy

        def bilstm(name, **options):
            lstm = LSTM(units // 2, return_sequences=True, dtype=policy, **options)
            return bidirectional(lstm, dtype=policy, name=name)

        self.character_encoder = bilstm("characters")
        self.projection = keras.layers.Dense(units, dtype=policy, name="projection")
        self.policy = keras.layers.Dense(1, dtype="float32", name="policy")
        self.composer = FeedbackCell(units, "lstm", feedback=False, dtype=policy, name="composer")
        self.word_encoder = bilstm("words", return_state=True)
        self.drop = Dropout(dropout, dtype=policy, name="dropout")
        self.normalizations = [
            keras.layers.LayerNormalization(
                epsilon=EPSILON, dtype=policy, name=f"normalized_{name}"
            )
            for name in ("characters", "composed", "states")
            if residual
        ]
        self.word_embedding = (
            token_embedding(word_buckets, units, policy, "word_embedding") if word_buckets else None
        )

    def build(self, embedded_shape):
        self.character_encoder.build((None, None, embedded_shape[-1]))
        states = (None, None, self.units)
        self.projection.build(states)
        self.policy.build(states)
        self.composer.build(self.units if self.composes == "states" else embedded_shape[-1])
        self.word_encoder.build(states)
        for layer in self.normalizations:
            layer.build(states)

    def call(
        self, embedded, mask, choose=None, samples=1, training=False, ids=None, policy_gradient=1.0
    ):
        if self.word_buckets and ids is None:
            raise ValueError("With word_buckets the ids of the characters are needed, too.")
        normalize = self.normalizations or [lambda x: x] * 3
        characters = self.character_encoder(embedded, mask=mask, training=training)
        characters = self.drop(normalize[0](self.projection(characters)), training=training)
        logits = ops.squeeze(self.policy(scale_gradient(characters, policy_gradient)), -1)
        mask, logits, characters, embedded = repeat_rows(
            (mask, logits, characters, embedded), samples
        )
        decided = segmentation.closed(logits > 0 if choose is None else choose(logits, mask), mask)
        composed = self._compose(
            characters if self.composes == "states" else embedded, decided, training
        )
        composed = normalize[1](composed)
        if self.word_buckets:
            (ids,) = repeat_rows((ids,), samples)
            composed = composed + self.word_embedding(
                segmentation.hashes(ids, decided, self.word_buckets)
            )
        composed = self.drop(composed, training=training)
        states, *last = self.word_encoder(composed, mask=decided, training=training)
        states = self.drop(states, training=training)
        if self.residual:
            states = normalize[2](states + composed + characters)
        return {
            "states": states,
            "ends": decided,
            "mask": mask,
            "last": last,
            "logits": logits,
            "characters": characters,
        }

    def _compose(self, vectors, ends, training):
        """The states of an LSTM that begins anew at each segment, `[batch, length, units]`."""
        kept = 1 - ops.cast(segmentation.starts_of(ends), vectors.dtype)
        # One tensor, because `ops.scan` over two needs to know their length on TensorFlow.
        steps = ops.concatenate(
            [self.composer.project(vectors), ops.expand_dims(kept, -1)], axis=-1
        )

        kernels = self.composer.loop_kernels() if training else None

        def step(carry, inputs):
            projected, keep = inputs[:, :-1], inputs[:, -1:]
            carry = self.composer(projected, [state * keep for state in carry], kernels=kernels)
            return carry, carry

        first = ops.zeros_like(steps[:, 0, : self.units])
        _, states = ops.scan(step, [first, first], ops.transpose(steps, (1, 0, 2)))
        return ops.transpose(states[0], (1, 0, 2))

    def get_config(self):
        config = super().get_config()
        config.update(
            units=self.units, dropout=self.dropout, composes=self.composes, residual=self.residual
        )
        config.update(word_buckets=self.word_buckets)
        return config
