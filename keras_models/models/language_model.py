"""Recurrent language model with a softmax or a pointer sentinel on top."""

import keras
from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes
from keras_models.heads.pointer_sentinel_window import NO_WORD, PointerSentinelWindow
from keras_models.heads.softmax_head import SoftmaxHead
from keras_models.layers.embeddings import token_embedding
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO
from keras_models.layers.regularized_lstm import VariationalDropout, ZoneoutLSTM

HEADS = ("softmax", "pointer_sentinel")
PAD_ID = 0
_AXES = {
    "inputs": ("batch", "time"),
    "extended_ids": ("batch", "time"),
    "targets": ("batch", "steps"),
}


@keras.saving.register_keras_serializable("verbatim")
class LanguageModel(keras.Model):
    """Stacked LSTMs that predict each next word, with a softmax or a pointer sentinel on top.

        x_t   = E w_t
        h^1_t = LSTM(drop(x_t), h^1_{t-1}),  h^2_t = LSTM(drop(h^1_t), h^2_{t-1}),  ...
        p(w_{t+1}) = head(drop(h_t))                      h_t: the last layer's output

    The recurrence has zoneout. drop is variational: its mask is locked across the time steps of a
    call (Merity et al. 2016, section 5.2; Gal 2015). The defaults are the paper's medium model. It
    does not print its zoneout rates; those here are Krueger et al.'s for words of the Penn
    Treebank. The pointer reads the dropped h_t, the same vectors that the softmax reads.

    Args:
        vocabulary_size: V.
        head: `"pointer_sentinel"` or `"softmax"`.
        window: L, how many past words the pointer sees.
        embedding_size, hidden_size: sizes.
        recurrent_layers: stacked LSTMs.
        dropout: variational dropout of each LSTM's input and of the last one's output.
        zoneout_hidden, zoneout_cell: see `ZoneoutLSTM`.
        tie_weights: whether the softmax uses the embedding matrix; needs equal sizes. Off, as in
            the paper.
        unit_embeddings: whether the vectors that the first LSTM reads begin with variance 1, which
            Glorot's kernels expect: drawn from N(0, 1), or, where the softmax has them too, from
            N(0, 1/e) and multiplied by sqrt(e) as inputs. Else they begin uniformly within 0.05, as
            Keras has them.

    Call arguments:
        inputs: int `[batch, time]`, the words read, below V; 0 is padding, and may only be at a
            row's end.
        carry: the carry of an earlier call, to continue where it ended; None begins a text.
        targets: int `[batch, n]`, the words that follow the last n steps; None asks for whole
            distributions.
        extended_ids: int `[batch, time]`, for the pointer: as `inputs`, but with ids V + k for
            words that have none of their own; default `inputs`.
        last, lengths, size: as in `PointerSentinelWindow`: how many of the last steps are returned;
            the number of steps after which the returned carry is taken; the number of extended ids
            (default V).
        training: whether dropout and zoneout are random.

    Returns:
        log_probs: float32 `[batch, n]` of the targets, or `[batch, n, size]`.
        carry: dict with `states`, a list of `[h, c]`, one for each layer, and, under a pointer,
            `window`.

    Raises:
        ValueError: an unknown head, or tied weights of unequal sizes.

    Example:

    >>> import numpy as np
    >>> from keras_models.models import LanguageModel
    >>> model = LanguageModel(vocabulary_size=20, window=5, embedding_size=4, hidden_size=8)
    >>> words = np.array([[4, 5, 6], [7, 8, 9]])
    >>> log_prob, carry = model(words[:, :-1], targets=words[:, 1:])
    >>> tuple(log_prob.shape), tuple(carry["window"]["words"].shape)
    ((2, 2), (2, 5))

    References:
        Merity et al. 2016, "Pointer Sentinel Mixture Models", https://arxiv.org/abs/1609.07843
    """

    def __init__(
        self,
        vocabulary_size,
        head="pointer_sentinel",
        window=100,
        embedding_size=650,
        hidden_size=650,
        recurrent_layers=2,
        dropout=0.5,
        zoneout_hidden=0.025,
        zoneout_cell=0.25,
        tie_weights=False,
        unit_embeddings=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._config = dict(
            vocabulary_size=vocabulary_size,
            head=head,
            window=window,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            recurrent_layers=recurrent_layers,
            dropout=dropout,
            zoneout_hidden=zoneout_hidden,
            zoneout_cell=zoneout_cell,
            tie_weights=tie_weights,
            unit_embeddings=unit_embeddings,
        )
        if head not in HEADS:
            raise ValueError(
                f"A language model's head must be one of {', '.join(HEADS)}; got {head!r}."
            )
        if tie_weights and embedding_size != hidden_size:
            raise ValueError(
                "Tied weights need embedding_size and hidden_size to be equal; got "
                f"{embedding_size} and {hidden_size}."
            )
        self.vocabulary_size = vocabulary_size
        self.window = window
        self.hidden_size = hidden_size
        policy = self.dtype_policy
        self._scale = embedding_size**0.5 if unit_embeddings and tie_weights else 1.0
        if unit_embeddings:
            self.embedding = token_embedding(
                vocabulary_size, embedding_size, policy, "embedding", 1.0 / self._scale
            )
        else:
            self.embedding = keras.layers.Embedding(
                vocabulary_size, embedding_size, dtype=policy, name="embedding"
            )
        self.drops = [
            VariationalDropout(dropout, dtype=policy, name=f"dropout_{index}")
            for index in range(recurrent_layers + 1)
        ]
        self.lstms = [
            ZoneoutLSTM(
                hidden_size, zoneout_hidden, zoneout_cell, dtype=policy, name=f"lstm_{index}"
            )
            for index in range(recurrent_layers)
        ]
        self.points = head == "pointer_sentinel"
        if self.points:
            self.head = PointerSentinelWindow(vocabulary_size, window, dtype=policy, name="head")
        else:
            self.head = SoftmaxHead(vocabulary_size, dtype=policy, name="head")
        self.embedding.build((None, None))
        for index, lstm in enumerate(self.lstms):
            lstm.build((None, None, embedding_size if index == 0 else hidden_size))
        if tie_weights:
            self.head.tie(self.embedding)
        self.head.build((None, None, hidden_size))
        self.built = True

    def build(self, input_shape=None):
        """Nothing: every size is known in the constructor."""

    def get_config(self):
        return {**super().get_config(), **self._config}

    def initial_carry(self, batch_size):
        """Returns the carry of a text that begins: zero states, an empty window."""
        carry = {"states": [lstm.initial_states(batch_size) for lstm in self.lstms]}
        if self.points:
            carry["window"] = self.head.initial_window(batch_size, self.hidden_size)
        return carry

    def _embed(self, ids):
        vectors = self.embedding(ids)
        return vectors if self._scale == 1.0 else vectors * ops.cast(self._scale, vectors.dtype)

    def call(
        self,
        inputs,
        carry=None,
        targets=None,
        extended_ids=None,
        last=None,
        lengths=None,
        size=None,
        training=False,
    ):
        arguments = {"inputs": inputs, "extended_ids": extended_ids, "targets": targets}
        check_axes("LanguageModel", arguments, _AXES)
        for name, high in (("inputs", self.vocabulary_size), ("extended_ids", size)):
            debugging.check_range("LanguageModel", name, arguments[name], 0, high)
        inputs = ops.cast(inputs, "int32")
        batch, length = ops.shape(inputs)
        lengths = length if lengths is None else lengths
        if carry is None:
            carry = self.initial_carry(batch)
        hidden = self._embed(inputs)
        states = []
        for drop, lstm, first in zip(self.drops, self.lstms, carry["states"]):
            outputs, cells = lstm(drop(hidden, training=training), first, training=training)
            states.append(
                [
                    _state_after(before, after, lengths)
                    for before, after in zip(first, (outputs, cells))
                ]
            )
            hidden = outputs
        hidden = self.drops[-1](hidden, training=training)
        new_carry = {"states": states}
        targets = None if targets is None else ops.cast(targets, "int32")
        if not self.points:
            queries = hidden if last is None else hidden[:, -last:]
            if targets is not None:
                return self.head.target_log_prob({"hidden": queries}, {}, targets), new_carry
            # Words outside the vocabulary, if there are any, have no probability.
            return _widened(self.head(queries), self.vocabulary_size, size), new_carry
        words = inputs if extended_ids is None else ops.cast(extended_ids, "int32")
        words = ops.where(inputs == PAD_ID, NO_WORD, words)
        log_probs, new_carry["window"] = self.head(
            hidden, words, carry["window"], targets=targets, last=last, lengths=lengths, size=size
        )
        return log_probs, new_carry

    def step(self, tokens, carry, extended_ids=None, size=None):
        """Reads one word and predicts the next; no dropout.

        Args:
            tokens: int `[batch]`, ids below V.
            carry: what `call` or the last `step` returned.
            extended_ids: int `[batch]`, for the pointer; default `tokens`.
            size: number of extended ids, default V.

        Returns:
            log_probs: float32 `[batch, size]`.
            copy_log_probs: float32 `[batch, L]`, log-probability that the next word is copied from
                each position of the window. The last position is the word just read, the first the
                one L - 1 words before it. The source of a word that is at least half copied is
                `decoding.hypotheses.provenance` over `carry["window"]["words"]`.
            carry: the next carry.
        """
        hidden = self._embed(tokens)
        states = []
        for lstm, first in zip(self.lstms, carry["states"]):
            states.append(lstm.step(hidden, first))
            hidden = states[-1][0]
        if not self.points:
            log_probs = self.head.step_log_probs(
                {"hidden": hidden}, {"extended_ids": tokens[:, None]}
            )[0]
            log_probs = _widened(log_probs[:, : self.vocabulary_size], self.vocabulary_size, size)
            return (
                log_probs,
                ops.full((ops.shape(tokens)[0], self.window), LOG_ZERO),
                {"states": states},
            )
        words = tokens if extended_ids is None else extended_ids
        log_probs, copy_log_probs, window = self.head.step(
            hidden, words, carry["window"], size=size
        )
        return log_probs, copy_log_probs, {"states": states, "window": window}


def _state_after(before, sequence, lengths):
    """The state after `lengths` steps.

    It is `before` `[batch, units]` after none, `sequence[:, t - 1]` after t.

    `lengths` is an int from 1, or int `[batch]` from 0.
    """
    if len(getattr(lengths, "shape", ())) == 0:
        return sequence[:, lengths - 1]
    states = ops.concatenate([ops.cast(before, sequence.dtype)[:, None], sequence], axis=1)
    return take_along(states, ops.expand_dims(lengths, -1))[:, 0]


def _widened(log_probs, vocabulary_size, size):
    """Appends `size - V` impossible words to the last axis."""
    if size is None:
        return log_probs
    paddings = [[0, 0]] * (len(log_probs.shape) - 1) + [[0, size - vocabulary_size]]
    return ops.pad(log_probs, paddings, constant_values=LOG_ZERO)
