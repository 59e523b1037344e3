"""Layers of keras-hub's encoder-decoders, run so that decoding keeps keys and values."""

import contextlib
import warnings

from keras import ops

from keras_models.layers.caches import write_step
from keras_models.layers.numerics import LOG_ZERO, rowwise


@contextlib.contextmanager
def without_mask_warnings():
    """Silences what Keras says of masks while keras-hub's T5 is built: they are its own inputs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was passed an input with a mask attached")
        yield


def import_keras_hub():
    """Returns the module `keras_hub`.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "The body 'keras_hub' needs the package keras-hub, which is not installed: "
            "pip install 'path/to/verbatim[hub]'."
        ) from error
    return keras_hub


def attend(query, keys, values, allowed, bias=0.0, scale=1.0, drop=lambda weights: weights):
    """Attends with several heads.

    Args:
        query: `[batch, heads, length, key_size]`.
        keys, values: `[batch, heads, memory_length, key_size]`.
        allowed: bool, broadcasts to `[batch, heads, length, memory_length]`.
        bias: float32 of the same kind, added to the scores.
        scale: of the scores.
        drop: function of the weights.

    Returns:
        `[batch, heads, length, key_size]`.
    """
    scores = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
    scores = ops.cast(scores, "float32") * scale + bias
    weights = ops.where(allowed, ops.softmax(ops.where(allowed, scores, LOG_ZERO), axis=-1), 0.0)
    return ops.matmul(drop(ops.cast(weights, values.dtype)), values)


class BackboneLayers:
    """Base of what runs the layers of a backbone.

    keras-hub's own T5 keeps no keys and values, and its BART keeps them by an operation of XLA's,
    which a served model may do without.

    Args:
        backbone: a backbone of keras-hub with encoder and decoder.

    Attributes:
        reads_start: whether a source begins with the start token, which stands outside of it. All
            end with the end token.
        start_token: the token that a decoder reads first, by its attribute of keras-hub's
            tokenizer.
        tied_scale: what words' vectors are multiplied by where they are the softmax' weights, too.
        logit_scale: what the preset's softmax multiplies the decoder's outputs by.
    """

    reads_start = False
    start_token = "start_token"
    tied_scale = 1.0
    logit_scale = 1.0

    def __init__(self, backbone):
        self.backbone = backbone
        self.encoder = backbone.encoder_transformer_layers
        self.decoder = backbone.decoder_transformer_layers

    # Of each kind of backbone.

    def own_layers(self):
        """Returns the layers that are none of the backbone's."""
        return []

    def embedding_dropouts(self):
        """Returns the layers that drop units of words' vectors."""
        raise NotImplementedError

    def stacks(self):
        """Returns what `Seq2Seq.stacks` does, without words' vectors: `"embeddings"` is flat."""
        raise NotImplementedError

    def encode(self, embedded, mask, training):
        """Reads `[batch, length, size]` words' vectors; bool mask `[batch, length]`."""
        raise NotImplementedError

    def cache_shape(self):
        """Returns (heads, key size) of the decoder."""
        raise NotImplementedError

    def project_source(self, number, states):
        """Returns the keys and values of the source's states, for a layer of the decoder."""
        raise NotImplementedError

    def _enter(self, embedded, positions, training):
        raise NotImplementedError

    def _leave(self, states, training):
        return states

    def _bias(self, positions, times):
        return 0.0

    def _run(self, layer, states, keep, allowed, bias, source, training):
        raise NotImplementedError

    # Of all.

    def decode(self, embedded, positions, memory, carry, index, training):
        """Runs the decoder.

        Args:
            embedded: `[batch, length, size]`, the previous tokens.
            positions: int `[length]`.
            memory: dict with `keys_0`, `values_0` and so on of `project_source`, and `source_mask`
                bool `[batch, source_length]`.
            carry: None, for all steps in parallel; or, for the step `index`, dict of `keys_0`,
                `values_0` and so on, `[batch, heads, max_length, key_size]`.
            index: number of that step, or None.
            training: whether dropout is on.

        Returns:
            `[batch, length, size]` and the new carry.
        """
        states = self._enter(embedded, positions, training)
        times = positions
        if carry is not None:
            times = ops.arange(ops.shape(carry["keys_0"])[2], dtype="int32")
        allowed = (ops.expand_dims(times, 0) <= ops.expand_dims(positions, 1))[None, None]
        bias = self._bias(positions, times)
        new = {}
        for number, layer in enumerate(self.decoder):
            names = (f"keys_{number}", f"values_{number}")

            def keep(*arrays, names=names):
                if carry is not None:
                    arrays = [write_step(carry[name], a, index) for a, name in zip(arrays, names)]
                    new.update(zip(names, arrays))
                return arrays

            source = (memory[names[0]], memory[names[1]], memory["source_mask"][:, None, None, :])
            states = self._run(layer, states, keep, allowed, bias, source, training)
        return self._leave(states, training), new


