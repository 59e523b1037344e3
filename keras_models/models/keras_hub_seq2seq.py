"""Encoder-decoder body: a pre-trained model of keras-hub, under a copy head."""

import keras
import numpy as np
from keras import ops

from keras_models.decoding.constraints import END_ID, START_ID
from keras_models.layers.numerics import rowwise
from keras_models.layers.source_attention import SourceAttention
from keras_models.layers.transformer import EPSILON
from keras_models.models.keras_hub_backbones import copy_weights, describe, rebuild
from keras_models.models.parallel_seq2seq import ParallelSeq2Seq
from keras_models.models.seq2seq import BODY_OPTIONS


@keras.saving.register_keras_serializable("verbatim")
class KerasHubSeq2Seq(ParallelSeq2Seq):
    """T5, BART or an encoder of keras-hub, and an attention on top of it for the head.

        h   = Encoder(x)
        u_t = Decoder(y_1 .. y_{t-1}, h)
        s_t = Norm(u_t),  a_t = softmax_j(s_t . W h_j / sqrt(d)),  context_t = sum_j a_tj h_j
        o_t = u_t + W_c context_t

    W_c begins with zeros: before it is trained, o_t is the backbone's own output, so that a softmax
    of the preset's weights is the preset's.

    Words' vectors, and the softmax, are over the body's own vocabularies. `take_preset` fills them,
    word by word, from the preset's, and the layers, too. Over an encoder alone (BERT, RoBERTa,
    DistilBERT) the decoder is ours, of random weights; see `keras_hub_encoders.EncoderLayers`.

    Args:
        source_vocabulary_size: number of source ids.
        target_vocabulary_size: V.
        backbone: `T5Backbone`, `BartBackbone`, `BertBackbone`, `RobertaBackbone` or
            `DistilBertBackbone` of keras-hub, of which only the sizes are taken; or what
            `keras_hub_backbones.describe` makes of it.
        head: name of the head, see `keras_models.heads.registry`.
        dropout: share of units dropped; None takes the backbone's.
        coverage_loss_weight: weight of `losses.coverage_loss` of a_t, added to the training loss.
        decoder_layers: layers of the decoder, over an encoder alone.
        head_options, large_vocabulary_size, large_vocabulary_drawn, source_features, feature_size,
            scheduled_sampling, lexicon_shape, tie_embeddings, label_smoothing, embedding_dropout,
            word_dropout, output_dropout, guided_alignment_weight: see `Seq2Seq`.

    Raises:
        ImportError: keras-hub is not installed.
        ValueError: a backbone of another kind, or options that do not fit together.

    Call arguments:
        inputs: see `RecurrentSeq2Seq`.

    Returns:
        float32 `[batch, target_length]`, the log-probability of each label; train with
        `losses.negative_log_likelihood`.

    Example:

    >>> import keras_hub
    >>> import numpy as np
    >>> from keras_models.models import KerasHubSeq2Seq
    >>> backbone = keras_hub.models.BartBackbone(
    ...     vocabulary_size=12, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    >>> model = KerasHubSeq2Seq(
    ...     source_vocabulary_size=20, target_vocabulary_size=10, backbone=backbone)
    >>> log_probs = model({
    ...     "source_ids": np.array([[4, 5, 6]]),
    ...     "source_extended_ids": np.array([[10, 11, 12]]),
    ...     "target_input_ids": np.array([[2, 7]]),
    ...     "target_extended_ids": np.array([[7, 3]]),
    ... })
    >>> tuple(log_probs.shape)
    (1, 2)

    References:
        Raffel et al. 2020, https://arxiv.org/abs/1910.10683; Lewis et al. 2020,
        https://arxiv.org/abs/1910.13461
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        backbone,
        head="pointer_generator",
        dropout=None,
        coverage_loss_weight=0.0,
        decoder_layers=1,
        **kwargs,
    ):
        description = backbone if isinstance(backbone, dict) else describe(backbone)
        super().__init__(source_vocabulary_size, target_vocabulary_size, head, **kwargs)
        if not self.looks_up or self.composed_by:
            raise ValueError(
                "A pre-trained body has vectors of words as its preset does: composition must be "
                "'lookup'."
            )
        self._config = dict(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            backbone=description,
            head=head,
            dropout=dropout,
            coverage_loss_weight=coverage_loss_weight,
            decoder_layers=decoder_layers,
            **{name: kwargs[name] for name in BODY_OPTIONS if name in kwargs},
        )
        self.coverage_loss_weight = coverage_loss_weight
        policy = self.dtype_policy
        self.backbone, self._layers_run = rebuild(description, dropout, policy, decoder_layers)
        self.own_decoder = self._layers_run.own_layers()
        if self.embedding_dropout is not None:
            for layer in self._layers_run.embedding_dropouts():
                layer.rate = self.embedding_dropout
        size = self.backbone.hidden_dim
        self.hidden_size = self.embedding_size = size
        self.make_word_vectors(
            source_vocabulary_size,
            target_vocabulary_size,
            size,
            tied_scale=self._layers_run.tied_scale,
        )
        self.source_projection = None
        if self.features_size:
            self.source_projection = keras.layers.Dense(
                size, use_bias=False, dtype=policy, name="source_projection"
            )
            self.source_projection.build((None, self.features_size))

        def norm(name):
            layer = keras.layers.LayerNormalization(epsilon=EPSILON, dtype=policy, name=name)
            layer.build((None, None, size))
            return layer

        self.query_norm = norm("query_norm")
        self.input_norm = norm("input_norm")
        self.attention = SourceAttention("bilinear", dtype=policy, name="attention")
        self.attention.build((None, size), (None, None, size))
        self.readout = keras.layers.Dense(
            size, use_bias=False, kernel_initializer="zeros", dtype=policy, name="readout"
        )
        self.readout.build((None, size))
        self.make_dropouts(self.backbone.dropout, output_dropout=0.0)
        self.build_head(size, size, size, size)

    def stacks(self):
        stacks = self._layers_run.stacks()
        return {**stacks, "embeddings": [self.embedding_layers() + stacks["embeddings"]]}

    def get_config(self):
        return {**super().get_config(), **self._config}

    def take_preset(self, preset, source_ids, target_ids):
        """Takes the weights of a backbone: its layers, and vectors word by word.

        Args:
            preset: a backbone of the sizes of this body's.
            source_ids: int `[source_vocabulary_size]`, the preset's id of each source id, -1 for
                words that it does not have. Those keep random vectors, as large as the others.
            target_ids: int `[target_vocabulary_size]`, likewise.

        Raises:
            ValueError: another preset than this body was made for, or ids that do not fit.
        """
        if describe(preset) != self._config["backbone"]:
            raise ValueError("The preset is not the one that the body was made for.")
        if self.tie_embeddings != "none" and not preset.token_embedding.tie_weights:
            raise ValueError(
                f"The preset's softmax has weights of its own: tie_embeddings must be 'none', not "
                f"{self.tie_embeddings!r}."
            )
        copy_weights(self.backbone, preset)
        vectors = ops.convert_to_numpy(preset.token_embedding.embeddings)
        self._take_vectors("source", vectors, source_ids)
        if self.tie_embeddings != "all":
            self._take_vectors("target", vectors, target_ids)
        if self.tie_embeddings == "none" and self.head.vocabulary is not None:
            columns = vectors * self._layers_run.logit_scale
            if not preset.token_embedding.tie_weights:
                columns = ops.convert_to_numpy(preset.token_embedding.reverse_embeddings).T
            kernel = self.head.vocabulary.kernel
            kernel.assign(_rows(np.asarray(ops.convert_to_numpy(kernel)).T, columns, target_ids).T)

    def _take_vectors(self, side, vectors, ids):
        layer = self.source_embedding if side == "source" else self.target_embedding
        first = ops.convert_to_numpy(layer.embeddings) * self._scales[side]
        layer.embeddings.assign(_rows(first, vectors, ids) / self._scales[side])

    # Encoder.

    def _read(self, inputs, training):
        """The source with what a preset puts around it: `[batch, length + ends, size]`, its mask,
        and how many tokens stand before it.
        """
        ids = ops.cast(inputs["source_ids"], "int32")
        before = 1 if self._layers_run.reads_start else 0
        lengths = ops.sum(ops.cast(ops.not_equal(ids, 0), "int32"), axis=1, keepdims=True)
        places = ops.arange(ops.shape(ids)[1] + before + 1, dtype="int32")[None, :]
        around = ((0, 0), (before, 1))
        ids = ops.where(places == lengths + before, END_ID, ops.pad(ids, around))
        if before:
            ids = ops.where(places == 0, START_ID, ids)
        features = {name: ops.pad(inputs[name], around) for name in self.feature_embeddings}
        words = self._look_up("source", ids)
        if self.source_projection is not None:
            joined = [layer(features[name]) for name, layer in self.feature_embeddings.items()]
            words = words + rowwise(self.source_projection, ops.concatenate(joined, axis=-1))
        return self.drop_words(words, training), ops.not_equal(ids, 0), before

    def encode(self, inputs, training=False, max_length=None):
        """Reads the source.

        Args:
            inputs, training, max_length: see `TransformerSeq2Seq.encode`.

        Returns:
            memory: dict of tensors with leading axis `batch`: `states`, `mask`, `extended_ids`,
                `feed_ids` if given, `keys` of the attention, keys and values of the decoder's
                layers with their `source_mask`, and what the head prepared.
            carry: the decoder's first carry; empty without `max_length`.
        """
        mask = ops.not_equal(ops.cast(inputs["source_ids"], "int32"), 0)
        batch, length = ops.shape(mask)
        embedded, source_mask, before = self._read(inputs, training)
        states = self._layers_run.encode(embedded, source_mask, training)
        memory = self.make_memory(inputs, states[:, before : before + length], mask)
        memory["source_mask"] = source_mask
        memory["keys"] = self.attention.project_memory(memory["states"])
        number_of_layers = len(self._layers_run.decoder)
        for number in range(number_of_layers):
            memory[f"keys_{number}"], memory[f"values_{number}"] = self._layers_run.project_source(
                number, states
            )
        if max_length is None:
            return memory, {}
        heads, key_size = self._layers_run.cache_shape()
        # The end is one more step.
        shape = (batch, heads, max_length + 1, key_size)
        carry = {
            f"{name}_{number}": ops.zeros(shape, dtype=self.compute_dtype)
            for name in ("keys", "values")
            for number in range(number_of_layers)
        }
        return memory, carry

    # Decoder.

    def decode_steps(self, embedded, positions, memory, carry=None, index=None, training=False):
        states, new = self._layers_run.decode(
            self.drop_words(embedded, training), positions, memory, carry, index, training
        )
        query = self.query_norm(states)
        scale = ops.cast(self.hidden_size**-0.5, query.dtype)
        context, log_weights = self.attention(
            query * scale, memory["states"], mask=memory["mask"], keys=memory["keys"]
        )
        hidden = states + self.drop(rowwise(self.readout, context), training=training)
        state = {
            "hidden": self.drop_outputs(hidden, training),
            "context": context,
            "decoder_state": query,
            # A preset's vectors may be far from the variance that a gate's kernel expects.
            "inputs": self.input_norm(embedded),
            "attention_log_weights": log_weights,
        }
        return state, new


def _rows(first, vectors, ids):
    """Rows of `vectors` by `ids`; for -1 those of `first`, scaled to the vectors' size."""
    ids = np.asarray(ids)
    if ids.shape != first.shape[:1] or ids.max() >= len(vectors):
        raise ValueError(
            f"The preset's ids must have the shape {first.shape[:1]} and be below {len(vectors)}; "
            f"got {ids.shape} and up to {ids.max()}."
        )
    scaled = first * (vectors.std() / max(first.std(), 1e-12))
    return np.where(ids[:, None] >= 0, vectors[np.maximum(ids, 0)], scaled)
