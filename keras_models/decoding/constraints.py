"""The actions that a step may choose."""

import typing

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.decoding.order import BLANK, TEXT, Standing
from keras_models.decoding.span_order import SpanOrder
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import (
    LOG_ZERO,
    first_places,
    log_add,
)

PAD_ID, UNKNOWN_ID, START_ID, END_ID = 0, 1, 2, 3


def constraints(
    vocabulary_size,
    source_length,
    max_length,
    min_length=0,
    allow_unknown=False,
    max_span=1,
    start_id=START_ID,
    end_id=END_ID,
    unknown_id=UNKNOWN_ID,
):
    """Makes the function that bans actions from a step's distribution.

    Padding and the start are never output, `[UNK]` only if allowed; before `min_length` tokens
    nothing ends, after `max_length` tokens everything does, and no span begins that would be longer
    than the rest.

    Args:
        vocabulary_size, source_length: V and S; ints or scalar tensors.
        max_length, min_length: in tokens without the end; ints or scalar tensors.
        allow_unknown: whether `[UNK]` may be output.
        max_span: L, the longest span.

    Returns:
        A function `(log_probs [rows, V + L * S], index) -> log_probs`, `LOG_ZERO` where banned.
    """
    ids = ops.arange(vocabulary_size + max_span * source_length, dtype="int32")
    lengths = action_space.span_lengths(ids, vocabulary_size, source_length)
    banned = ops.logical_or(ops.equal(ids, PAD_ID), ops.equal(ids, start_id))
    if not allow_unknown:
        banned = ops.logical_or(banned, ops.equal(ids, unknown_id))
    is_end = ops.equal(ids, end_id)

    def constrain(log_probs, index):
        too_early = ops.logical_and(is_end, index < min_length)
        too_late = ops.logical_and(ops.logical_not(is_end), index + lengths > max_length)
        forbidden = ops.logical_or(banned, ops.logical_or(too_early, too_late))
        return ops.where(forbidden, LOG_ZERO, log_probs)

    return constrain


# The least score of an owed token, even if the model rules it out: below any score of a model,
# above that of banned actions.
LEAST_LOG_PROB = -1e4


