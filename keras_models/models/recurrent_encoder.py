"""Encoder of a body with a recurrent decoder: recurrent, convolutional or segmenting."""

from keras import ops

from keras_models.layers.convolutional_encoder import ConvolutionalEncoder
from keras_models.layers.numerics import repeat_rows
from keras_models.layers.recurrent import GRU, LSTM, bidirectional
from keras_models.layers.segmentation_policy import WORD_ENDS, SegmentationPolicy
from keras_models.layers.segmenting_encoder import SegmentingEncoder
from keras_models.models.recurrent_decoder import RecurrentDecoder

#: The recurrent layers, by the cell's name.
CELLS = {"gru": GRU, "lstm": LSTM}


class RecurrentEncoder(RecurrentDecoder):
    """Base of `RecurrentSeq2Seq` that reads the source; its constructor calls `make_encoder`."""

    def make_encoder(self, encoder, cell, encoder_layers, kernel_size, dropout, segmentation):
        """Makes the encoder's layers. See the class for the arguments."""
        size, policy = self.hidden_size, self.dtype_policy
        self.convolutional = encoder == "cnn"
        self.policy = None
        if encoder == "segmenting":
            options = dict(segmentation or {})
            names = ("composes", "residual", "word_buckets")
            own = {name: options.pop(name) for name in names if name in options}
            layers = [SegmentingEncoder(size, dropout, dtype=policy, name="encoder", **own)]
            self.policy = SegmentationPolicy(size, dtype="float32", name="policy", **options)
            self.policy.build()
            self.decoding_samples = self.policy.decoding_samples
        elif self.convolutional:
            layers = [
                ConvolutionalEncoder(
                    size,
                    encoder_layers,
                    kernel_size,
                    dropout=dropout,
                    dtype=policy,
                    name="encoder",
                )
            ]
        else:
            layers = [
                bidirectional(
                    CELLS[cell](
                        size // 2,
                        state_dropout=self.recurrent_dropout,
                        return_sequences=True,
                        return_state=True,
                        dtype=policy,
                    ),
                    dtype=policy,
                    name=f"encoder_{index}",
                )
                for index in range(encoder_layers)
            ]
        self.encoder = layers

    def _segment(self, inputs, embedded, mask, training, samples):
        """Finds words among the characters.

        Returns what `SegmentingEncoder` returns, `samples` rows for each source.
        """

        def choose(logits, mask):
            if not training:
                return self.policy.decode(logits, mask, samples)
            ends = inputs.get(WORD_ENDS)
            return self.policy.draw(
                logits, mask, None if ends is None else repeat_rows(ends, samples)
            )

        given = {"ids": inputs["source_ids"], "policy_gradient": self.policy.state_gradient()}
        return self.encoder[0](
            embedded, mask, choose=choose, samples=samples, training=training, **given
        )

    def segment(self, inputs):
        """Where the likeliest segmentation ends words, bool `[batch, source_length]`.

        It is for encoder `"segmenting"`.
        """
        mask = ops.not_equal(inputs["source_ids"], 0)
        return self._segment(inputs, self.embed_source(inputs), mask, False, 1)["ends"]

    def encode(self, inputs, training=False, max_length=None, samples=1):
        """Reads the source.

        Args:
            inputs: dict with int `[batch, source_length]` `source_ids`, `source_extended_ids` and,
                for decoding, `source_feed_ids` (target id fed after a copy of that token).
            training: whether dropout is on.
            max_length: unused; other bodies reserve memory for that many steps.
            samples: segmentations of each source, side by side; of encoder `"segmenting"`.

        Returns:
            memory: dict of tensors with leading axis `batch`: `states`, `mask`, `extended_ids`,
                `feed_ids` if given, `keys` of the attention, and what the head prepared;
                `segmented` in training with encoder `"segmenting"`, what it returned.
            carry: the decoder's first carry.
        """
        source_ids = ops.cast(inputs["source_ids"], "int32")
        mask = ops.not_equal(source_ids, 0)
        embedded = self.drop_words(self.embed_source(inputs), training)
        states = self.drop_embedded(embedded, training)
        segmented = None
        if self.policy is not None:
            segmented = self._segment(inputs, states, mask, training, samples)
            inputs = repeat_rows(inputs, samples)
            source_ids, states, mask = inputs["source_ids"], segmented["states"], segmented["ends"]
            first = self.first_states(segmented["last"])
        elif self.convolutional:
            states = self.encoder[0](states, source_mask=mask, training=training)
            real = ops.cast(ops.expand_dims(mask, -1), states.dtype)
            mean = ops.sum(states, axis=1) / ops.maximum(ops.sum(real, axis=1), 1)
            states = self.drop(states, training=training)
            first = [bridge(mean) for bridge in self.bridges]
        else:
            for layer in self.encoder:
                states, *last = layer(states, mask=mask, training=training)
                states = self.drop(states, training=training)
            first = self.first_states(last)
        memory = self.make_memory(inputs, states, mask)
        if self.attention is not None:
            memory["keys"] = self.attention.project_memory(memory["states"])
        if segmented is not None and training:
            memory["segmented"] = segmented
        return memory, self.first_carry(first, source_ids)