class T5Layers(BackboneLayers):
    """Of `T5Backbone`: pre-norm, with biases by relative positions."""

    # A T5 begins with its padding.
    start_token = "pad_token"

    def __init__(self, backbone):
        super().__init__(backbone)
        if backbone.tie_embedding_weights:
            self.tied_scale = backbone.hidden_dim**0.5
            self.logit_scale = backbone.hidden_dim**-0.5

    def embedding_dropouts(self):
        return [self.backbone.encoder_embedding_dropout, self.backbone.decoder_embedding_dropout]

    def stacks(self):
        stacks = {
            side: [[layer] for layer in layers]
            for side, layers in (("encoder", self.encoder), ("decoder", self.decoder))
        }
        for side, layers in stacks.items():
            layers[-1].append(getattr(self.backbone, f"{side}_layer_norm"))
        return {"embeddings": [], **stacks}

    def encode(self, embedded, mask, training):
        states = self.backbone.encoder_embedding_dropout(embedded, training=training)
        bias = None
        for layer in self.encoder:
            states, bias = layer(
                states, attention_mask=mask[:, None, :], position_bias=bias, training=training
            )
        states = self.backbone.encoder_layer_norm(states)
        return self.backbone.encoder_dropout(states, training=training)

    def cache_shape(self):
        attention = self.decoder[0].self_attention
        return attention.num_heads, attention.key_value_dim

    def project_source(self, number, states):
        return self._keys(self.decoder[number].cross_attention, states)

    def _split(self, projector, inputs):
        batch, length = ops.shape(inputs)[:2]
        parts = ops.reshape(rowwise(projector, inputs), (batch, length, *self.cache_shape()))
        return ops.transpose(parts, (0, 2, 1, 3))

    def _keys(self, attention, inputs):
        return (
            self._split(attention.key_projector, inputs),
            self._split(attention.value_projector, inputs),
        )

    def _bias(self, positions, times):
        attention = self.decoder[0].self_attention
        buckets = attention._relative_position_bucket(
            ops.expand_dims(times, 0) - ops.expand_dims(positions, 1),
            bidirectional=False,
            num_buckets=attention.relative_attention_buckets,
            max_distance=attention.relative_attention_max_distance,
        )
        bias = ops.take(ops.cast(attention.relative_attention_bias, "float32"), buckets, axis=0)
        return ops.expand_dims(ops.transpose(bias, (2, 0, 1)), 0)

    def _attend(self, attention, inputs, keys, values, allowed, bias, training):
        attended = attend(
            self._split(attention.query_projector, inputs),
            keys,
            values,
            allowed,
            bias,
            drop=lambda weights: attention.dropout_layer(weights, training=training),
        )
        batch, length = ops.shape(inputs)[:2]
        joined = ops.reshape(
            ops.transpose(attended, (0, 2, 1, 3)), (batch, length, attention.inner_dim)
        )
        return rowwise(attention.output_projector, joined)

    def _enter(self, embedded, positions, training):
        return self.backbone.decoder_embedding_dropout(embedded, training=training)

    def _run(self, layer, states, keep, allowed, bias, source, training):
        inputs = layer.self_attention_layer_norm(states)
        keys, values = keep(*self._keys(layer.self_attention, inputs))
        attended = self._attend(layer.self_attention, inputs, keys, values, allowed, bias, training)
        states = states + layer.self_attention_dropout(attended, training=training)
        inputs = layer.cross_attention_layer_norm(states)
        attended = self._attend(layer.cross_attention, inputs, *source, 0.0, training)
        states = states + layer.cross_attention_dropout(attended, training=training)

        def transform(rows):
            hidden = layer.input_projector(rows)
            if layer.use_gated_activation:
                hidden = hidden * layer.gate_projector(rows)
            return layer.output_projector(layer.dropout_layer(hidden, training=training))

        outputs = rowwise(transform, layer.layer_norm(states))
        return states + layer.dropout_layer(outputs, training=training)

    def _leave(self, states, training):
        states = self.backbone.decoder_layer_norm(states)
        return self.backbone.decoder_dropout(states, training=training)