class Protection(typing.NamedTuple):
    """Source tokens that every output must hold exactly as often as its source does.

    Such are placeholders, tags, …

    A protected token is never output more often than the source still owes it; one that the source
    lacks is never output. While tokens are owed no output ends: the probability of ending goes to
    the actions that pay, in proportion to their own,

        p'(a) = p(a) + p(end) p(a) / sum over paying b of p(b)      for paying a

    so that a model that would stop too early adds the missing tokens instead of other words. When
    only as many tokens fit as are owed, only paying actions are possible. If the model keeps its
    tokens by itself nothing changes; if it gives all owed tokens a probability of 0, the owed
    tokens share that of ending equally.

    What a hypothesis still owes is its ledger, a dict of `owed` bool `[rows, source_length]`, its
    protected source tokens not yet output, and of what an `Order` adds.

    Attributes:
        vocabulary: bool `[vocabulary_size]`, which target words are of a protected kind; or
            `[batch, vocabulary_size]`, where each source has words of its own.
        source: bool `[batch, source_length]`, which source tokens are; leave out those that the
            head cannot output.
        max_span: L, the longest span that is one action.
        order: the `Order` in which they must stand; or None for any.
    """

    vocabulary: typing.Any
    source: typing.Any
    max_span: int = 1
    order: typing.Any = None

    def map_rows(self, function):
        """The same for other rows, which `function` makes of each tensor."""
        shared = len(self.vocabulary.shape) == 1
        return self._replace(
            vocabulary=self.vocabulary if shared else function(self.vocabulary),
            source=function(self.source),
            order=None if self.order is None else self.order.map_rows(function),
        )

    def first_ledger(self):
        """The ledger at the start, of one hypothesis for each source."""
        others = {} if self.order is None else self.order.first_ledger()
        return {"owed": ops.convert_to_tensor(self.source, dtype="bool"), **others}

    def standing(self, ledger, index, max_length):
        """Returns what is possible now, a `Standing`.

        Args:
            ledger: what is owed, `[batch, ...]`.
            index: tokens output so far, a scalar.
            max_length: the longest output, a scalar.
        """
        if self.order is not None:
            return self.order.standing(ledger, index, max_length)
        number = ops.sum(ops.cast(ledger["owed"], "int32"), axis=-1, keepdims=True)
        room = max_length - index
        slack = ops.maximum(room - number, 0)
        unfinished = ops.logical_and(number > 0, room > 0)
        return Standing(ledger["owed"], unfinished, slack, slack > 0, slack > 0)

    def forbid(self, log_probs, ledger, standing, extended_ids, end_id=END_ID, places=None):
        """Applies the guarantee to a step's distribution, after `constraints`.

        Args:
            log_probs: float `[batch, V + L * source_length]`, over actions.
            ledger: what is owed, `[batch, ...]`.
            standing: what `standing` returned for it.
            extended_ids: int `[batch, source_length]`.
            places: what `first_places(extended_ids)` gives, if it is known already.

        Returns:
            Like `log_probs`.
        """
        unfinished = standing.unfinished
        pays, breaks, wasteful, owed_ids, here_owed = self._consequences(
            ledger, standing, extended_ids
        )
        is_end = ops.expand_dims(
            ops.equal(ops.arange(ops.shape(log_probs)[1], dtype="int32"), end_id), 0
        )
        paying = ops.logical_and(pays > 0, ops.logical_not(breaks))
        payments, count = self._payments(log_probs, paying, here_owed, extended_ids, places)
        log_end = log_probs[:, end_id : end_id + 1]
        # p + p(end) p / sum is p (1 + p(end) / sum): the same for all that pay.
        share = log_end - ops.logsumexp(payments, axis=-1, keepdims=True)
        with_end = log_probs + log_add(share, ops.zeros_like(share))
        # A word that can be said by several ids is said by its own.
        own = ops.pad(
            owed_ids,
            [[0, 0], [0, ops.shape(log_probs)[1] - ops.shape(owed_ids)[1]]],
            constant_values=False,
        )
        ruled_out = ops.max(payments, axis=-1, keepdims=True) <= LEAST_LOG_PROB
        least = ops.maximum(log_end - ops.log(ops.maximum(count, 1.0)), LEAST_LOG_PROB)
        with_end = ops.where(ruled_out, ops.where(own, least, LOG_ZERO), with_end)
        log_probs = ops.where(ops.logical_and(paying, unfinished), with_end, log_probs)
        if self.order is not None:
            log_probs = self._with_words(log_probs, standing, extended_ids)
        forbidden = ops.logical_or(
            breaks, ops.logical_and(ops.logical_or(is_end, wasteful), unfinished)
        )
        return ops.where(forbidden, LOG_ZERO, log_probs)

    def _with_words(self, log_probs, standing, extended_ids):
        """Makes words possible if nothing else is, and the model rules out those of the source.

        An example is a pair that was just opened, if the model would only close it.
        """
        ids = ops.cast(extended_ids, "int32")
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        source_length = ops.shape(ids)[1]
        said = ops.maximum(
            take_along(log_probs, ids),
            log_probs[:, vocabulary_size : vocabulary_size + source_length],
        )
        said = ops.where(ops.equal(self.order.roles, TEXT), said, LOG_ZERO)
        stuck = ops.logical_and(
            standing.unfinished, ops.logical_not(ops.any(standing.payable, axis=-1, keepdims=True))
        )
        stuck = ops.logical_and(stuck, ops.max(said, axis=-1, keepdims=True) <= LEAST_LOG_PROB)
        words = ops.logical_not(ops.logical_or(self._words(), self.order.blank_words()))
        words = ops.logical_and(words, ops.arange(vocabulary_size, dtype="int32") > END_ID)
        words = ops.pad(
            words,
            [[0, 0], [0, ops.shape(log_probs)[1] - vocabulary_size]],
            constant_values=False,
        )
        return ops.where(
            ops.logical_and(words, stuck), ops.maximum(log_probs, LEAST_LOG_PROB), log_probs
        )

    def _words(self):
        """The vocabulary's protected words, bool `[batch or 1, V]`."""
        shared = len(self.vocabulary.shape) == 1
        return ops.expand_dims(self.vocabulary, 0) if shared else self.vocabulary

    def _payments(self, log_probs, paying, here_owed, extended_ids, places):
        """The log-probabilities of all actions that pay, among `LOG_ZERO`s.

        Also returns how many ids are owed, float `[batch, 1]`.

        Paying tokens are in the source: they are looked up there, without a pass over all words.

        Returns:
            float `[batch, source_length + L * source_length]`: of words, at the first position that
            holds them, and of spans.
        """
        ids = ops.cast(extended_ids, "int32")
        places = first_places(ids) if places is None else places
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        is_first = ops.equal(
            places, ops.expand_dims(ops.arange(ops.shape(ids)[1], dtype="int32"), 0)
        )
        is_owed = ops.logical_and(is_first, here_owed)
        words = take_along(log_probs, ops.minimum(ids, vocabulary_size - 1))
        words = ops.where(ops.logical_and(is_owed, ids < vocabulary_size), words, LOG_ZERO)
        spans = ops.where(paying[:, vocabulary_size:], log_probs[:, vocabulary_size:], LOG_ZERO)
        count = ops.sum(ops.cast(is_owed, "float32"), axis=-1, keepdims=True)
        return ops.concatenate([words, spans], axis=1), count

    def _consequences(self, ledger, standing, extended_ids):
        """What each action does.

        Returns the owed tokens that it pays (int), whether it breaks the guarantee (bool), and
        whether it leaves too little room for what is owed (bool), each `[batch, actions]`. Then the
        ids that may be paid, bool `[batch, V + source_length]`, and the source positions that hold
        them, bool `[batch, source_length]`.
        """
        rows, source_length = ops.shape(ledger["owed"])
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        ids = ops.cast(extended_ids, "int32")
        source = self.source
        # Which ids are owed: a surface form's occurrences share one id.
        is_owed = action_space.flagged_ids(standing.payable, ids, vocabulary_size + source_length)
        word_owed = is_owed[:, :vocabulary_size]
        # Position j holds the word extended_ids[j], by whatever id it is copied.
        here_owed = take_along(is_owed, ids)
        text = ops.logical_not(standing.text_fits)
        blank, blank_here, span_order = text, False, None
        if self.order is not None:
            blank = ops.where(self.order.blank_words(), ops.logical_not(standing.blank_fits), text)
            blank_here = ops.equal(self.order.roles, BLANK)
            if self.max_span > 1:
                span_order = SpanOrder(self.order, ledger)
        pays = [ops.cast(word_owed, "int32")]
        breaks = [ops.logical_and(self._words(), ops.logical_not(word_owed))]
        wasteful = [ops.logical_and(blank, ops.logical_not(word_owed))]

        # A copy of one token does what its word does.
        pays.append(ops.cast(here_owed, "int32"))
        breaks.append(ops.logical_and(source, ops.logical_not(here_owed)))
        waste = ops.where(blank_here, ops.logical_not(standing.blank_fits), text)
        wasteful.append(ops.logical_and(waste, ops.logical_not(here_owed)))

        paid = ops.zeros((rows, source_length), dtype="int32")
        broken = ops.zeros((rows, source_length), dtype="bool")
        for length in range(1, self.max_span + 1 if self.max_span > 1 else 1):
            there_owed, there, protected = here_owed, ids, source
            if length > 1:
                there_owed = action_space.shifted(here_owed, length - 1, False)
                there = action_space.shifted(ids, length - 1, 0)
                protected = action_space.shifted(source, length - 1, False)
            bad = ops.logical_and(protected, ops.logical_not(there_owed))
            for before in range(length - 1):
                # The same protected token twice in one span: allow a token that is owed once only
                # once.
                earlier = action_space.shifted(ids, before, 0) if before else ids
                bad = ops.logical_or(bad, ops.logical_and(protected, ops.equal(earlier, there)))
            if span_order is not None:
                out_of_order, is_free = span_order.read(length - 1)
                # A token with a place of its own is owed there, whatever may be output now.
                bad = ops.logical_or(ops.logical_and(bad, is_free), out_of_order)
                there_owed = ops.where(is_free, there_owed, ops.logical_not(out_of_order))
            paid = paid + ops.cast(there_owed, "int32")
            broken = ops.logical_or(broken, bad)
            if length > 1:
                # With an order, kept tokens may be the only possible content of a pair.
                waste = length - (paid if self.order is None else 0)
                pays.append(paid)
                breaks.append(broken)
                wasteful.append(ops.broadcast_to(waste > standing.slack, ops.shape(broken)))
        actions = (ops.concatenate(parts, axis=1) for parts in (pays, breaks, wasteful))
        return *actions, is_owed, here_owed

    def pay(self, ledger, payable, tokens, extended_ids):
        """Returns the ledger after `tokens [batch]` are output.

        One occurrence of each is paid.

        Args:
            ledger, payable: before them; `payable` is that of the ledger's `Standing`.
            tokens: int32 `[batch]`, extended ids.
            extended_ids: int `[batch, source_length]`.
        """
        ids = ops.cast(extended_ids, "int32")
        vocabulary_size = ops.shape(self.vocabulary)[-1]
        if self.order is not None:
            return self.order.settle(ledger, payable, tokens, ids, vocabulary_size)
        owed = ledger["owed"]
        surface = action_space.surfaces(ops.expand_dims(tokens, -1), ids, vocabulary_size)
        matches = ops.logical_and(payable, ops.equal(ids, surface))
        first = ops.expand_dims(
            ops.cast(ops.argmax(ops.cast(matches, "int32"), axis=-1), "int32"), -1
        )
        places = ops.expand_dims(ops.arange(ops.shape(owed)[1], dtype="int32"), 0)
        paid = ops.logical_and(matches, ops.equal(places, first))
        return {"owed": ops.logical_and(owed, ops.logical_not(paid))}
