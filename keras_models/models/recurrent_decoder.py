"""Recurrent decoder of a body: attention, input feeding, selective read, decoding steps."""

import keras
from keras import ops

from keras_models.decoding.actions import first_tokens
from keras_models.layers.activations import maxout
from keras_models.layers.gathering import take_along
from keras_models.layers.loop_kernel import LoopKernel
from keras_models.layers.numerics import LOG_ZERO, masked_log_softmax, rowwise
from keras_models.layers.panels import Dense
from keras_models.layers.recurrent import FeedbackCell
from keras_models.layers.source_attention import SourceAttention
from keras_models.models.seq2seq import Seq2Seq

#: How a decoder's step reads the source: after its state is made, or before.
DECODERS = ("luong", "bahdanau")


class RecurrentDecoder(Seq2Seq):
    """Base of the bodies whose decoder is recurrent; a subclass adds an encoder.

    Its constructor calls `make_decoder`, then `build_decoder`; its `encode` calls `first_carry`.
    """

    recurrent_dropout = 0.0

    def make_decoder(
        self,
        hidden_size,
        cell,
        attention,
        coverage,
        input_feeding,
        selective_read,
        layers=1,
        decoder="luong",
    ):
        """Makes the decoder's layers. See `RecurrentSeq2Seq` for the arguments.

        Raises:
            ValueError: an unknown decoder, or one without its attention.
        """
        policy = self.dtype_policy
        if decoder not in DECODERS:
            raise ValueError(f"decoder must be one of {', '.join(DECODERS)}; got {decoder!r}.")
        self.reads_first = decoder == "bahdanau"
        if self.reads_first and attention == "none":
            raise ValueError(
                "decoder 'bahdanau' reads the source before each step; it needs an attention other "
                "than 'none'."
            )
        # What is fed back is the output, or the source that the step reads.
        self.input_feeding = input_feeding and not self.reads_first
        self.selective_read = selective_read
        self.state_seed = keras.random.SeedGenerator() if self.recurrent_dropout else None
        self.coverage = coverage and attention != "none"
        self.bridges = [
            keras.layers.Dense(hidden_size, activation="tanh", dtype=policy, name=f"bridge_{index}")
            for index in range((2 if cell == "lstm" else 1) * layers)
        ]
        self.feedback_size = hidden_size * (
            bool(self.input_feeding) + bool(selective_read) + self.reads_first
        )
        self.cell = FeedbackCell(
            hidden_size, cell, feedback=self.feedback_size > 0, dtype=policy, name="decoder_cell"
        )
        self.upper_cells = [
            FeedbackCell(
                hidden_size, cell, feedback=False, dtype=policy, name=f"decoder_cell_{index}"
            )
            for index in range(1, layers)
        ]
        self.attention = None
        if attention != "none":
            self.attention = SourceAttention(
                attention, units=hidden_size, coverage=self.coverage, dtype=policy, name="attention"
            )
        pieces = 2 if self.reads_first else 1
        size = pieces * hidden_size
        self.readout = Dense(size, use_bias=False, dtype=policy, name="readout")
        self.word_readout = None
        if self.reads_first:
            self.word_readout = Dense(size, use_bias=False, dtype=policy, name="word_readout")

    def build_decoder(self, embedding_size, memory_size):
        """Builds the decoder's layers for the sizes of a target word and a source state."""
        for bridge in self.bridges:
            bridge.build((None, memory_size))
        self.cell.build(embedding_size, self.feedback_size)
        for cell in self.upper_cells:
            cell.build(self.hidden_size)
        if self.word_readout is not None:
            self.word_readout.build((None, embedding_size))
        if self.attention is not None:
            self.attention.build((None, self.hidden_size), (None, None, memory_size))
        read = memory_size if self.attention is not None else 0
        self.readout.build((None, self.hidden_size + read))

    def first_states(self, last):
        """The first states of the decoder's layers, of a bidirectional layer's last ones.

        An LSTM's memory is left out where the decoder has none.
        """
        # The states of the forward direction come first; a GRU has one each, an LSTM two.
        half = len(last) // 2
        last = [ops.concatenate([last[i], last[half + i]], axis=-1) for i in range(half)]
        last = last[: self.states_per_layer] * (1 + len(self.upper_cells))
        return [bridge(state) for bridge, state in zip(self.bridges, last, strict=True)]

    @property
    def states_per_layer(self):
        """How many states a layer of the decoder has."""
        return len(self.bridges) // (1 + len(self.upper_cells))

    def first_carry(self, first, source_ids):
        """Returns the carry of an output that begins, with the first states of the layers."""
        number = self.states_per_layer
        zeros = ops.cast(ops.zeros_like(source_ids), "float32")
        carry = {
            "cell": first[:number],
            "hidden": ops.zeros_like(first[0]),
            "context": ops.zeros_like(first[0]),
            "attention_log_weights": zeros,
            # The sum of the weights of all steps so far, this one included.
            "coverage": zeros,
        }
        if self.upper_cells:
            carry["upper"] = first[number:]
            # The top layer's output, which is more than its state where it adds its input.
            carry["output"] = first[-number]
        if self.selective_read:
            carry["copy_scores"] = zeros
        return carry

    def _selective_read(self, tokens, carry, memory):
        """Weighted sum zeta of the states that hold the previous token, `[batch, memory_size]`.

        rho_j is proportional to exp of the last step's copy score, over the positions j that hold
        the token; 0 if none does.
        """
        size, ids = self.number_of_words(memory), memory["extended_ids"]
        position = ops.expand_dims(ops.maximum(tokens - size, 0), -1)
        surface = ops.where(tokens < size, tokens, take_along(ids, position)[:, 0])
        matches = ops.logical_and(ops.equal(ids, ops.expand_dims(surface, -1)), memory["mask"])
        weights = ops.exp(masked_log_softmax(carry["copy_scores"], matches))
        weights = ops.expand_dims(ops.cast(weights, memory["states"].dtype), 1)
        return ops.squeeze(ops.matmul(weights, memory["states"]), 1)

    def _loop_kernels(self, training, carry):
        """The kernels that the steps of a training multiply by, as `_advance` takes them.

        With them is the mask of `recurrent_dropout`. There are none where nothing is trained.
        """
        if not training:
            return {}
        kernels = {
            "cell": self.cell.loop_kernels(),
            "readout": LoopKernel(self.readout.kernel, self.readout.compute_dtype),
        }
        if self.attention is not None:
            kernels["query"] = self.attention.loop_kernel()
        kernels["upper"] = [cell.loop_kernels() for cell in self.upper_cells]
        if self.recurrent_dropout:
            ones = ops.ones_like(carry["cell"][0])
            kernels["state_masks"] = [
                keras.random.dropout(ones, self.recurrent_dropout, seed=self.state_seed)
                for _ in range(1 + len(self.upper_cells))
            ]
        return kernels

    def project_words(self, embedded):
        """What a step reads of its word, for all words at once: `[..., size]`.

        It is the cell's `project`, and where words are part of the readout, their part.
        """
        projected = self.cell.project(embedded)
        if self.word_readout is None:
            return projected
        return ops.concatenate([projected, rowwise(self.word_readout, embedded)], axis=-1)

    def _read_out(self, parts, word, kernel):
        """The decoder's output, by the readout layer's own kernel or by its `LoopKernel`."""
        inputs = parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=-1)
        outputs = self.readout(inputs) if kernel is None else kernel.multiply(inputs)
        return ops.tanh(outputs) if word is None else maxout(outputs + word)

    def _attend(self, query, carry, memory, kernels):
        """Reads the source: what the carry becomes by it."""
        context, log_weights = self.attention(
            query,
            memory["states"],
            mask=memory["mask"],
            coverage=carry["coverage"] if self.coverage else None,
            keys=memory["keys"],
            query_kernel=kernels.get("query"),
        )
        return {
            "context": context,
            "attention_log_weights": log_weights,
            "coverage": carry["coverage"] + ops.exp(log_weights),
        }

    def _run_upper_cells(self, output, carry, kernels):
        """One step of the layers above the first.

        From the third layer on, each adds its input to its output (Wu et al. 2016, section 3.1).

        Returns:
            The top layer's output, and the states of all of them.
        """
        number, states = self.states_per_layer, []
        masks = kernels.get("state_masks", [None] * (1 + len(self.upper_cells)))[1:]
        loops = kernels.get("upper", [None] * len(self.upper_cells))
        for index, cell in enumerate(self.upper_cells):
            before = list(carry["upper"][index * number : (index + 1) * number])
            new = cell(cell.project(output), before, kernels=loops[index], state_mask=masks[index])
            output = new[0] + output if index else new[0]
            states += new
        return output, states

    def _advance(self, projected, tokens, carry, memory, kernels=None):
        """One step of the recurrence: carry before, carry after.

        Args:
            projected: the embedded token as `project_words` left it.
            tokens: int `[batch]`, the extended id of the same token, for the selective read; else
                None.
            kernels: what `_loop_kernels` returned outside of the loop, or None.
        """
        kernels = kernels or {}
        word, new = None, dict(carry)
        feedback = [carry["hidden"]] if self.input_feeding else []
        if self.reads_first:
            width = projected.shape[-1] - self.readout.units
            projected, word = projected[..., :width], projected[..., width:]
            new.update(self._attend(self._decoder_output(carry), carry, memory, kernels))
            feedback.append(new["context"])
        if self.selective_read:
            feedback.append(self._selective_read(tokens, carry, memory))
        feedback = ops.concatenate(feedback, axis=-1) if feedback else None
        cell = self.cell(
            projected,
            list(carry["cell"]),
            feedback,
            kernels=kernels.get("cell"),
            state_mask=kernels.get("state_masks", [None])[0],
        )
        output = cell[0]
        new["cell"] = cell
        if self.upper_cells:
            output, new["upper"] = self._run_upper_cells(output, carry, kernels)
            new["output"] = output
        parts = [output]
        if self.attention is not None:
            if not self.reads_first:
                new.update(self._attend(output, carry, memory, kernels))
            parts.append(new["context"])
        new["hidden"] = self._read_out(parts, word, kernels.get("readout"))
        if self.selective_read:
            # Padding's score is never read; a finite one keeps the carry's gradient clean.
            scores = self.head.copy_scores(output, memory)
            new["copy_scores"] = ops.where(scores > LOG_ZERO, scores, 0.0)
        return new

    @staticmethod
    def _gold_actions(inputs):
        """The extended ids that the target feeds, int32 `[batch, target_length]`.

        They are the labels, one step later.
        """
        labels = ops.cast(inputs["target_extended_ids"], "int32")
        return ops.concatenate(
            [ops.cast(inputs["target_input_ids"], "int32")[:, :1], labels[:, :-1]], axis=1
        )

    @staticmethod
    def _decoder_output(carry):
        """The top layer's output, `[..., hidden_size]`."""
        return carry["output"] if "output" in carry else carry["cell"][0]

    def _head_state(self, carry, embedded):
        """The inputs of the head for one step."""
        return {
            "hidden": carry["hidden"],
            "context": carry["context"],
            "decoder_state": self._decoder_output(carry),
            "inputs": embedded,
            "attention_log_weights": carry["attention_log_weights"],
        }

    def scan_gold(self, inputs, embedded, memory, carry, training):
        """Runs the recurrence that feeds the gold tokens.

        Args:
            inputs, training: those of the model's `call`.
            embedded: `[batch, target_length, embedding_size]`, the gold tokens.
            memory, carry: what `encode` returned.

        Returns:
            What each step carried, tensors `[time, batch, ...]`.
        """
        fed = None
        if self.selective_read:
            # With a time in the carry, because `ops.scan` over two tensors must know their length
            # on TensorFlow.
            fed = self._gold_actions(inputs)
            carry = {**carry, "time": ops.zeros_like(carry["coverage"][:, :1])}
        kernels = self._loop_kernels(training, carry)

        def step(carry, projected):
            tokens = None
            if fed is not None:
                tokens = take_along(fed, carry["time"])[:, 0]
                carry = dict(carry, time=carry["time"] + 1)
            carry = self._advance(projected, tokens, carry, memory, kernels)
            return carry, carry

        _, steps = ops.scan(step, carry, ops.transpose(self.project_words(embedded), (1, 0, 2)))
        return steps

    def scan_sampled(self, inputs, memory, carry):
        """Runs the recurrence that feeds some of its own predictions.

        A predicted span of several tokens feeds its first.

        Returns:
            The carry of each step, tensors `[time, batch, ...]`; `inputs` is what was fed.
        """
        gold_ids = ops.cast(inputs["target_input_ids"], "int32")
        gold_actions = self._gold_actions(inputs)
        gold = ops.cast(self.choose_gold(inputs), "int32")
        size, length = self.target_vocabulary_size, ops.shape(memory["extended_ids"])[1]
        kernels = self._loop_kernels(True, carry)
        # Dropout's mask is drawn outside: JAX cannot draw random numbers inside a scan.
        kept = self.drop_words(ops.ones_like(self.embed_target(gold_ids)), training=True)
        kept = self.drop_embedded(kept, training=True)
        zeros = ops.zeros_like(gold[:, :1])
        # `ops.scan` on TensorFlow returns only the carry.
        carry = {**carry, "time": zeros, "own": zeros, "inputs": ops.zeros_like(kept[:, 0])}

        def step(carry, kept):
            def now(sequence):
                return take_along(sequence, carry["time"])[:, 0]

            own, is_gold = carry["own"][:, 0], ops.equal(now(gold), 1)
            ids = ops.where(is_gold, now(gold_ids), self.feed_ids(own, memory))
            tokens = ops.where(is_gold, now(gold_actions), first_tokens(own, size, length))
            embedded = self.embed_target(ids) * kept
            new = self._advance(self.project_words(embedded), tokens, carry, memory, kernels)
            own = self.likeliest(self._head_state(new, embedded), memory)
            new.update(time=carry["time"] + 1, own=ops.expand_dims(own, -1), inputs=embedded)
            return new, new

        _, steps = ops.scan(step, carry, ops.transpose(kept, (1, 0, 2)))
        return steps

    def decoder_kernels(self):
        upper = [[cell.kernel, *cell.step_kernels()] for cell in self.upper_cells]
        kernels = [self.readout.kernel, *self.cell.step_kernels(), *sum(upper, [])]
        return kernels if self.attention is None else kernels + self.attention.step_kernels()

    def decoding_tables(self, shortlist=False, few_rows=False):
        """Those of `Seq2Seq`, and `projections` `[V, size]`, what `project_words` gives for words.

        A step looks them up.
        """
        words = ops.arange(self.target_vocabulary_size, dtype="int32")
        return {
            **super().decoding_tables(shortlist, few_rows),
            "projections": self.project_words(self.embed_target(words)),
        }

    def step(self, actions, carry, memory, index=None):
        """One decoding step.

        Args:
            actions: int `[batch]`, just decoded; extended ids where the head's `max_span` is 1.
            carry: what `encode` or the last `step` returned.
            memory: what `encode` returned, with `feed_ids`; also `projections`, if
                `decoding_tables` are used.
            index: unused; other bodies count the steps.

        Returns:
            log_probs `[batch, V + max_span * source_length]`, copy_log_probs `[batch,
            source_length]`, attention `[batch, source_length]`, and the next carry.
        """
        words = self.feed_ids(actions, memory)
        embedded = self.embed_target(words)
        if "projections" in memory:
            projected = ops.take(memory["projections"], words, axis=0)
        else:
            projected = self.project_words(embedded)
        carry = self._advance(projected, actions, carry, memory)
        log_probs, copy_log_probs = self.head.step_log_probs(
            self._head_state(carry, embedded), memory
        )
        attention = carry["attention_log_weights"]
        attention = ops.zeros_like(attention) if self.attention is None else ops.exp(attention)
        return log_probs, copy_log_probs, attention, carry
