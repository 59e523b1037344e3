"""Step functions made of tables, and small models, for the searches."""

import copy

import keras
import numpy as np
from keras import ops

from keras_models.decoding import Protection, StepOutput, decode
from keras_models.decoding.actions import first_tokens, surfaces
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import numpy, randomize, shared, shared_by_config

PAD, UNK, START, END = 0, 1, 2, 3


def logs(probabilities):
    probabilities = np.asarray(probabilities, "float64")
    return np.where(probabilities > 0, np.log(np.maximum(probabilities, 1e-300)), -1e9).astype(
        "float32"
    )


class TableStep:
    """A step function whose distributions depend on the whole prefix, through a finite automaton.

    The automaton's state is carried: a search that mixes up hypotheses or rows reads the wrong
    table row.
    """

    STATES = 101
    TABLES = ("ids", "mask", "log_probs", "copy_log_probs", "attention")

    def __init__(self, seed, batch, vocabulary_size, source_length, sharpness=1.5):
        rng = np.random.default_rng(seed)
        self.size = vocabulary_size + source_length
        self.mask = np.arange(source_length) < rng.integers(1, source_length + 1, size=(batch, 1))
        # Some source tokens have a place in the vocabulary, the others are copy ids, of a first
        # position.
        self.ids = np.tile(vocabulary_size + np.arange(source_length), (batch, 1))
        known = rng.random((batch, source_length)) < 0.4
        self.ids[known] = (
            rng.integers(4, vocabulary_size, size=known.sum()) if vocabulary_size > 4 else END
        )
        self.ids = np.where(self.mask, self.ids, 0).astype("int32")
        logits = rng.normal(scale=sharpness, size=(batch, self.STATES, self.size))
        # A copy id that no real source position has cannot be said.
        for b in range(batch):
            impossible = [w for w in range(vocabulary_size, self.size) if w not in self.ids[b]]
            logits[b][:, impossible] = -np.inf
        p = np.exp(logits)
        p /= p.sum(-1, keepdims=True)
        attention = (
            rng.dirichlet(np.ones(source_length), size=(batch, self.STATES)) * self.mask[:, None]
        )
        self.attention = (attention / attention.sum(-1, keepdims=True)).astype("float32")
        copy = np.zeros_like(self.attention)
        for b in range(batch):
            for j in range(source_length):
                if self.mask[b, j]:
                    share = 1.0 if self.ids[b, j] >= vocabulary_size else rng.random(self.STATES)
                    copy[b, :, j] = (
                        p[b, :, self.ids[b, j]] * share / (self.ids[b] == self.ids[b, j]).sum()
                    )
        self.log_probs, self.copy_log_probs = logs(p), logs(copy)
        # In float32, the starting state of each row differs.
        self.carry = {
            "row": np.arange(batch, dtype="int32"),
            "state": np.arange(batch, dtype="int32"),
        }

    @property
    def sizes(self):
        """What of the step a program depends on, besides its tables' shapes."""
        return (self.size,)

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
        alone = copy.copy(self)
        vars(alone).update({name: getattr(self, name)[row : row + 1] for name in self.TABLES})
        alone.carry = {"row": np.zeros(1, "int32"), "state": self.carry["state"][row : row + 1]}
        return alone

    def search(self, search, max_length, **options):
        """Runs a search, on JAX by the program of all steps of these sizes and options.

        Options may be arrays, and `protection`; a function among them needs `run`.
        """
        arrays, fixed = {}, {}
        for name, value in options.items():
            is_fixed = value is None or isinstance(value, (bool, int, float, str))
            (fixed if is_fixed else arrays)[name] = value
        if arrays.get("protection") is not None:
            # Its longest span is no tensor.
            fixed["promised_span"] = arrays["protection"].max_span
            arrays["protection"] = arrays["protection"][:2]

        def run(tables, carry, arrays):
            step = copy.copy(self)
            vars(step).update(tables)
            chosen = {**arrays, **fixed}
            if "protection" in arrays:
                chosen["protection"] = Protection(
                    *arrays["protection"], chosen.pop("promised_span")
                )
            return step.run(search, max_length, carry=carry, **chosen)

        key = (type(self), self.sizes, search, max_length, tuple(sorted(fixed.items())))
        tables = {name: getattr(self, name) for name in self.TABLES}
        return shared(key, run, tables, self.carry, arrays)

    def run(self, search, max_length, carry=None, **options):
        """Runs a search operation by operation."""
        carry = self.carry if carry is None else carry
        return search(
            self,
            keras.tree.map_structure(ops.convert_to_tensor, carry),
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
    return {
        key: np.pad(value, [[0, 0], [0, padding]]).astype("int32") for key, value in arrays.items()
    }


def tensors(inputs):
    return {name: ops.convert_to_tensor(value) for name, value in inputs.items()}


# Options of `decode` that are arrays.
ARRAYS = ("tables", "uniforms", "shortlist", "protected_vocabulary")


def decoded(model, inputs, **options):
    """Returns what `decode` returns, in NumPy.

    On JAX models with the same config, and the same options, share a program.
    """
    arrays = {name: options.pop(name) for name in ARRAYS if name in options}

    def run(model, inputs, arrays):
        return decode(model, inputs, **arrays, **options)

    key = ("decode", repr(sorted(options.items())))
    return numpy(shared_by_config(model, run, tensors(inputs), arrays, key=key))


class SpanTableStep(TableStep):
    """A step function over actions.

    Its distributions depend on the words that were output, whichever way they were. With
    `max_span` 1 it is a head that does not merge, such as the pointer softmax.
    """

    def __init__(self, seed, batch, vocabulary_size, source_length, max_span, p_copy=0.6):
        rng = np.random.default_rng(seed)
        self.vocabulary_size, self.max_span = vocabulary_size, max_span
        self.size = vocabulary_size + source_length
        shape = (batch, self.STATES)
        self.mask = np.arange(source_length) < rng.integers(1, source_length + 1, size=(batch, 1))
        # Few different words: some known, some copy ids of a first position.
        words = rng.integers(0, 3, size=(batch, source_length))
        first = np.argmax(words[:, :, None] == words[:, None, :], axis=-1)
        self.ids = np.where(words == 0, vocabulary_size - 1, vocabulary_size + first)
        self.ids = np.where(self.mask, self.ids, 0).astype("int32")

        def softmax(possible, *size):
            p = np.exp(rng.normal(scale=1.5, size=(*shape, *size))) * possible
            return p / np.maximum(p.sum(-1, keepdims=True), 1e-9)

        self.p_copy = np.clip(rng.normal(p_copy, 0.2, size=shape), 0.05, 0.95)
        self.vocabulary = softmax(1.0, vocabulary_size)
        self.start = softmax(self.mask[:, None], source_length)
        reach = np.arange(source_length) - np.arange(source_length)[:, None]
        reachable = (reach >= 0) & (reach < max_span) & self.mask[:, None]
        self.end = softmax(reachable[:, None], source_length, source_length)
        spans = np.zeros((*shape, max_span, source_length))
        for length in range(max_span):
            for j in range(source_length - length):
                spans[:, :, length, j] = self.start[:, :, j] * self.end[:, :, j, j + length]
        spans = (self.p_copy[..., None, None] * spans).reshape(*shape, -1)
        words = (1 - self.p_copy[..., None]) * self.vocabulary
        self.log_probs = logs(np.concatenate([words, spans], axis=-1))
        self.attention = self.start.astype("float32")
        self.copy_log_probs = logs(self.p_copy[..., None] * self.start)
        self.carry = {
            "row": np.arange(batch, dtype="int32"),
            "state": np.arange(batch, dtype="int32"),
        }

    def __call__(self, actions, carry, index):
        tokens = first_tokens(actions, self.vocabulary_size, self.ids.shape[1])
        ids = ops.take(ops.convert_to_tensor(self.ids), carry["row"], axis=0)
        said = surfaces(ops.expand_dims(tokens, -1), ids, self.vocabulary_size)[:, 0]
        return super().__call__(said, carry, index)

    @property
    def sizes(self):
        return self.size, self.vocabulary_size, self.max_span

    def distributions(self, row):
        """The function of a prefix that `decoding_oracles.span_derivations` takes."""

        def read(prefix):
            state = int(self.carry["state"][row])
            for token in (START, *prefix):
                state = self.next_state(state, token)
            tables = ("p_copy", "vocabulary", "start", "end")
            return {name: getattr(self, name)[row, state] for name in tables}

        return read

    def surface(self, row, token):
        """The extended id of what a token says."""
        return (
            int(token)
            if token < self.vocabulary_size
            else int(self.ids[row, token - self.vocabulary_size])
        )

    def run(self, search, max_length, **options):
        return super().run(
            search, max_length, **{"max_span": self.max_span, "merges": False, **options}
        )
