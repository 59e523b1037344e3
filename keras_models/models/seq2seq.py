"""Encoder-decoder body: bidirectional recurrent encoder, attention, decoder with input feeding."""

import keras
from keras import ops

from keras_models import losses
from keras_models.layers.attention import SourceAttention
from keras_models.layers.numerics import LOG_ZERO, masked_log_softmax
from keras_models.layers.recurrent import FeedbackCell
from keras_models.models.body import Seq2Seq

BODY_OPTIONS = ("head_options", "large_vocabulary_size", "source_features", "feature_size")
_ENCODERS = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


@keras.saving.register_keras_serializable("verbatim")
class RecurrentSeq2Seq(Seq2Seq):
    """Bidirectional GRU or LSTM encoder and attentive decoder under a copy head.

        h = BiRNN(E_s x),  s_0 = tanh(W [h_forward_last; h_backward_first] + b)
        s_t = RNN([E_t y_{t-1}; o_{t-1}], s_{t-1})              o_{t-1}: input feeding (Luong et al. 2015, section 3.3)
        context_t, a_t = attention(s_t, h, coverage_t)
        o_t = tanh(W_o [s_t; context_t])

    The head turns (o_t, context_t, s_t, a_t) into a distribution over the extended vocabulary.

    Args:
        source_vocabulary_size: number of source ids.
        target_vocabulary_size: V.
        head: name of the head, see `keras_models.models.heads`.
        cell: `"gru"` or `"lstm"`.
        attention: `"additive"`, `"dot"`, `"bilinear"`, or `"none"`: the decoder then sees the source through its first state alone.
        embedding_size, hidden_size: sizes; `hidden_size` is even.
        encoder_layers: stacked bidirectional layers.
        dropout: share of units dropped on embeddings, source states and decoder outputs.
        input_feeding: whether o_{t-1} is an input of step t.
        coverage: whether coverage enters the attention score and `coverage_loss_weight` applies.
        coverage_loss_weight: weight of `losses.coverage_loss`, added to the training loss.
        selective_read: whether the source states of the token just copied are an input of the next step (Gu et al. 2016, eq. 9),
            weighted by the head's copy scores of that step; for head `joint_copy`.
        head_options, large_vocabulary_size, source_features, feature_size: see `Seq2Seq`.

    Raises:
        ValueError: sizes or options that do not fit together.

    Call arguments:
        inputs: dict with int `[batch, source_length]` `source_ids` and `source_extended_ids`, int `[batch, target_length]`
            `target_input_ids` and `target_extended_ids`, the label features that the head reads and the source features. Id 0 is
            padding.

    Returns:
        float32 `[batch, target_length]`, the log-probability of each label; train with `losses.negative_log_likelihood`.

    Example:

    >>> model = RecurrentSeq2Seq(source_vocabulary_size=20, target_vocabulary_size=10, hidden_size=8, embedding_size=4)
    >>> ids = np.array([[4, 5, 6]])
    >>> model({"source_ids": ids, "source_extended_ids": [[10, 11, 12]],
    ...        "target_input_ids": [[2, 7]], "target_extended_ids": [[7, 3]]}).shape
    TensorShape([1, 2])
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        head="pointer_generator",
        cell="gru",
        attention="additive",
        embedding_size=256,
        hidden_size=256,
        encoder_layers=1,
        dropout=0.2,
        input_feeding=True,
        coverage=True,
        coverage_loss_weight=1.0,
        selective_read=False,
        **kwargs,
    ):
        super().__init__(source_vocabulary_size, target_vocabulary_size, head, **kwargs)
        self._config = dict(
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            head=head,
            cell=cell,
            attention=attention,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            encoder_layers=encoder_layers,
            dropout=dropout,
            input_feeding=input_feeding,
            coverage=coverage,
            coverage_loss_weight=coverage_loss_weight,
            selective_read=selective_read,
            **{name: kwargs[name] for name in BODY_OPTIONS if name in kwargs},
        )
        if cell not in _ENCODERS:
            raise ValueError(f"cell must be one of {', '.join(_ENCODERS)}; got {cell!r}.")
        if hidden_size % 2:
            raise ValueError(f"hidden_size must be even, one half for each direction; got {hidden_size}.")
        if attention == "none" and self.head.needs_attention:
            raise ValueError(f"The head {head!r} copies by attention; it needs an attention other than 'none'.")
        if selective_read and not hasattr(self.head, "copy_scores"):
            raise ValueError(f"selective_read needs a head with copy scores, 'joint_copy'; got {head!r}.")
        self.hidden_size = hidden_size
        self.input_feeding = input_feeding
        self.selective_read = selective_read
        self.coverage = coverage and attention != "none"
        self.coverage_loss_weight = coverage_loss_weight
        policy = self.dtype_policy
        self.source_embedding = keras.layers.Embedding(
            source_vocabulary_size, embedding_size, dtype=policy, name="source_embedding"
        )
        self.target_embedding = keras.layers.Embedding(
            target_vocabulary_size, embedding_size, dtype=policy, name="target_embedding"
        )
        self.encoder = [
            keras.layers.Bidirectional(
                _ENCODERS[cell](hidden_size // 2, return_sequences=True, return_state=True, dtype=policy),
                dtype=policy,
                name=f"encoder_{index}",
            )
            for index in range(encoder_layers)
        ]
        self.bridges = [
            keras.layers.Dense(hidden_size, activation="tanh", dtype=policy, name=f"bridge_{index}")
            for index in range(2 if cell == "lstm" else 1)
        ]
        memory_size = 2 * (hidden_size // 2)
        feedback_size = hidden_size * bool(input_feeding) + memory_size * bool(selective_read)
        self.cell = FeedbackCell(hidden_size, cell, feedback=feedback_size > 0, dtype=policy, name="decoder_cell")
        self.attention = None
        if attention != "none":
            self.attention = SourceAttention(
                attention, units=hidden_size, coverage=self.coverage, dtype=policy, name="attention"
            )
        self.readout = keras.layers.Dense(hidden_size, activation="tanh", use_bias=False, dtype=policy, name="readout")
        self.drop = keras.layers.Dropout(dropout, dtype=policy, name="dropout")
        sizes = (None, None, embedding_size + self.features_size)
        self.source_embedding.build((None, None))
        self.target_embedding.build((None, None))
        for index, layer in enumerate(self.encoder):
            layer.build(sizes if index == 0 else (None, None, memory_size))
        for bridge in self.bridges:
            bridge.build((None, memory_size))
        self.cell.build(embedding_size, feedback_size)
        if self.attention is not None:
            self.attention.build((None, hidden_size), (None, None, memory_size))
        self.readout.build((None, hidden_size + (memory_size if self.attention is not None else 0)))
        self.build_head(hidden_size, memory_size, embedding_size, hidden_size)

    def get_config(self):
        return {**super().get_config(), **self._config}

    # Encoder.

    def encode(self, inputs, training=False, max_length=None):
        """Reads the source.

        Args:
            inputs: dict with int `[batch, source_length]` `source_ids`, `source_extended_ids` and, for decoding,
                `source_feed_ids` (target id fed after a copy of that token).
            training: whether dropout is on.
            max_length: unused; other bodies reserve memory for that many steps.

        Returns:
            memory: dict of tensors with leading axis `batch`: `states`, `mask`, `extended_ids`, `feed_ids` if given, `keys` of the
                attention, and what the head prepared.
            carry: the decoder's first carry.
        """
        source_ids = ops.cast(inputs["source_ids"], "int32")
        mask = ops.not_equal(source_ids, 0)
        states = self.drop(self.embed_source(inputs), training=training)
        for layer in self.encoder:
            states, *last = layer(states, mask=mask, training=training)
            states = self.drop(states, training=training)
        # Bidirectional returns the states of the forward direction first; a GRU has one each, an LSTM two.
        half = len(last) // 2
        first = [bridge(ops.concatenate([last[i], last[half + i]], axis=-1)) for i, bridge in enumerate(self.bridges)]
        memory = self.make_memory(inputs, states, mask)
        if self.attention is not None:
            memory["keys"] = self.attention.project_memory(memory["states"])
        zeros = ops.cast(ops.zeros_like(source_ids), "float32")
        carry = {
            "cell": first,
            "hidden": ops.zeros_like(first[0]),
            "context": ops.zeros_like(first[0]),
            "attention_log_weights": zeros,
            "coverage": zeros,  # sum of the weights of all steps so far, this one included
        }
        if self.selective_read:
            carry["copy_scores"] = zeros
        return memory, carry

    # Decoder.

    def _selective_read(self, tokens, carry, memory):
        """Weighted sum of the source states that hold the previous token: zeta, `[batch, memory_size]`.

        rho_j is proportional to exp of the last step's copy score, over the positions j that hold the token; 0 if none does.
        """
        position = ops.expand_dims(ops.maximum(tokens - self.target_vocabulary_size, 0), -1)
        ids = memory["extended_ids"]
        surface = ops.where(
            tokens < self.target_vocabulary_size, tokens, ops.take_along_axis(ids, position, axis=1)[:, 0]
        )
        matches = ops.logical_and(ops.equal(ids, ops.expand_dims(surface, -1)), memory["mask"])
        weights = ops.exp(masked_log_softmax(carry["copy_scores"], matches))
        weights = ops.expand_dims(ops.cast(weights, memory["states"].dtype), 1)
        return ops.squeeze(ops.matmul(weights, memory["states"]), 1)

    def _advance(self, projected, tokens, carry, memory):
        """One step of the recurrence: carry before, carry after.

        Args:
            projected: the embedded token as `cell.project` left it.
            tokens: int `[batch]`, the extended id of the same token, for the selective read; else None.
        """
        feedback = [carry["hidden"]] if self.input_feeding else []
        if self.selective_read:
            feedback.append(self._selective_read(tokens, carry, memory))
        feedback = ops.concatenate(feedback, axis=-1) if feedback else None
        cell = self.cell(projected, list(carry["cell"]), feedback)
        output = cell[0]
        new = dict(carry, cell=cell)
        if self.attention is None:
            new["hidden"] = self.readout(output)
        else:
            context, log_weights = self.attention(
                output,
                memory["states"],
                mask=memory["mask"],
                coverage=carry["coverage"] if self.coverage else None,
                keys=memory["keys"],
            )
            new["hidden"] = self.readout(ops.concatenate([output, context], axis=-1))
            new["context"] = context
            new["attention_log_weights"] = log_weights
            new["coverage"] = carry["coverage"] + ops.exp(log_weights)
        if self.selective_read:
            # Padding's score is never read; a finite one keeps the carry's gradient clean.
            scores = self.head.copy_scores(output, memory)
            new["copy_scores"] = ops.where(scores > LOG_ZERO, scores, 0.0)
        return new

    def call(self, inputs, training=False):
        memory, carry = self.encode(inputs, training=training)
        embedded = self.drop(self.target_embedding(inputs["target_input_ids"]), training=training)
        fed = None
        if self.selective_read:
            # The extended ids of what is fed: the labels, one step later. By a time in the carry, because `ops.scan` over two
            # tensors needs to know their length on TensorFlow.
            labels = ops.cast(inputs["target_extended_ids"], "int32")
            fed = ops.concatenate([ops.cast(inputs["target_input_ids"], "int32")[:, :1], labels[:, :-1]], axis=1)
            carry["time"] = ops.zeros_like(carry["coverage"][:, :1])

        def step(carry, projected):
            tokens = None
            if fed is not None:
                tokens = ops.take_along_axis(fed, ops.cast(carry["time"], "int32"), axis=1)[:, 0]
                carry = dict(carry, time=carry["time"] + 1)
            carry = self._advance(projected, tokens, carry, memory)
            return carry, carry

        _, steps = ops.scan(step, carry, ops.transpose(self.cell.project(embedded), (1, 0, 2)))
        steps = keras.tree.map_structure(lambda x: ops.transpose(x, (1, 0, 2)), steps)
        targets = ops.cast(inputs["target_extended_ids"], "int32")
        if self.coverage and self.coverage_loss_weight:
            attention = ops.exp(steps["attention_log_weights"])
            penalty = losses.coverage_loss(attention, steps["coverage"] - attention, ops.not_equal(targets, 0))
            self.add_loss(self.coverage_loss_weight * penalty)
        state = {
            "hidden": self.drop(steps["hidden"], training=training),
            "context": steps["context"],
            "decoder_state": steps["cell"][0],
            "inputs": embedded,
            "attention_log_weights": steps["attention_log_weights"],
        }
        return self.score_targets(state, memory, inputs, training)

    def step(self, actions, carry, memory, index=None):
        """One decoding step.

        Args:
            actions: int `[batch]`, just decoded; extended ids where the head's `max_span` is 1.
            carry: what `encode` or the last `step` returned.
            memory: what `encode` returned, with `feed_ids`.
            index: unused; other bodies count the steps.

        Returns:
            log_probs `[batch, V + max_span * source_length]`, copy_log_probs `[batch, source_length]`, attention `[batch, source_length]`,
            and the next carry.
        """
        embedded = self.target_embedding(self.feed_ids(actions, memory))
        carry = self._advance(self.cell.project(embedded), actions, carry, memory)
        state = {
            "hidden": carry["hidden"],
            "context": carry["context"],
            "decoder_state": carry["cell"][0],
            "inputs": embedded,
            "attention_log_weights": carry["attention_log_weights"],
        }
        log_probs, copy_log_probs = self.head.step_log_probs(state, memory)
        attention = carry["attention_log_weights"]
        attention = ops.zeros_like(attention) if self.attention is None else ops.exp(attention)
        return log_probs, copy_log_probs, attention, carry
