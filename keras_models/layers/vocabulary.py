"""The softmax over the target vocabulary that the heads share, with the large-vocabulary trick."""

import math
import typing

import keras
from keras import ops

from keras_models.layers.numerics import LOG_ZERO, log_add, log_normaliser, log_shares, rowwise
from keras_models.layers.panels import Dense, product
from keras_models.layers.shortlist import Shortlist


class Candidates(typing.NamedTuple):
    """Words that stand for the whole vocabulary in a softmax.

    Each stands for as many as its weight says.

    words: int32 `[size]`, distinct ids.
    log_weights: float32 `[size]`, natural logarithms.
    """

    words: typing.Any
    log_weights: typing.Any


def softmax_candidates(targets, vocabulary_size, size, drawn=0, seed=None):
    """Chooses the words that a batch's softmax is normalised over.

    They are those of the batch, the most frequent, and a sample of the others.

    Ids are by falling frequency, so the most frequent words are the lowest ids. The others are
    drawn with equal chances, without replacement, and each stands for (V - size) / drawn of them,
    so that the expected sum of the softmax is the whole vocabulary's:

        E[sum over c of weight_c exp(o_c)] = sum over all w of exp(o_w)

    which is importance sampling with a uniform proposal (Jean et al. 2014, section 3.1) of what the
    first `size` words leave out. With none drawn, words outside are as if they were not: no update
    lowers their scores, and an evaluation over all words finds them too likely.

    Args:
        targets: int tensor of any shape, extended ids. Of more than `size` different words the
            least frequent are left out; `VocabularySoftmax.target_logits` adds such a target to its
            own softmax.
        vocabulary_size: V.
        size: number of words of the batch and most frequent ones, at most V.
        drawn: number of other words, at most V - size.
        seed: of the draw, a `keras.random.SeedGenerator` or int.

    Returns:
        `Candidates` of size + drawn words.

    References:
        Jean et al. 2014, https://arxiv.org/abs/1412.2007; Gulcehre et al. 2016, section 5.2
    """
    flat = ops.reshape(ops.cast(targets, "int32"), (-1,))
    known = flat < vocabulary_size
    counts = ops.segment_sum(
        ops.cast(known, "int32"), ops.where(known, flat, 0), num_segments=vocabulary_size
    )
    rank = -ops.arange(vocabulary_size, dtype="int32")
    # float32 holds whole numbers up to 2^24 exactly: vocabularies stay far below half of that.
    priority = ops.cast(ops.where(counts > 0, rank + vocabulary_size, rank), "float32")
    words = ops.cast(ops.top_k(priority, size)[1], "int32")
    log_weights = ops.zeros((size,), "float32")
    if not drawn:
        return Candidates(words, log_weights)
    chosen = ops.segment_sum(ops.ones_like(words), words, num_segments=vocabulary_size)
    chances = keras.random.uniform((vocabulary_size,), dtype="float32", seed=seed)
    others = ops.cast(ops.top_k(ops.where(chosen > 0, -1.0, chances), drawn)[1], "int32")
    weights = ops.full((drawn,), math.log((vocabulary_size - size) / drawn), "float32")
    return Candidates(ops.concatenate([words, others]), ops.concatenate([log_weights, weights]))


