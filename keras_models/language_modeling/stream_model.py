"""A language model that reads a stream, and its perplexity there."""

import math

import keras
import numpy as np
from keras import ops

from keras_models.heads.pointer_sentinel_window import NO_WORD
from keras_models.language_modeling.streams import START_ID, rows_of


class StreamModel(keras.Model):
    """A language model that keeps its carry from one call to the next, in variables.

    Keras' compiled steps (`train_on_batch`, `predict_on_batch`) can then walk along a stream, on
    any backend.

    Args:
        model: a `LanguageModel`.
        batch_size: number of rows.
        stride: by how many words a call advances the carry; None means by all words of the call.
            With a stride, each call reads the words of the pointer's window itself, so the window
            is empty at its start.

    Call arguments:
        inputs: dict of int `inputs` `[batch, time]` and `targets` `[batch, n]`, the words after the
            last n steps.

    Returns:
        float32 `[batch, n]`, log-probabilities of the targets.
    """

    def __init__(self, model, batch_size, stride=None, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.batch_size = batch_size
        self.stride = stride
        self._template = model.initial_carry(batch_size)
        if stride is not None:
            self._template.pop("window", None)
        self.carry_variables = [
            self.add_weight(
                shape=tuple(value.shape),
                initializer=keras.initializers.Constant(NO_WORD if _is_int(value) else 0),
                dtype=keras.backend.standardize_dtype(value.dtype),
                trainable=False,
                autocast=False,
                name=f"carry_{index}",
            )
            for index, value in enumerate(keras.tree.flatten(self._template))
        ]
        self.built = True

    def build(self, input_shape=None):
        """Nothing: the model is built."""

    def reset(self):
        """Resets the carry, so that the next call begins a new text."""
        for variable in self.carry_variables:
            variable.assign(ops.full_like(variable.value, NO_WORD if _is_int(variable) else 0))

    def call(self, inputs, training=False):
        values = [variable.value for variable in self.carry_variables]
        carry = keras.tree.pack_sequence_as(self._template, values)
        lengths = ops.shape(inputs["inputs"])[1]
        if self.stride is not None:
            if self.model.points:
                carry["window"] = self.model.head.initial_window(
                    self.batch_size, self.model.hidden_size
                )
            # A row shorter than the stride is its own last update: nothing continues from it.
            lengths = (
                ops.minimum(self.stride, lengths)
                if not isinstance(lengths, int)
                else min(self.stride, lengths)
            )
        log_prob, carry = self.model(
            inputs["inputs"],
            carry,
            targets=inputs["targets"],
            last=ops.shape(inputs["targets"])[1],
            lengths=lengths,
            training=training,
        )
        if self.stride is not None:
            carry.pop("window", None)
        for variable, value in zip(self.carry_variables, keras.tree.flatten(carry)):
            variable.assign(ops.stop_gradient(value))
        return log_prob

    def score(self, ids, chunk=None, start_id=START_ID):
        """Returns the log-probability of each word of a stream.

        Reads the stream from its beginning, in chunks. LSTM states and the pointer's window carry
        over from one chunk to the next.

        Args:
            ids: int `[words]`.
            chunk: number of words of a row in one chunk; the model's window by default. It affects
                memory and speed, but not the values.
            start_id: the word before the first.

        Returns:
            float32 `[words]`. The values are exact with `batch_size=1`. With more rows, each row
            begins without the text before it, which lowers the probabilities slightly.
        """
        chunk = chunk or self.model.window
        inputs, targets = rows_of(ids, self.batch_size, start_id)
        padding = [
            (0, 0),
            (0, -inputs.shape[1] % chunk),
        ]  # one shape for all chunks; nothing is read after it
        inputs, padded = np.pad(inputs, padding), np.pad(targets, padding)
        self.reset()
        parts = []
        for begin in range(0, inputs.shape[1], chunk):
            part = slice(begin, begin + chunk)
            parts.append(
                self.predict_on_batch({"inputs": inputs[:, part], "targets": padded[:, part]})
            )
        return np.concatenate(parts, axis=1)[:, : targets.shape[1]].reshape(-1)[: len(ids)]


def _is_int(value):
    return "int" in keras.backend.standardize_dtype(value.dtype)


def perplexity_of(log_probs):
    """Returns exp of the mean negative log-probability; infinite if that mean is 700 or more."""
    nll = -float(np.mean(np.asarray(log_probs, "float64")))
    return math.exp(nll) if nll < 700 else math.inf


def perplexity(model, ids, batch_size=1, chunk=None, start_id=START_ID):
    """Perplexity of a stream: exp(- 1/N sum_t log p(w_t | all words before)).

    Args:
        model: a `LanguageModel`.
        ids: int `[words]`.
        batch_size, chunk, start_id: see `StreamModel.score`. With one row, LSTM states and window
            are carried through the whole stream.
    """
    return perplexity_of(StreamModel(model, batch_size).score(ids, chunk, start_id))
