"""The rules of a step and the bookkeeping of an action, shared by all searches."""

import typing

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.decoding.constraints import END_ID, START_ID, UNKNOWN_ID, constraints
from keras_models.decoding.hypotheses import provenance
from keras_models.decoding.repetition import repeating_actions
from keras_models.decoding.whole_words import REGISTER
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import LOG_ZERO, first_places, repeat_rows, take_rows

#: What the length of an output counts where its score is normalised: its tokens, each copied one
#: among them; or what was chosen, a copied span once, as Zhou et al. 2018 do. The end counts in
#: both. Without spans they are the same.
LENGTH_UNITS = ("tokens", "choices")

# The parts of `Rules` that have rows of their own.
_PARTS = ("protection", "whole_words", "piece_repeats")
#: The part of a ledger that says, within a step, which owed tokens may be output.
PAYABLE = "payable"


class Rules(typing.NamedTuple):
    """The source and the rules of one search; the same for all its steps.

    Attributes:
        extended_ids: int32 `[batch, source_length]`.
        source_mask: bool `[batch, source_length]`.
        extended_size: V + source_length.
        max_length, min_length, allow_unknown, protection: see `beam_search`.
        max_span: the longest span that is one action, see `keras_models.decoding.actions`.
        merges: whether a copied id stands for all positions that hold its word, or for its own
            position alone.
        replace_unknown: whether `[UNK]` is replaced by the source token with the highest attention.
        no_repeat_ngram: no output has the same n tokens twice, except for owed tokens and if
            nothing else is left; 0 for off.
        length_unit: what an output's length counts, see `LENGTH_UNITS`.
        whole_words: the `WholeWords` that are copied from end to end; or None.
        piece_repeats: the `PieceRepeats` that a word may have; or None.
        start_id, end_id, unknown_id: special ids.
    """

    extended_ids: typing.Any
    source_mask: typing.Any
    extended_size: typing.Any
    max_length: typing.Any
    min_length: typing.Any = 0
    allow_unknown: bool = False
    protection: typing.Any = None
    max_span: int = 1
    merges: bool = True
    replace_unknown: bool = False
    no_repeat_ngram: int = 0
    length_unit: str = LENGTH_UNITS[0]
    whole_words: typing.Any = None
    piece_repeats: typing.Any = None
    start_id: int = START_ID
    end_id: int = END_ID
    unknown_id: int = UNKNOWN_ID

    @property
    def source_length(self):
        return ops.shape(self.extended_ids)[1]

    @property
    def vocabulary_size(self):
        return self.extended_size - self.source_length

    @property
    def number_of_actions(self):
        return self.vocabulary_size + self.max_span * self.source_length

    @property
    def counts_choices(self):
        """Whether a search must count choices in addition to its steps.

        Raises:
            ValueError: the unit of length is none of `LENGTH_UNITS`.
        """
        if self.length_unit not in LENGTH_UNITS:
            raise ValueError(
                f"length_unit must be one of {', '.join(LENGTH_UNITS)}; got {self.length_unit!r}."
            )
        return self.length_unit == "choices" and self.max_span > 1

    def chooses(self, last):
        """int32, 1 where something is chosen after these last actions.

        It is 0 inside a span, where one action alone is possible.
        """
        lengths = action_space.span_lengths(last, self.vocabulary_size, self.source_length)
        return ops.cast(lengths == 1, "int32")

    def repeat(self, times):
        """The same rules for a batch of which each row stands `times` times."""
        return self._map_rows(lambda tensor: repeat_rows(tensor, times))

    def of(self, sources):
        """The same rules, not yet repeated, for some of the sources, int32 `[n]`."""
        return self._map_rows(lambda tensor: take_rows(tensor, sources))

    def _map_rows(self, function):
        """The same rules for other rows, which `function` makes of each tensor."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return self._replace(
            extended_ids=function(self.extended_ids),
            source_mask=function(self.source_mask),
            **{name: part.map_rows(function) for name, part in parts.items() if part is not None},
        )

    def make_constrain(self):
        """Returns the function of all rules.

        It is `(output, last, ledger, tokens, index) -> log_probs [rows, actions], ledger`.

        `output` is the step's `StepOutput`, `last` int32 `[rows]` the last actions, `tokens` int32
        `[rows, max_length]` what was output so far, and `ledger` what is owed, see `Protection`,
        and the word that is being copied, see `WholeWords`; it is empty without both. The ledger
        that is returned is the one for `output` and `pay`: it has what may be paid now, too.
        """
        vocabulary_size, source_length = self.vocabulary_size, self.source_length
        constrain = constraints(
            vocabulary_size,
            source_length,
            self.max_length,
            self.min_length,
            self.allow_unknown or self.replace_unknown,
            self.max_span,
            self.start_id,
            self.end_id,
            self.unknown_id,
        )

        reads_places = self.protection is not None or self.whole_words is not None
        places = first_places(self.extended_ids) if reads_places else None
        exempt = (
            None if self.piece_repeats is None else self.piece_repeats.exempt(self.extended_ids)
        )

        def apply(output, last, ledger, tokens, index):
            log_probs = output.log_probs
            if self.whole_words is not None:
                next_action = self._next_in_word(ledger, last)
                log_probs = self.whole_words.make_possible(log_probs, next_action)
            if self.max_span > 1:
                log_probs = action_space.continue_spans(
                    log_probs, last, vocabulary_size, source_length
                )
            log_probs = constrain(log_probs, index)
            if self.replace_unknown:
                # Without a replacement, no `[UNK]`.
                nothing = ops.logical_not(ops.any(self._replaceable(), axis=-1, keepdims=True))
                is_unknown = ops.arange(ops.shape(log_probs)[1], dtype="int32") == self.unknown_id
                log_probs = ops.where(
                    ops.logical_and(nothing, ops.expand_dims(is_unknown, 0)), LOG_ZERO, log_probs
                )
            if self.protection is not None:
                standing = self.protection.standing(ledger, index, self.max_length)
                log_probs = self.protection.forbid(
                    log_probs, ledger, standing, self.extended_ids, self.end_id, places
                )
                ledger = {**ledger, PAYABLE: standing.payable}
            allowed = log_probs
            if self.whole_words is not None:
                additions = self.whole_words.additions(
                    output, ledger[REGISTER], self.extended_ids, places
                )
                log_probs = _without(log_probs, additions)
            if self.piece_repeats is not None:
                repeats = self.piece_repeats.repeating_actions(
                    tokens, index, self.extended_ids, exempt, self.max_span
                )
                log_probs = _without(log_probs, repeats)
            if self.no_repeat_ngram:
                log_probs = self._forbid_repeats(
                    log_probs, output.attention, ledger.get("owed"), tokens, index
                )
            if self.whole_words is not None:
                log_probs = self.whole_words.force(log_probs, allowed, next_action)
            return log_probs, ledger

        return apply

    def _next_in_word(self, ledger, last):
        """The action that a word being copied needs next, int32 `[rows]`, -1 for none.

        A running span continues by itself.
        """
        action = self.whole_words.next_action(ledger[REGISTER], self.extended_ids)
        if self.max_span == 1:
            return action
        lengths = action_space.span_lengths(last, self.vocabulary_size, self.source_length)
        return ops.where(lengths > 1, -1, action)

    def _forbid_repeats(self, log_probs, attention, owed, tokens, index):
        if isinstance(self.max_length, int) and self.max_length <= self.no_repeat_ngram:
            # Too short to repeat anything.
            return log_probs
        repeats = repeating_actions(
            tokens,
            index,
            self.extended_ids,
            self.vocabulary_size,
            self.no_repeat_ngram,
            self.max_span,
            owed,
        )
        if self.replace_unknown:
            # `[UNK]` counts as the token that replaces it.
            attended = self.vocabulary_size + self._attended(attention)[0]
            replaced = take_along(repeats, ops.expand_dims(attended, -1))
            is_unknown = ops.arange(ops.shape(log_probs)[1], dtype="int32") == self.unknown_id
            repeats = ops.where(ops.expand_dims(is_unknown, 0), replaced, repeats)
        return _without(log_probs, repeats)

    def _attended(self, attention):
        """The replaceable position with the highest attention, int32 `[rows]`, and its weight."""
        weights = ops.where(self._replaceable(), attention, -1.0)
        return ops.cast(ops.argmax(weights, axis=-1), "int32"), ops.max(weights, axis=-1)

    def _replaceable(self):
        """The tokens that may stand for `[UNK]`, bool `[rows, source_length]`.

        Guaranteed tokens are not among them.
        """
        if self.protection is None:
            return self.source_mask
        return ops.logical_and(self.source_mask, ops.logical_not(self.protection.source))

    def output(self, actions, log_probs, copy_log_probs, attention, ledger=None):
        """The outputs of the chosen actions.

        Args:
            actions: int32 `[rows]`.
            log_probs: float32 `[rows]`, of these actions.
            copy_log_probs: float32 `[rows, source_length]`.
            attention: float32 `[rows, source_length]`.
            ledger: before these actions, as the function of all rules returned it; or None.

        Returns:
            tokens int32 `[rows]` (extended ids), copied_from int32 `[rows]`, copy_probability
            float32 `[rows]`.
        """
        vocabulary_size, source_length = self.vocabulary_size, self.source_length
        tokens = action_space.first_tokens(actions, vocabulary_size, source_length)
        if self.merges:
            copied_from, probability = provenance(
                tokens, log_probs, copy_log_probs, self.extended_ids
            )
        else:
            copied_from = action_space.positions(actions, vocabulary_size, source_length)
            probability = ops.cast(copied_from >= 0, "float32")
        if self.whole_words is not None and self.merges:
            # The next piece of a word comes from where that word stands, wherever else it does.
            following = self.whole_words.next_position(ledger[REGISTER])
            forced = ops.logical_and(
                following >= 0,
                ops.equal(
                    actions, self.whole_words.next_action(ledger[REGISTER], self.extended_ids)
                ),
            )
            copied_from = ops.where(forced, following, copied_from)
            probability = ops.where(forced, 1.0, probability)
        if self.replace_unknown:
            attended, weight = self._attended(attention)
            unknown = ops.equal(actions, self.unknown_id)
            tokens = ops.where(unknown, vocabulary_size + attended, tokens)
            copied_from = ops.where(unknown, attended, copied_from)
            probability = ops.where(unknown, weight, probability)
        return tokens, copied_from, probability

    def first_ledger(self):
        """The ledger at the start, of one hypothesis for each row.

        It has the owed tokens and the word that is being copied.
        """
        ledger = {} if self.protection is None else self.protection.first_ledger()
        if self.whole_words is not None:
            ledger = {**ledger, **self.whole_words.first_ledger(ops.shape(self.extended_ids)[:1])}
        return ledger

    def pay(self, ledger, actions, tokens, copied_from):
        """Returns the ledger once `tokens [rows]` are output.

        Args:
            ledger: before them, as the function of all rules returned it.
            actions, tokens, copied_from: int32 `[rows]`, what was chosen, and what `output` made
                of it.
        """
        new = {}
        if self.protection is not None:
            new = self.protection.pay(ledger, ledger[PAYABLE], tokens, self.extended_ids)
        if self.whole_words is not None:
            # What replaces `[UNK]` may be written as something else.
            replaced = ops.equal(actions, self.unknown_id)
            copied_from = ops.where(replaced, -1, copied_from)
            new = {**new, REGISTER: self.whole_words.settle(ledger[REGISTER], copied_from)}
        return new


def _without(log_probs, banned):
    """Bans actions, bool like `log_probs`, where others are left."""
    allowed = ops.where(banned, LOG_ZERO, log_probs)
    possible = ops.any(allowed > LOG_ZERO / 2, axis=-1, keepdims=True)
    return ops.where(possible, allowed, log_probs)
