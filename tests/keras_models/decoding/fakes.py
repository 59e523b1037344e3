"""Step functions made of tables, and small models, for the searches."""

import keras
import numpy as np
from keras import ops

from keras_models.decoding import StepOutput
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import randomize

PAD, UNK, START, END = 0, 1, 2, 3


def logs(probabilities):
    probabilities = np.asarray(probabilities, "float64")
    return np.where(probabilities > 0, np.log(np.maximum(probabilities, 1e-300)), -1e9).astype("float32")


class TableStep:
    """A step function whose distributions depend on the whole prefix, through a finite automaton.

    The automaton's state is carried: a search that mixes up hypotheses or rows reads the wrong table row.
    """

    STATES = 101

    def __init__(self, seed, batch, vocabulary_size, source_length, sharpness=1.5):
        rng = np.random.default_rng(seed)
        self.size = vocabulary_size + source_length
        self.mask = np.arange(source_length) < rng.integers(1, source_length + 1, size=(batch, 1))
        # Some source tokens have a place in the vocabulary, the others are copy ids, of a first position.
        self.ids = np.tile(vocabulary_size + np.arange(source_length), (batch, 1))
        known = rng.random((batch, source_length)) < 0.4
        self.ids[known] = rng.integers(4, vocabulary_size, size=known.sum()) if vocabulary_size > 4 else END
        self.ids = np.where(self.mask, self.ids, 0).astype("int32")
        logits = rng.normal(scale=sharpness, size=(batch, self.STATES, self.size))
        # A copy id that no real source position has cannot be said.
        for b in range(batch):
            impossible = [w for w in range(vocabulary_size, self.size) if w not in self.ids[b]]
            logits[b][:, impossible] = -np.inf
        p = np.exp(logits)
        p /= p.sum(-1, keepdims=True)
        attention = rng.dirichlet(np.ones(source_length), size=(batch, self.STATES)) * self.mask[:, None]
        self.attention = (attention / attention.sum(-1, keepdims=True)).astype("float32")
        copy = np.zeros_like(self.attention)
        for b in range(batch):
            for j in range(source_length):
                if self.mask[b, j]:
                    share = 1.0 if self.ids[b, j] >= vocabulary_size else rng.random(self.STATES)
                    copy[b, :, j] = p[b, :, self.ids[b, j]] * share / (self.ids[b] == self.ids[b, j]).sum()
        self.log_probs, self.copy_log_probs = logs(p), logs(copy)
        # In float32, the starting state of each row differs.
        self.carry = {"row": np.arange(batch, dtype="int32"), "state": np.arange(batch, dtype="int32")}

    def next_state(self, state, token):
        return (state * 7 + token * 3 + 1) % self.STATES

    def __call__(self, tokens, carry, index):
        state = self.next_state(carry["state"], tokens)
        at = carry["row"] * self.STATES + state

        def read(table):
            return ops.take(ops.convert_to_tensor(table.reshape(-1, table.shape[-1])), at, axis=0)

        return StepOutput(
            read(self.log_probs),
            read(self.copy_log_probs),
            read(self.attention),
            {"row": carry["row"], "state": state},
        )

    def distribution(self, row):
        """The function of a prefix that `oracles.exhaustive_search` takes."""

        def read(prefix):
            state = int(self.carry["state"][row])
            for token in (START, *prefix):
                state = self.next_state(state, token)
            return self.log_probs[row, state], self.attention[row, state]

        return read

    def row(self, row):
        """The step function of one row alone."""
        alone = object.__new__(TableStep)
        alone.size = self.size
        names = ("mask", "ids", "log_probs", "copy_log_probs", "attention")
        alone.__dict__.update({name: getattr(self, name)[row : row + 1] for name in names})
        alone.carry = {"row": np.zeros(1, "int32"), "state": self.carry["state"][row : row + 1]}
        return alone

    def search(self, search, max_length, **options):
        carry = keras.tree.map_structure(ops.convert_to_tensor, self.carry)
        return search(
            self,
            carry,
            ops.convert_to_tensor(self.ids),
            ops.convert_to_tensor(self.mask),
            self.size,
            max_length,
            **options,
        )


class ScriptStep:
    """A step function that says what it is told, step by step.

    Args:
        log_probs: `[time, extended_size]`, the same for all rows; the last is repeated.
        copy_log_probs: `[time, source_length]`.
    """

    def __init__(self, log_probs, copy_log_probs):
        self.log_probs, self.copy_log_probs = np.asarray(log_probs), np.asarray(copy_log_probs)

    def __call__(self, tokens, carry, index):
        rows = ops.shape(tokens)[0]

        def read(table):
            row = ops.take(ops.convert_to_tensor(table), ops.minimum(index, len(table) - 1), axis=0)
            return ops.repeat(ops.expand_dims(row, 0), rows, axis=0)

        copies = read(self.copy_log_probs)
        return StepOutput(read(self.log_probs), copies, ops.exp(copies), carry)


def small_model(seed=0, head="pointer_generator", cell="gru", scale=1.0, **options):
    model = RecurrentSeq2Seq(
        source_vocabulary_size=9,
        target_vocabulary_size=8,
        head=head,
        cell=cell,
        embedding_size=4,
        hidden_size=6,
        dropout=0.0,
        **options,
    )
    randomize(model, seed, scale)
    if head == "pointer_generator":
        model.head.gate.bias.assign([-2.0])  # so that it copies often
    return model


def small_inputs(seed=0, batch=3, source_length=5, padding=0):
    """Sources of different lengths, for decoding with `small_model`."""
    rng = np.random.default_rng(seed)
    source = rng.integers(4, 9, size=(batch, source_length))
    lengths = np.concatenate([[source_length], rng.integers(1, source_length + 1, size=batch - 1)])
    real = np.arange(source_length) < lengths[:, None]
    first = np.argmax(source[:, :, None] == source[:, None, :], axis=-1)
    known = source < 7
    arrays = {
        "source_ids": source,
        "source_extended_ids": np.where(known, source, 8 + first),
        "source_feed_ids": np.where(known, source, 1),
    }
    arrays = {key: np.where(real, value, 0) for key, value in arrays.items()}
    return {key: np.pad(value, [[0, 0], [0, padding]]).astype("int32") for key, value in arrays.items()}
