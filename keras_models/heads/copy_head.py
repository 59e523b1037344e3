"""The protocol between a body and its copy mechanism."""

import inspect

import keras
from keras import ops

from keras_models.heads.head_arguments import check_call, checked, taking_all
from keras_models.layers.numerics import attention_log_weights

# Label features beyond the target's ids that some heads learn from;
# `pipeline.features.preprocessing` makes them.
POINTERS = "target_pointers"
SPAN_STARTS = "target_span_starts"
SPAN_LENGTHS = "target_span_lengths"
LABEL_FEATURES = (POINTERS, SPAN_STARTS, SPAN_LENGTHS)


class CopyHead(keras.layers.Layer):
    """Turns decoder states into a distribution over the extended vocabulary.

    A head sees the decoder through `state` and the source through `memory`, dicts of tensors, so
    that each head works with every body and every decoder. `...` is `[batch, target_length]` in
    training and `[batch]` in a decoding step.

    state:
        hidden: `[..., hidden_size]`, the decoder's output.
        context: `[..., memory_size]`, attention's weighted sum of the source.
        decoder_state: `[..., state_size]`, the recurrent state that made the query.
        inputs: `[..., embedding_size]`, the embedded previous token.
        attention_log_weights: `[..., source_length]`, log-weights, `LOG_ZERO` at padding.
    memory:
        states: `[batch, source_length, memory_size]`, the encoded source.
        extended_ids: int `[batch, source_length]`, the extended id of each source token.
        mask: bool `[batch, source_length]`, false at padding.
        places: `numerics.first_places` of the extended ids, if copies are added up; heads compute
            it if it is missing.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`, if the head needs them: see
            `LexiconHead`.
        shortlist: in decoding, the `Shortlist` of words that the softmax is restricted to; all ids
            are then of its space, and V is its size.
        candidates: `Candidates`, in training only: the words that the softmax is normalised over,
            see `VocabularySoftmax`.
        and the tensors that `prepare` returned.

    Class attributes, for bodies, decoders and recipes:
        copies: whether ids beyond the vocabulary can be output.
        merges: whether a word's copies are added to its vocabulary mass. If not, each source
            position is an outcome of its own: id V + j is position j, whatever it holds.
        needs_attention: whether `attention_log_weights` are read, which a body without attention
            does not have.
        needs_lexicon: whether translations of the source tokens are read, `lexicon_ids` and
            `lexicon_probabilities` of the memory.
        scores_copies: whether it scores the source's positions itself, so that `copy_log_weights`
            are not the attention's.

    `vocabulary` is its `VocabularySoftmax`, or None for a head that only copies. `max_span`, an
    attribute of each head, is the longest copy that is one decision; a step of a head with max_span
    > 1 is over the actions of `keras_models.decoding.actions`.

    A head of one's own defines `target_log_prob` and `step_log_probs`. `call`, by which a model of
    one's own uses a head, has the arguments of `PointerGenerator`; a head that reads other tensors
    defines its own.

    All heads can be called alike: by name, each takes every argument below, and ignores those that
    it does not read. So another head is one changed line.

    Call arguments:
        hidden, context, inputs, decoder_state: see `state`; `decoder_state` is `hidden` by default.
        attention: `[batch, target_length, source_length]`, attention probabilities.
        memory_states: `[batch, source_length, memory_size]`, the encoded source.
        source_extended_ids: int `[batch, source_length]`.
        mask: bool `[batch, source_length]`, false at padding, which is never copied. Without it
            heads that read `memory_states` take the mask that Keras attached to them, and the
            others believe `attention`.
        targets: int `[batch, target_length]`; None asks for whole distributions.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`; the lexicon heads alone
            need them.
        span_starts, span_lengths: int `[batch, target_length]`; see `SpanCopy`.

    Without targets a head that cannot copy returns `[batch, target_length, V]`, one with `max_span`
    `[batch, target_length, V + max_span * source_length]`, the others `[batch, target_length, V +
    source_length]`.

    Args:
        vocabulary_size: V, the number of target vocabulary ids.
    """

    copies = True
    merges = True
    needs_attention = False
    needs_lexicon = False
    scores_copies = False
    vocabulary = None
    max_span = 1
    # Whether its `call` takes what other heads read.
    _takes_all = True

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # A head's own definitions; inherited ones are already checked.
        for name in ("target_log_prob", "step_log_probs"):
            if name in vars(cls):
                setattr(cls, name, checked(vars(cls)[name]))
        if cls._takes_all and "call" in vars(cls):
            cls.call = taking_all(cls.call)

    def __call__(self, *arguments, **keywords):
        """Checks the arguments of `call` before anything is built for them."""
        signature = inspect.signature(self.call)
        # Keras adds `training` wherever a model is called; it refuses other unknown arguments
        # itself.
        known = {name: value for name, value in keywords.items() if name in signature.parameters}
        try:
            given = signature.bind_partial(*arguments, **known).arguments
        except TypeError:
            # Too many, or of an unknown name: `call` says so.
            return super().__call__(*arguments, **keywords)
        self.check_arguments(given)
        return super().__call__(*arguments, **keywords)

    @taking_all
    def call(
        self,
        hidden,
        context,
        attention,
        source_extended_ids,
        targets=None,
        inputs=None,
        decoder_state=None,
        mask=None,
    ):
        """Returns the log-probabilities of the targets, or without targets all of each step."""
        state = {
            "hidden": hidden,
            "context": context,
            "attention_log_weights": attention_log_weights(attention, mask),
        }
        if inputs is not None:
            state["inputs"] = inputs
        if decoder_state is not None:
            state["decoder_state"] = decoder_state
        memory = {"extended_ids": source_extended_ids}
        if targets is not None:
            return self.target_log_prob(state, memory, targets)
        return self.fold_time(state, memory)

    def compute_mask(self, *arguments, **keywords):
        """Returns None: the loss masks padding by the labels."""
        return None

    def compute_output_spec(self, *arguments, **keywords):
        """Log-probabilities are float32, whatever the policy computes in."""
        spec = super().compute_output_spec(*arguments, **keywords)
        return keras.KerasTensor(spec.shape, "float32") if hasattr(spec, "shape") else spec

    def check_arguments(self, arguments):
        """Raises ValueError if the arguments of `call`, a dict, do not fit together."""
        check_call(self, arguments)

    def build_for(self, **shapes):
        """Builds the head for the shapes of its inputs from a body.

        Args:
            **shapes: `hidden_shape`, `context_shape`, `inputs_shape`, `decoder_state_shape` and
                `memory_states_shape`; the head takes those that its `build` names.
        """
        names = inspect.signature(self.build).parameters
        self.build(**{name: shape for name, shape in shapes.items() if name in names})

    def tie(self, embedding):
        """Makes an embedding the weights of the softmax over words; before the head is built.

        Args:
            embedding: a built `keras.layers.Embedding` of V ids.

        Raises:
            ValueError: the head has no softmax over words.
        """
        if self.vocabulary is None:
            raise ValueError(
                f"{type(self).__name__} has no softmax over words that could be tied to embeddings."
            )
        self.vocabulary.tie(embedding)

    def prepare(self, states):
        """Returns tensors computed from the source alone, to be added to `memory`."""
        return {}

    def is_choice(self, targets, labels):
        """Where the head chooses something: bool `[batch, target_length]`, false at padding.

        Args:
            targets, labels: those of `target_log_prob`.
        """
        return ops.not_equal(targets, 0)

    def copy_log_weights(self, state, memory):
        """Where it would copy from, a distribution over the source's positions.

        Guided alignment teaches it.

        Args:
            state: tensors `[batch, target_length, ...]`.
            memory: tensors `[batch, source_length, ...]`.

        Returns:
            float32 `[batch, target_length, source_length]`, log-probabilities, `LOG_ZERO` at
            padding.
        """
        return state["attention_log_weights"]

    def target_log_prob(
        self, state, memory, targets, labels=None, training=False, label_smoothing=0.0
    ):
        """Log-probability of known targets, for training.

        Args:
            state: tensors `[batch, target_length, ...]`.
            memory: tensors `[batch, source_length, ...]`.
            targets: int `[batch, target_length]`, extended ids.
            labels: dict of int `[batch, target_length]`, those of `LABEL_FEATURES` that the data
                have; or None.
            training: whether noise is on, for heads that have some.
            label_smoothing: epsilon, from 0 to 1; see below.

        Returns:
            float32 `[batch, target_length]`. No tensor `[batch, target_length, V + source_length]`
            is built. With label smoothing it is

                (1 - epsilon) log p(target) + epsilon / N sum_k log p(k)

            over the N outcomes that the head can say here: the V words if it generates any, and
            what it can copy from the source's tokens, without padding. A head that merges counts
            each word once. The negative is the cross-entropy with a target distribution that has
            epsilon spread evenly over all outcomes (Szegedy et al. 2016). A copied outcome with a
            probability below 1.2e-38 counts as if it had that much, and so does the sum of all
            that is generated: a gate that is shut gives no infinite loss.
        """
        raise NotImplementedError(f"{type(self).__name__} must define target_log_prob.")

    def step_log_probs(self, state, memory):
        """The whole distribution of one decoding step.

        Args:
            state: tensors `[batch, ...]`.
            memory: tensors `[batch, source_length, ...]`.

        Returns:
            log_probs: float32 `[batch, V + max_span * source_length]` over extended ids (actions,
                if `max_span` > 1); sums to 1 after exp.
            copy_log_probs: float32 `[batch, source_length]`, log-probability that this step copies
                position j; from it the decoder tells where each output token came from.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step_log_probs.")

    def fold_time(self, state, memory):
        """Returns the distributions of all target steps: time is folded into the batch.

        Args:
            state: tensors `[batch, target_length, ...]`.
            memory: tensors `[batch, source_length, ...]`, or None.

        Returns:
            float32 `[batch, target_length, size]`, `step_log_probs` of each step.
        """
        batch, length = ops.shape(next(iter(state.values())))[:2]
        flat = {
            key: ops.reshape(value, (batch * length, ops.shape(value)[-1]))
            for key, value in state.items()
        }
        repeated = {
            key: None if value is None else ops.repeat(value, length, axis=0)
            for key, value in memory.items()
        }
        log_probs, _ = self.step_log_probs(flat, repeated)
        return ops.reshape(log_probs, (batch, length, ops.shape(log_probs)[-1]))

    def get_config(self):
        config = super().get_config()
        config["vocabulary_size"] = self.vocabulary_size
        return config
