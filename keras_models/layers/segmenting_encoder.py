"""An encoder that reads characters and finds the words itself (Arthur 2018, chapter 5)."""

import keras
from keras import ops

from keras_models import segmentation
from keras_models.layers.numerics import repeat_rows
from keras_models.layers.recurrent import LSTM, FeedbackCell, bidirectional


@keras.saving.register_keras_serializable("verbatim")
class SegmentingEncoder(keras.layers.Layer):
    """Character BiLSTM, a Bernoulli decision at each character whether a segment ends there, and a BiLSTM over the segments.

        H = W_h BiLSTM(embedded) + b_h                                        the character encoder
        P(S_i = end | F) = sigmoid(w_s H_i + b_s)                             eq. 5.1
        c_j = LSTM(H_first(j), ..., H_last(j)), its last state                the composer
        states = BiLSTM(c_1, ..., c_J)                                        the word encoder
        states_j = BiLSTM(c_1, ..., c_J)_j + c_j + H_last(j)                  with `residual`

    Nothing changes its shape: a segment's vector stands at the place of its last character, the composer's state is reset where a
    segment begins, and the word encoder passes over the places between. So one graph serves every segmentation.

    Args:
        units: size of the states; even.
        dropout: share of units dropped between the layers.
        composes: `"states"`, the composer reads H, or `"embeddings"`, it reads the characters themselves.
        residual: whether a segment's state also has its composed vector and the state of its last character as they are. Ours: without these short
            ways through three stacked LSTMs training takes far longer to begin.

    Call arguments:
        embedded: `[batch, source_length, size]`.
        mask: bool `[batch, source_length]`.
        choose: function of logits and mask, float32 and bool `[rows, source_length]`, to bool of that shape: where segments end. By default
            where that is likelier than not.
        samples: segmentations of each sentence, rows = samples * batch, those of a sentence side by side.
        training: whether dropout is on.

    Returns:
        dict: `states` `[rows, source_length, units]`, whose padding and places inside a segment mean nothing; `ends` and `mask` bool
        `[rows, source_length]`, `last`: the four last states of the word encoder; `logits` float32 and `characters` (H), `[rows, source_length, ...]`.

    Raises:
        ValueError: odd `units`, or an unknown `composes`.

    Example:

    >>> encode = SegmentingEncoder(units=4)
    >>> encode(np.ones((2, 5, 3)), np.ones((2, 5), bool))["states"].shape
    TensorShape([2, 5, 4])
    """

    def __init__(self, units, dropout=0.0, composes="states", residual=False, **kwargs):
        super().__init__(**kwargs)
        if units % 2:
            raise ValueError(f"units must be even, one half for each direction; got {units}.")
        if composes not in ("states", "embeddings"):
            raise ValueError(f"composes must be 'states' or 'embeddings'; got {composes!r}.")
        self.units = units
        self.dropout = dropout
        self.composes = composes
        self.residual = residual
        policy = self.dtype_policy

        def bilstm(name, **options):
            lstm = LSTM(units // 2, return_sequences=True, dtype=policy, **options)
            return bidirectional(lstm, dtype=policy, name=name)

        self.character_encoder = bilstm("characters")
        self.projection = keras.layers.Dense(units, dtype=policy, name="projection")
        self.policy = keras.layers.Dense(1, dtype="float32", name="policy")
        self.composer = FeedbackCell(units, "lstm", feedback=False, dtype=policy, name="composer")
        self.word_encoder = bilstm("words", return_state=True)
        self.drop = keras.layers.Dropout(dropout, dtype=policy, name="dropout")

    def build(self, embedded_shape):
        self.character_encoder.build((None, None, embedded_shape[-1]))
        states = (None, None, self.units)
        self.projection.build(states)
        self.policy.build(states)
        self.composer.build(self.units if self.composes == "states" else embedded_shape[-1])
        self.word_encoder.build(states)

    def call(self, embedded, mask, choose=None, samples=1, training=False):
        characters = self.character_encoder(embedded, mask=mask, training=training)
        characters = self.drop(self.projection(characters), training=training)
        logits = ops.squeeze(self.policy(characters), -1)
        mask, logits, characters, embedded = repeat_rows((mask, logits, characters, embedded), samples)
        decided = segmentation.closed(logits > 0 if choose is None else choose(logits, mask), mask)
        composed = self._compose(characters if self.composes == "states" else embedded, decided)
        composed = self.drop(composed, training=training)
        states, *last = self.word_encoder(composed, mask=decided, training=training)
        states = self.drop(states, training=training)
        if self.residual:
            states = states + composed + characters
        return {
            "states": states,
            "ends": decided,
            "mask": mask,
            "last": last,
            "logits": logits,
            "characters": characters,
        }

    def _compose(self, vectors, ends):
        """The state of an LSTM that begins anew at each segment: `[batch, source_length, units]`."""
        kept = 1 - ops.cast(segmentation.starts_of(ends), vectors.dtype)
        # One tensor, because `ops.scan` over two needs to know their length on TensorFlow.
        steps = ops.concatenate([self.composer.project(vectors), ops.expand_dims(kept, -1)], axis=-1)

        def step(carry, inputs):
            projected, keep = inputs[:, :-1], inputs[:, -1:]
            carry = self.composer(projected, [state * keep for state in carry])
            return carry, carry

        first = ops.zeros_like(steps[:, 0, : self.units])
        _, states = ops.scan(step, [first, first], ops.transpose(steps, (1, 0, 2)))
        return ops.transpose(states[0], (1, 0, 2))

    def get_config(self):
        config = super().get_config()
        config.update(units=self.units, dropout=self.dropout, composes=self.composes, residual=self.residual)
        return config
