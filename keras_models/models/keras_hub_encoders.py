"""Encoders of keras-hub, such as BERT's, under a Transformer decoder of ours."""

import keras
from keras import ops

from keras_models.layers.dropout import Dropout
from keras_models.layers.transformer import (
    EPSILON,
    TransformerDecoderLayer,
    sinusoidal_positions,
)
from keras_models.models.keras_hub_layers import BackboneLayers, add_positions


class EncoderLayers(BackboneLayers):
    """Of `BertBackbone`, `RobertaBackbone` and `DistilBertBackbone`, which have no decoder.

        x_t = Norm(E y_{t-1}) + PE(t),  u_t = Norm'(DecoderLayers(x_1 .. x_t, h))

    The decoder's layers have the encoder's sizes and begin with random weights.

    Args:
        backbone: the encoder.
        decoder_layers: how many layers the decoder has.
    """

    reads_start = True

    def __init__(self, backbone, decoder_layers):
        self.backbone = backbone
        self.encoder = backbone.transformer_layers
        size, policy = backbone.hidden_dim, backbone.dtype_policy
        self.decoder = [
            TransformerDecoderLayer(
                backbone.num_heads,
                backbone.intermediate_dim,
                dropout=backbone.dropout,
                dtype=policy,
                name=f"decoder_{number}",
            )
            for number in range(decoder_layers)
        ]
        self.norms = [
            keras.layers.LayerNormalization(epsilon=EPSILON, dtype=policy, name=f"decoder_{name}")
            for name in ("inputs_norm", "norm")
        ]
        self.drop = Dropout(backbone.dropout, dtype=policy, name="decoder_dropout")
        for layer in [*self.decoder, *self.norms]:
            layer.build((None, None, size))
        # Of the first token, for the task that BERT was trained with beside its words.
        if hasattr(backbone, "pooled_dense"):
            backbone.pooled_dense.trainable = False

    def own_layers(self):
        return [*self.decoder, *self.norms, self.drop]

    def embedding_dropouts(self):
        return [self.backbone.embeddings_dropout, self.drop]

    def _placing(self):
        """Returns the layers that say where a word stands."""
        backbone = self.backbone
        if hasattr(backbone, "position_embedding"):
            return [backbone.position_embedding, backbone.segment_embedding]
        return [backbone.embeddings.position_embedding]

    def stacks(self):
        first, last = self.norms
        decoder = [[layer] for layer in self.decoder]
        decoder[0].append(first)
        decoder[-1].append(last)
        return {
            "embeddings": [*self._placing(), self.backbone.embeddings_layer_norm],
            "encoder": [[layer] for layer in self.encoder],
            "decoder": decoder,
        }

    def encode(self, embedded, mask, training):
        position, *segments = self._placing()
        places = ops.arange(ops.shape(embedded)[1], dtype="int32")
        states = add_positions(embedded, places, position)
        for segment in segments:
            # A source is one text.
            states = states + ops.cast(segment.embeddings[0], embedded.dtype)
        states = self.backbone.embeddings_layer_norm(states)
        states = self.backbone.embeddings_dropout(states, training=training)
        for layer in self.encoder:
            states = layer(states, padding_mask=mask, training=training)
        return states

    def cache_shape(self):
        heads = self.backbone.num_heads
        return heads, self.backbone.hidden_dim // heads

    def project_source(self, number, states):
        return self.decoder[number].project_memory(states)

    def decode(self, embedded, positions, memory, carry, index, training):
        first, last = self.norms
        placed = sinusoidal_positions(positions, self.backbone.hidden_dim)
        states = self.drop(first(embedded) + ops.cast(placed, embedded.dtype), training=training)
        new = {}
        for number, layer in enumerate(self.decoder):
            keys, values = f"keys_{number}", f"values_{number}"
            states, cache = layer(
                states,
                source_keys=memory[keys],
                source_values=memory[values],
                source_mask=memory["source_mask"],
                cache=None if carry is None else {"keys": carry[keys], "values": carry[values]},
                index=index,
                training=training,
            )
            if cache is not None:
                new[keys], new[values] = cache["keys"], cache["values"]
        return last(states), new
