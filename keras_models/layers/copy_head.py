"""The protocol of a copy mechanism: what a body asks its head."""

import keras


class CopyHead(keras.layers.Layer):
    """Turns decoder states into a distribution over the extended vocabulary.

    A head sees the decoder through `state` and the source through `memory`, dicts of tensors, so that each head works
    with every body and every decoder. `...` is `[batch, target_length]` in training and `[batch]` in a decoding step.

    state:
        hidden: `[..., hidden_size]`, the decoder's output.
        context: `[..., memory_size]`, attention's weighted sum of the source.
        decoder_state: `[..., state_size]`, the recurrent state that made the query.
        inputs: `[..., embedding_size]`, the embedded previous token.
        attention_log_weights: `[..., source_length]`, log-weights, `LOG_ZERO` at padding.
    memory:
        extended_ids: int `[batch, source_length]`, the extended id of each source token.
        mask: bool `[batch, source_length]`, false at padding.

    Args:
        vocabulary_size: V, the number of target vocabulary ids.
    """

    copies = True  # whether ids beyond the vocabulary can be output

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size

    def target_log_prob(self, state, memory, targets):
        """Log-probability of known targets, for training.

        Args:
            state: tensors `[batch, target_length, ...]`.
            memory: tensors `[batch, source_length, ...]`.
            targets: int `[batch, target_length]`, extended ids.

        Returns:
            float32 `[batch, target_length]`. No tensor `[batch, target_length, V + source_length]` is built.
        """
        raise NotImplementedError(f"{type(self).__name__} must define target_log_prob.")

    def step_log_probs(self, state, memory):
        """The whole distribution of one decoding step.

        Args:
            state: tensors `[batch, ...]`.
            memory: tensors `[batch, source_length, ...]`.

        Returns:
            log_probs: float32 `[batch, V + source_length]` over extended ids; sums to 1 after exp.
            copy_log_probs: float32 `[batch, source_length]`, log-probability that this step copies position j;
                from it the decoder tells where each output token came from.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step_log_probs.")

    def get_config(self):
        config = super().get_config()
        config["vocabulary_size"] = self.vocabulary_size
        return config