def add_positions(embedded, positions, layer):
    """Adds the learned vectors of positions; beyond the last position, the last one stands.

    Args:
        embedded: `[batch, length, size]`.
        positions: int32 `[length]`.
        layer: a `PositionEmbedding` of keras-hub.

    Returns:
        `[batch, length, size]`.
    """
    table = layer.position_embeddings
    positions = ops.minimum(positions, table.shape[0] - 1)
    return embedded + ops.cast(ops.take(table, positions, axis=0), embedded.dtype)


class BartLayers(BackboneLayers):
    """Of `BartBackbone`: post-norm, with learned positions."""

    reads_start = True

    def embedding_dropouts(self):
        return [self.backbone.encoder_embeddings_dropout, self.backbone.decoder_embeddings_dropout]

    def stacks(self):
        placing = [
            getattr(self.backbone, f"{side}_{name}")
            for side in ("encoder", "decoder")
            for name in ("position_embedding", "embeddings_layer_norm")
        ]
        return {
            "embeddings": placing,
            "encoder": [[layer] for layer in self.encoder],
            "decoder": [[layer] for layer in self.decoder],
        }

    def _place(self, embedded, positions, side, training):
        part = {
            name: getattr(self.backbone, f"{side}_{name}")
            for name in ("position_embedding", "embeddings_layer_norm", "embeddings_dropout")
        }
        placed = add_positions(embedded, positions, part["position_embedding"])
        return part["embeddings_dropout"](part["embeddings_layer_norm"](placed), training=training)

    def encode(self, embedded, mask, training):
        positions = ops.arange(ops.shape(embedded)[1], dtype="int32")
        states = self._place(embedded, positions, "encoder", training)
        for layer in self.encoder:
            states = layer(states, padding_mask=mask, training=training)
        return states

    def cache_shape(self):
        heads = self.backbone.num_heads
        return heads, self.backbone.hidden_dim // heads

    def project_source(self, number, states):
        return self._keys(self.decoder[number]._cross_attention_layer, states)

    def _keys(self, attention, inputs):
        return (
            ops.transpose(attention._key_dense(inputs), (0, 2, 1, 3)),
            ops.transpose(attention._value_dense(inputs), (0, 2, 1, 3)),
        )

    def _attend(self, attention, inputs, keys, values, allowed, training):
        attended = attend(
            ops.transpose(attention._query_dense(inputs), (0, 2, 1, 3)),
            keys,
            values,
            allowed,
            scale=self.cache_shape()[1] ** -0.5,
            drop=lambda weights: attention._dropout_layer(weights, training=training),
        )
        return attention._output_dense(ops.transpose(attended, (0, 2, 1, 3)))

    def _enter(self, embedded, positions, training):
        return self._place(embedded, positions, "decoder", training)

    def _run(self, layer, states, keep, allowed, bias, source, training):
        attention = layer._self_attention_layer
        keys, values = keep(*self._keys(attention, states))
        attended = self._attend(attention, states, keys, values, allowed, training)
        attended = layer._self_attention_dropout(attended, training=training)
        states = layer._self_attention_layer_norm(states + attended)
        attended = self._attend(layer._cross_attention_layer, states, *source, training)
        attended = layer._cross_attention_dropout(attended, training=training)
        states = layer._cross_attention_layer_norm(states + attended)
        outputs = rowwise(
            lambda rows: layer._feedforward_output_dense(
                layer._feedforward_intermediate_dense(rows)
            ),
            states,
        )
        outputs = layer._feedforward_dropout(outputs, training=training)
        return layer._feedforward_layer_norm(states + outputs)