@keras.saving.register_keras_serializable("verbatim")
class VocabularySoftmax(Dense):
    """p(w) = softmax(W h + b)_w, in log space.

    With `candidates` (training only) the sum of the softmax runs over these words alone, each with
    its weight, so that a large vocabulary costs as little as a small one: the large-vocabulary
    trick; see `softmax_candidates`. A target that is no candidate joins the sum of its step.

    Tied to an embedding E `[V, e]`, W is E^T, and only b is a weight of its own (Press and Wolf
    2017). Where e is not the hidden size, a projection P stands between them (Inan et al. 2017):

        p(w) = softmax(E P h + b)_w

    W is first drawn with variance 1 / hidden_size, so that the words' scores vary as much as the
    components of h, however many words there are. Glorot's variance, 2 / (hidden_size + V), is all
    but 0: the gradient that reaches h is as small, and a network without copying stays at the
    frequencies of single words for thousands of updates.

    Args:
        units: V.
        kernel_initializer: of W.
        options: other arguments of `keras.layers.Dense`.

    Call arguments:
        hidden: `[..., hidden_size]`.

    Returns:
        Logits `[..., V]`.

    Example:

    >>> import numpy as np
    >>> from keras_models.layers import VocabularySoftmax
    >>> vocabulary = VocabularySoftmax(10)
    >>> tuple(vocabulary(np.ones((2, 3, 4))).shape)
    (2, 3, 10)
    >>> tuple(vocabulary.log_probs(np.ones((2, 3, 4))).shape)
    (2, 3, 10)

    References:
        Press and Wolf 2017, https://arxiv.org/abs/1608.05859; Inan et al. 2017,
        https://arxiv.org/abs/1611.01462
    """

    # An `Embedding`, in a tied layer.
    embedding = None
    # `[hidden_size, e]`, in a tied layer of two sizes.
    projection = None

    def __init__(self, units, kernel_initializer="lecun_normal", **options):
        super().__init__(units, kernel_initializer=kernel_initializer, **options)

    def tie(self, embedding):
        """Takes W from an embedding; before the layer is built.

        Args:
            embedding: a `keras.layers.Embedding` of V ids, built.

        Raises:
            ValueError: the layer is built already, or the embedding has another number of ids.
        """
        if self.built:
            raise ValueError("A softmax must be tied to an embedding before it is built.")
        if embedding.input_dim != self.units:
            raise ValueError(
                f"A softmax over {self.units} words cannot be tied to an embedding of "
                f"{embedding.input_dim}."
            )
        self.embedding = embedding

    def build(self, hidden_shape):
        if self.embedding is None:
            super().build(hidden_shape)
            return
        size = hidden_shape[-1]
        if size != self.embedding.output_dim:
            self.projection = self.add_weight(
                shape=(size, self.embedding.output_dim), name="projection"
            )
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: size})
        self.built = True

    @property
    def kernel(self):
        """W, `[e, V]`, which multiplies `project(hidden)`."""
        return super().kernel if self.embedding is None else ops.transpose(self._embeddings())

    def step_kernel(self):
        """Returns the variable that W is, or is made of, and W: see `panels.tables_of`."""
        tied = self.embedding is not None
        return self.embedding.embeddings if tied else self.kernel, self.kernel

    def _embeddings(self):
        return ops.convert_to_tensor(self.embedding.embeddings)

    def project(self, hidden):
        """What the words' weights multiply: P h, or h itself where nothing stands between."""
        if self.projection is None:
            return hidden
        projection = ops.cast(self.projection, self.compute_dtype)
        return rowwise(
            lambda rows: ops.matmul(ops.cast(rows, projection.dtype), projection), hidden
        )

    def call(self, hidden, training=None):
        if self.embedding is None:
            return super().call(hidden)
        kernel = ops.cast(self.kernel, self.compute_dtype)
        logits = rowwise(
            lambda rows: product(rows, kernel, self.step_kernel()[0]), self.project(hidden)
        )
        return logits + ops.cast(self.bias, kernel.dtype)

    def save_own_variables(self, store):
        if self.embedding is None:
            super().save_own_variables(store)
        else:
            keras.layers.Layer.save_own_variables(self, store)

    def load_own_variables(self, store):
        if self.embedding is None:
            super().load_own_variables(store)
        else:
            keras.layers.Layer.load_own_variables(self, store)

    def logits(self, hidden, shortlist=None):
        """Float32 logits `[..., V]`, with leading axes folded for the product;
        `[rows, N]` of a `Shortlist` and `hidden [rows, hidden_size]`.
        """
        logits = (
            rowwise(self, hidden) if shortlist is None else shortlist.logits(self.project(hidden))
        )
        return ops.cast(logits, "float32")

    def log_probs(self, hidden, shortlist=None, log_total=0.0):
        """Float32 log-probabilities `[..., V]`, or `[rows, N]`: see `logits`;
        times `exp(log_total)`, which is `[..., 1]`.
        """
        return log_shares(self.logits(hidden, shortlist), log_total)

    def columns(self):
        """The weights of all words, each word's side by side, `[V, hidden_size]`, or `[V, e]`."""
        if self.embedding is not None:
            return ops.cast(self._embeddings(), self.compute_dtype)
        return ops.transpose(ops.cast(self.kernel, self.compute_dtype))

    def shortlist(self, words, columns=None):
        """Returns the `Shortlist` of int32 words `[batch, N]`; `columns` makes it faster."""
        columns = self.columns() if columns is None else columns
        return Shortlist(
            words,
            ops.take(columns, words, axis=0),
            ops.take(ops.cast(self.bias, self.compute_dtype), words),
        )

    def _columns(self, hidden, words):
        """Float32 `hidden`, and the columns (hidden size last) and biases of some words.

        In float32, because products then add up as those of matrices do.
        """
        columns, bias, hidden = (
            ops.cast(ops.cast(value, self.compute_dtype), "float32")
            for value in (self.columns(), self.bias, self.project(hidden))
        )
        return hidden, ops.take(columns, words, axis=0), ops.take(bias, words)

    def logits_at(self, hidden, words):
        """The logit of one word at each position, without those of the others.

        Args:
            hidden: `[batch, length, hidden_size]`.
            words: int `[batch, length]`.

        Returns:
            float32 `[batch, length]`.
        """
        hidden, columns, bias = self._columns(hidden, words)
        return ops.sum(hidden * columns, axis=-1) + bias

    def logits_of(self, hidden, words):
        """The logits of some words, the same ones at all positions of a row.

        Those of the others are not computed.

        Args:
            hidden: `[batch, length, hidden_size]`.
            words: int `[batch, number]`.

        Returns:
            float32 `[batch, length, number]`.
        """
        hidden, columns, bias = self._columns(hidden, words)
        return ops.matmul(hidden, ops.transpose(columns, (0, 2, 1))) + ops.expand_dims(bias, 1)

    def target_logits(self, hidden, targets, candidates=None):
        """The targets' logits, and the logarithm of the sum of all.

        Args:
            hidden: `[batch, length, hidden_size]`.
            targets: int `[batch, length]`; ids outside the vocabulary give `LOG_ZERO`.
            candidates: `Candidates`, or None for the whole vocabulary.

        Returns:
            float32 `[batch, length]` logits, and float32 `[batch, length]` log-normalisers.
        """
        known = targets < self.units
        index = ops.where(known, targets, 0)
        # Not picked of all logits: its gradient would be a tensor of their size.
        own = self.logits_at(hidden, index)
        if candidates is None:
            projected = ops.cast(self.project(hidden), self.compute_dtype)
            bias = ops.cast(self.bias, "float32")
            normaliser = log_normaliser(self.logits(hidden), projected, self.columns(), bias)
            return ops.where(known, own, LOG_ZERO), normaliser
        words, log_weights = candidates
        bias, hidden = (
            ops.cast(value, self.compute_dtype) for value in (self.bias, self.project(hidden))
        )
        # Of a kernel turned round, because columns are gathered, and their gradients added up, in a
        # third of the time where their numbers lie side by side.
        turned = self.columns()
        narrow, weighted = (
            ops.take(turned, words, axis=0),
            ops.cast(ops.take(bias, words), "float32") + log_weights,
        )
        logits = rowwise(
            lambda rows: ops.cast(ops.matmul(rows, ops.transpose(narrow)), "float32") + weighted,
            hidden,
        )
        normaliser = log_normaliser(logits, hidden, narrow, weighted)
        is_candidate = ops.segment_sum(ops.ones_like(words), words, num_segments=self.units)
        left_out = ops.logical_and(known, ops.take(is_candidate, index) == 0)
        normaliser = ops.where(left_out, log_add(normaliser, own), normaliser)
        return ops.where(known, own, LOG_ZERO), normaliser

    def target_log_prob(self, hidden, targets, candidates=None):
        """Returns the targets' log-probabilities, float32 `[batch, length]`.

        The arguments are those of `target_logits`.
        """
        return self.score(hidden, targets, candidates)[0]

    def score(self, hidden, targets, candidates=None, with_normaliser=True):
        """Returns what `target_log_prob` does, and the log-normaliser that `target_logits` has.

        The second is None unless `with_normaliser`, which earlier versions gained time by.
        """
        chosen, normaliser = self.target_logits(hidden, targets, candidates)
        log_prob = ops.where(targets < self.units, chosen - normaliser, LOG_ZERO)
        return log_prob, normaliser if with_normaliser else None

    def mean_logit(self, hidden):
        """Returns the mean of the logits of all words, without computing any of them.

            mean_w (W_w . h + b_w) = mean_w(W_w) . h + mean_w(b_w)

        Args:
            hidden: `[batch, length, hidden_size]`.

        Returns:
            float32 `[batch, length]`.
        """
        columns, bias, hidden = (
            ops.cast(ops.cast(value, self.compute_dtype), "float32")
            for value in (self.columns(), self.bias, self.project(hidden))
        )
        return ops.sum(hidden * ops.mean(columns, axis=0), axis=-1) + ops.mean(bias)
