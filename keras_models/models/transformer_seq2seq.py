"""Encoder-decoder body: a Transformer that ends with the attention that a head copies by."""

import keras
from keras import ops

from keras_models.layers.caches import Shared, beside, follow, one_below_another
from keras_models.layers.numerics import rowwise
from keras_models.layers.panels import Dense
from keras_models.layers.source_attention import SourceAttention
from keras_models.layers.transformer import (
    EPSILON,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    sinusoidal_positions,
)
from keras_models.models.parallel_seq2seq import ParallelSeq2Seq
from keras_models.models.seq2seq import BODY_OPTIONS


@keras.saving.register_keras_serializable("verbatim")
class TransformerSeq2Seq(ParallelSeq2Seq):
    """Transformer encoder and decoder under a copy head.

        x_t = sqrt(e) E y_{t-1} + PE(t)            (Vaswani et al. 2017, sections 3.4 and 3.5)
        h   = Norm(EncoderLayers(sqrt(e) E_s x + PE))
        u_t = DecoderLayers(x_1 .. x_t, h)         multi-head attention over itself and over h
        s_t = Norm(u_t),  a_t = softmax_j(s_t . W h_j / sqrt(d)),  context_t = sum_j a_tj h_j
        o_t = Norm'(u_t + W_c context_t)

    The head turns (o_t, context_t, s_t, a_t) into a distribution over the extended vocabulary. The
    heads of a multi-head attention share out their work, and none of them is trained to point at
    what is copied; so copying has an attention of its own, with a single head, whose context is the
    last thing that the decoder adds: a_t is a proper distribution and learned under every head. It
    is `SourceAttention`'s bilinear score of the scaled query.

    Training computes all steps at once. Decoding keeps keys and values of the steps before in the
    carry, whose size `encode`'s `max_length` fixes. Coverage in the attention's score would make
    each step wait for the one before, so there is none here; coverage's loss can be had.

    Args:
        source_vocabulary_size: number of source ids.
        target_vocabulary_size: V.
        head: name of the head, see `keras_models.heads.registry`.
        embedding_size: e, projected to `hidden_size` where they differ or the source has features.
        hidden_size: d, an even multiple of `attention_heads`.
        attention_heads: heads of each multi-head attention.
        feed_forward_size: hidden units of the feed-forward networks.
        encoder_layers, decoder_layers: stacked layers.
        dropout: share of units dropped on embeddings and on what each sub-layer adds.
        attention_dropout: share of the weights dropped of each multi-head attention.
        feed_forward_dropout: share of hidden units dropped of the feed-forward networks.
        depth_scaled: whether the last kernel of each sub-layer starts smaller, divided by the
            square root of how many sub-layers its stack has (Radford et al. 2019, section 2.3). A
            deep stack's outputs then start with the variance of a shallow one's.
        norm_first: whether each sub-layer normalises its inputs (pre-norm), or else what it leaves
            (post-norm, as in Vaswani et al. 2017): the stacks then need no norm behind them, h and
            s_t are what they leave, and training needs a long warm-up.
        coverage_loss_weight: weight of `losses.coverage_loss` of a_t, added to the training loss.
        selective_read: must be false; it is for the recurrent body, as it feeds each step with the
            copy scores of the one before.
        head_options, large_vocabulary_size, large_vocabulary_drawn, source_features, feature_size,
            scheduled_sampling, lexicon_shape, composition, composition_options, tie_embeddings,
            label_smoothing, embedding_dropout, word_dropout, output_dropout,
            guided_alignment_weight, consistency_weight: see `Seq2Seq`. Scheduled sampling takes
            two passes over the target (Mihaylova and Martins 2019).

    Raises:
        ValueError: sizes or options that do not fit together.

    Call arguments:
        inputs: see `RecurrentSeq2Seq`.

    Returns:
        float32 `[batch, target_length]`, the log-probability of each label; train with
        `losses.negative_log_likelihood`.

    Example:

    >>> import numpy as np
    >>> from keras_models.models import TransformerSeq2Seq
    >>> model = TransformerSeq2Seq(
    ...     source_vocabulary_size=20, target_vocabulary_size=10, hidden_size=8, embedding_size=8)
    >>> log_probs = model({
    ...     "source_ids": np.array([[4, 5, 6]]),
    ...     "source_extended_ids": np.array([[10, 11, 12]]),
    ...     "target_input_ids": np.array([[2, 7]]),
    ...     "target_extended_ids": np.array([[7, 3]]),
    ... })
    >>> tuple(log_probs.shape)
    (1, 2)

    References:
        Vaswani et al. 2017, "Attention Is All You Need", https://arxiv.org/abs/1706.03762;
        Mihaylova and Martins 2019, "Scheduled Sampling for Transformers",
        https://arxiv.org/abs/1906.07651
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        head="pointer_generator",
        embedding_size=256,
        hidden_size=256,
        attention_heads=4,
        feed_forward_size=1024,
        encoder_layers=3,
        decoder_layers=3,
        dropout=0.1,
        coverage_loss_weight=0.0,
        selective_read=False,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        depth_scaled=False,
        norm_first=True,
        **kwargs,
    ):
        # The Transformer multiplies its embeddings by the square root of their size.
        stddev = embedding_size**-0.5
        super().__init__(
            source_vocabulary_size, target_vocabulary_size, head, embedding_stddev=stddev, **kwargs
        )
        self._config = dict(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            head=head,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            attention_heads=attention_heads,
            feed_forward_size=feed_forward_size,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            dropout=dropout,
            coverage_loss_weight=coverage_loss_weight,
            attention_dropout=attention_dropout,
            feed_forward_dropout=feed_forward_dropout,
            depth_scaled=depth_scaled,
            norm_first=norm_first,
            **{name: kwargs[name] for name in BODY_OPTIONS if name in kwargs},
        )
        if hidden_size % attention_heads or hidden_size % 2:
            raise ValueError(
                f"hidden_size must be even and divisible by attention_heads; got {hidden_size} "
                f"and {attention_heads}."
            )
        if selective_read:
            raise ValueError(
                "selective_read is for the recurrent body: the Transformer trains all steps at "
                "once."
            )
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size
        self.attention_heads = attention_heads
        self.coverage_loss_weight = coverage_loss_weight
        policy = self.dtype_policy

        def projection(size, name):
            if size == hidden_size:
                return None
            layer = Dense(hidden_size, use_bias=False, dtype=policy, name=f"{name}_projection")
            layer.build((None, size))
            return layer

        def norm(name):
            layer = keras.layers.LayerNormalization(epsilon=EPSILON, dtype=policy, name=name)
            layer.build((None, None, hidden_size))
            return layer

        def stack(kind, number, name):
            layers = [
                kind(
                    attention_heads,
                    feed_forward_size,
                    dropout=dropout,
                    attention_dropout=attention_dropout,
                    feed_forward_dropout=feed_forward_dropout,
                    norm_first=norm_first,
                    dtype=policy,
                    name=f"{name}_{index}",
                )
                for index in range(number)
            ]
            for layer in layers:
                layer.build((None, None, hidden_size))
            last = [kernel for layer in layers for kernel in layer.last_kernels()]
            for kernel in last if depth_scaled else []:
                kernel.assign(kernel * len(last) ** -0.5)
            return layers

        self.make_word_vectors(
            source_vocabulary_size, target_vocabulary_size, embedding_size, stddev
        )
        self.source_projection = projection(embedding_size + self.features_size, "source")
        self.target_projection = projection(embedding_size, "target")
        self.encoder = stack(TransformerEncoderLayer, encoder_layers, "encoder")
        self.encoder_norm = norm("encoder_norm") if norm_first else None
        self.decoder = stack(TransformerDecoderLayer, decoder_layers, "decoder")
        self.query_norm = norm("query_norm") if norm_first else None
        self.attention = SourceAttention("bilinear", dtype=policy, name="attention")
        self.attention.build((None, hidden_size), (None, None, hidden_size))
        self.readout = Dense(hidden_size, use_bias=False, dtype=policy, name="readout")
        self.readout.build((None, hidden_size))
        self.output_norm = norm("output_norm")
        self.make_dropouts(dropout, output_dropout=0.0)
        self.build_head(hidden_size, hidden_size, embedding_size, hidden_size)

    def stacks(self):
        def beside(stack, first, last):
            layers = [[layer] for layer in stack] or [[]]
            layers[0] += first
            layers[-1] += last
            return [[layer for layer in part if layer is not None] for part in layers]

        return {
            "embeddings": [self.embedding_layers()],
            "encoder": beside(self.encoder, [self.source_projection], [self.encoder_norm]),
            "decoder": beside(self.decoder, [self.target_projection], []),
        }

    def get_config(self):
        return {**super().get_config(), **self._config}

    def decoder_kernels(self):
        projection = [] if self.target_projection is None else [self.target_projection.kernel]
        layers = [kernel for layer in self.decoder for kernel in layer.step_kernels()]
        return [*projection, *layers, self.readout.kernel]

    def _place(self, embedded, projection, positions, training):
        """Embeddings `[batch, length, size]` as the first layer's inputs.

        They are projected if need be, with their positions.
        """
        embedded = self.drop_words(embedded, training)
        if projection is not None:
            embedded = rowwise(projection, embedded)
        encoded = ops.cast(sinusoidal_positions(positions, self.hidden_size), embedded.dtype)
        return self.drop_embedded(embedded + encoded, training)

    # Encoder.

    def encode(self, inputs, training=False, max_length=None):
        """Reads the source.

        Args:
            inputs: dict with int `[batch, source_length]` `source_ids`, `source_extended_ids` and,
                for decoding, `source_feed_ids` (target id fed after a copy of that token).
            training: whether dropout is on.
            max_length: the longest output that is to be decoded, in tokens without the end, an int
                or scalar tensor: what room the carry has. None where no step follows.

        Returns:
            memory: dict of tensors with leading axis `batch`: `states`, `mask`, `extended_ids`,
                `feed_ids` if given, `keys` of the attention, keys and values of the decoder's
                layers, and what the head prepared.
            carry: the decoder's first carry, tensors with leading axis `batch`; empty without
                `max_length`.
        """
        source_ids = ops.cast(inputs["source_ids"], "int32")
        batch, length = ops.shape(source_ids)
        mask = ops.not_equal(source_ids, 0)
        embedded = self.embed_source(inputs)
        embedded = embedded * ops.cast(self.embedding_size**0.5, embedded.dtype)
        states = self._place(
            embedded, self.source_projection, ops.arange(length, dtype="int32"), training
        )
        for layer in self.encoder:
            states = layer(states, source_mask=mask, training=training)
        if self.encoder_norm is not None:
            states = self.encoder_norm(states)
        memory = self.make_memory(inputs, states, mask)
        memory["keys"] = self.attention.project_memory(memory["states"])
        for index, layer in enumerate(self.decoder):
            memory[f"keys_{index}"], memory[f"values_{index}"] = layer.project_memory(
                memory["states"]
            )
        if max_length is None:
            return memory, {}
        # The end is one more step.
        shape = (
            batch,
            self.attention_heads,
            max_length + 1,
            self.hidden_size // self.attention_heads,
        )
        carry = {
            f"{name}_{index}": ops.zeros(shape, dtype=self.compute_dtype)
            for name in ("keys", "values")
            for index in range(len(self.decoder))
        }
        return memory, carry

    def share(self, memory, carry, hypotheses):
        """Keeps keys and values of the source and of the steps once for all hypotheses.

        A beam search then moves none of them, see `Seq2Seq.share`. For a batch of one source they
        are few, and moving them costs no more.
        """
        names = list(carry)
        batch, _, length, _ = ops.shape(carry["keys_0"])
        if hypotheses == 1 or (isinstance(batch, int) and batch == 1):
            return memory, carry

        def widened(cache):
            return ops.stack([cache] * hypotheses, axis=3)

        source = {name: memory[name] for name in (*names, "mask")}
        own = {name: part for name, part in memory.items() if name not in names}
        caches = {name: widened(cache) for name, cache in carry.items()}
        ancestors = ops.zeros((batch, length), dtype="int32")
        return {**own, "shared": Shared(source)}, {"ancestors": ancestors, "caches": Shared(caches)}

    # Decoder.

    def embed_target(self, ids):
        embedded = super().embed_target(ids)
        return embedded * ops.cast(self.embedding_size**0.5, embedded.dtype)

    def decode_steps(self, embedded, positions, memory, carry=None, index=None, training=False):
        """What the head reads of some steps.

        Args:
            embedded: `[batch, length, embedding_size]`, the previous tokens.
            positions: int `[length]`.
            memory: what `encode` returned.
            carry, index: for a decoding step, of length 1; see `step`.

        Returns:
            `state`, tensors `[batch, length, ...]`, and the next carry.
        """
        states = self._place(embedded, self.target_projection, positions, training)
        allowed, caches, new = None, carry, {}
        shared = memory.get("shared")
        if shared is not None:
            caches = carry["caches"].tensors
            hypotheses = caches["keys_0"].shape[3]
            ancestors, allowed = follow(carry["ancestors"], index, hypotheses)
            states = beside(states, hypotheses)
        source = memory if shared is None else shared.tensors
        for number, layer in enumerate(self.decoder):
            names = (f"keys_{number}", f"values_{number}")
            states, cache = layer(
                states,
                source_keys=source[names[0]],
                source_values=source[names[1]],
                source_mask=source["mask"],
                cache=None
                if caches is None
                else {"keys": caches[names[0]], "values": caches[names[1]]},
                index=index,
                allowed=allowed,
                training=training,
            )
            if cache is not None:
                new[names[0]], new[names[1]] = cache["keys"], cache["values"]
        if shared is not None:
            states = one_below_another(states)
            new = {"ancestors": ancestors, "caches": Shared(new)}
        query = states if self.query_norm is None else self.query_norm(states)
        scale = ops.cast(self.hidden_size**-0.5, query.dtype)
        context, log_weights = self.attention(
            query * scale, memory["states"], mask=memory["mask"], keys=memory["keys"]
        )
        hidden = self.output_norm(
            states + self.drop(rowwise(self.readout, context), training=training)
        )
        state = {
            "hidden": self.drop_outputs(hidden, training),
            "context": context,
            "decoder_state": query,
            "inputs": embedded,
            "attention_log_weights": log_weights,
        }
        return state, new
