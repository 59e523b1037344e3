"""Encoder-decoder body: bidirectional recurrent encoder, attention, decoder with input feeding."""

import keras
from keras import ops

from keras_models import losses
from keras_models.layers.attention import SourceAttention
from keras_models.layers.recurrent import FeedbackCell
from keras_models.models.heads import make_head

_ENCODERS = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


@keras.saving.register_keras_serializable("verbatim")
class RecurrentSeq2Seq(keras.Model):
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
        attention: `"additive"`, `"dot"` or `"bilinear"`.
        embedding_size, hidden_size: sizes; `hidden_size` is even.
        encoder_layers: stacked bidirectional layers.
        dropout: share of units dropped on embeddings, source states and decoder outputs.
        input_feeding: whether o_{t-1} is an input of step t.
        coverage: whether coverage enters the attention score and `coverage_loss_weight` applies.
        coverage_loss_weight: weight of `losses.coverage_loss`, added to the training loss.

    Call arguments:
        inputs: dict with int `[batch, source_length]` `source_ids` and `source_extended_ids`, int `[batch, target_length]`
            `target_input_ids` and `target_extended_ids`. Id 0 is padding.

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
        **kwargs,
    ):
        super().__init__(**kwargs)
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
        )
        if cell not in _ENCODERS:
            raise ValueError(f"cell must be one of {', '.join(_ENCODERS)}; got {cell!r}.")
        if hidden_size % 2:
            raise ValueError(f"hidden_size must be even, one half for each direction; got {hidden_size}.")
        self.target_vocabulary_size = target_vocabulary_size
        self.hidden_size = hidden_size
        self.input_feeding = input_feeding
        self.coverage = coverage
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
        self.cell = FeedbackCell(hidden_size, cell, feedback=input_feeding, dtype=policy, name="decoder_cell")
        self.attention = SourceAttention(
            attention, units=hidden_size, coverage=coverage, dtype=policy, name="attention"
        )
        self.readout = keras.layers.Dense(hidden_size, activation="tanh", use_bias=False, dtype=policy, name="readout")
        self.head = make_head(head, target_vocabulary_size, dtype=policy)
        self.drop = keras.layers.Dropout(dropout, dtype=policy, name="dropout")
        sizes = (None, None, embedding_size)
        memory_size = 2 * (hidden_size // 2)
        self.source_embedding.build((None, None))
        self.target_embedding.build((None, None))
        for index, layer in enumerate(self.encoder):
            layer.build(sizes if index == 0 else (None, None, memory_size))
        for bridge in self.bridges:
            bridge.build((None, memory_size))
        self.cell.build(embedding_size, hidden_size)
        self.attention.build((None, hidden_size), (None, None, memory_size))
        self.readout.build((None, hidden_size + memory_size))
        shapes = {"hidden_shape": (None, None, hidden_size)}
        if head != "softmax":
            shapes.update(
                context_shape=(None, None, memory_size),
                inputs_shape=sizes,
                decoder_state_shape=(None, None, hidden_size),
            )
        self.head.build(**shapes)
        self.built = True

    def build(self, input_shape=None):
        """Nothing: every size is known in the constructor."""

    def get_config(self):
        return {**super().get_config(), **self._config}

    # Encoder.

    def encode(self, inputs, training=False):
        """Reads the source.

        Args:
            inputs: dict with int `[batch, source_length]` `source_ids`, `source_extended_ids` and, for decoding,
                `source_feed_ids` (target id fed after a copy of that token).
            training: whether dropout is on.

        Returns:
            memory: dict of tensors with leading axis `batch`: `states`, `keys`, `mask`, `extended_ids`, and `feed_ids` if given.
            carry: the decoder's first carry.
        """
        source_ids = ops.cast(inputs["source_ids"], "int32")
        mask = ops.not_equal(source_ids, 0)
        states = self.drop(self.source_embedding(source_ids), training=training)
        for layer in self.encoder:
            states, *last = layer(states, mask=mask, training=training)
            states = self.drop(states, training=training)
        # Bidirectional returns the states of the forward direction first; a GRU has one each, an LSTM two.
        half = len(last) // 2
        first = [bridge(ops.concatenate([last[i], last[half + i]], axis=-1)) for i, bridge in enumerate(self.bridges)]
        states = ops.where(ops.expand_dims(mask, -1), states, 0)
        memory = {
            "states": states,
            "keys": self.attention.project_memory(states),
            "mask": mask,
            "extended_ids": ops.cast(inputs["source_extended_ids"], "int32"),
        }
        if "source_feed_ids" in inputs:
            memory["feed_ids"] = ops.cast(inputs["source_feed_ids"], "int32")
        zeros = ops.cast(ops.zeros_like(source_ids), "float32")
        carry = {
            "cell": first,
            "hidden": ops.zeros_like(first[0]),
            "context": ops.zeros_like(first[0]),
            "attention_log_weights": zeros,
            "coverage": zeros,  # sum of the weights of all steps so far, this one included
        }
        return memory, carry

    # Decoder.

    def _advance(self, projected, carry, memory):
        """One step of the recurrence, from the embedded token as `cell.project` left it: carry before, carry after."""
        cell = self.cell(projected, list(carry["cell"]), carry["hidden"] if self.input_feeding else None)
        output = cell[0]
        context, log_weights = self.attention(
            output,
            memory["states"],
            mask=memory["mask"],
            coverage=carry["coverage"] if self.coverage else None,
            keys=memory["keys"],
        )
        hidden = self.readout(ops.concatenate([output, context], axis=-1))
        return {
            "cell": cell,
            "hidden": hidden,
            "context": context,
            "attention_log_weights": log_weights,
            "coverage": carry["coverage"] + ops.exp(log_weights),
        }

    def call(self, inputs, training=False):
        memory, carry = self.encode(inputs, training=training)
        embedded = self.drop(self.target_embedding(inputs["target_input_ids"]), training=training)

        def step(carry, step_input):
            carry = self._advance(step_input, carry, memory)
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
        return self.head.target_log_prob(state, memory, targets)

    def step(self, tokens, carry, memory):
        """One decoding step.

        Args:
            tokens: int `[batch]`, extended ids just decoded.
            carry: what `encode` or the last `step` returned.
            memory: what `encode` returned, with `feed_ids`.

        Returns:
            log_probs `[batch, V + source_length]`, copy_log_probs `[batch, source_length]`, attention `[batch, source_length]`,
            and the next carry.
        """
        position = ops.expand_dims(ops.maximum(tokens - self.target_vocabulary_size, 0), -1)
        copied = ops.squeeze(ops.take_along_axis(memory["feed_ids"], position, axis=1), -1)
        embedded = self.target_embedding(ops.where(tokens < self.target_vocabulary_size, tokens, copied))
        carry = self._advance(self.cell.project(embedded), carry, memory)
        state = {
            "hidden": carry["hidden"],
            "context": carry["context"],
            "decoder_state": carry["cell"][0],
            "inputs": embedded,
            "attention_log_weights": carry["attention_log_weights"],
        }
        log_probs, copy_log_probs = self.head.step_log_probs(state, memory)
        return log_probs, copy_log_probs, ops.exp(carry["attention_log_weights"]), carry
