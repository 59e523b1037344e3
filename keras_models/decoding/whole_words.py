"""Copies words that are cut into pieces from end to end."""

import typing

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.decoding.constraints import LEAST_LOG_PROB
from keras_models.layers.gathering import add_along, take_along
from keras_models.layers.numerics import LOG_ZERO, first_places

#: The part of a ledger that holds the word that is being copied.
REGISTER = "word_copied"


class WholeWords(typing.NamedTuple):
    """Source words of several pieces that are copied whole.

    A word is a piece that continues nothing and the pieces behind it that continue it. An output
    begins to copy a word where it copies its first piece: where copying is the larger share of that
    token's probability. From then on

    - the only possible token is the next piece of the same source word, until that word is
      complete; it keeps the model's own log-probability, at least `LEAST_LOG_PROB`;
    - after a complete copied word no copy of a continuing piece is possible. A generated one is, so
      that a copied name may have an ending.

    The rule gives way to the longest output and to protected tokens. It goes before rules against
    repetition.

    A hypothesis' ledger has `word_copied` int32 `[rows]`: the source position of the last output
    token where that belongs to a word that was copied from its first piece; else -1.

    Attributes:
        continues: bool `[batch, source_length]`, whether a source token continues the word of the
            token before it; false at padding.
        vocabulary_size: V.
        max_span: L, the longest span that is one action.
        merges: whether a copied id stands for all positions that hold its word.
    """

    continues: typing.Any
    vocabulary_size: typing.Any
    max_span: int = 1
    merges: bool = True

    def map_rows(self, function):
        """The same for other rows, which `function` makes of each tensor."""
        return self._replace(continues=function(self.continues))

    @staticmethod
    def first_ledger(shape):
        """The register at the start, for hypotheses of a shape."""
        return {REGISTER: ops.full(shape, -1, dtype="int32")}

    def next_position(self, register):
        """The source position that must be output next, int32 `[rows]`, -1 for none.

        Args:
            register: int32 `[rows]`.
        """
        following = ops.expand_dims(register + 1, -1)
        last = ops.shape(self.continues)[1] - 1
        goes_on = take_along(self.continues, ops.minimum(following, last))
        goes_on = ops.logical_and(goes_on, ops.logical_and(following > 0, following <= last))
        return ops.where(goes_on[:, 0], following[:, 0], -1)

    def next_action(self, register, extended_ids):
        """The action that must be next, int32 `[rows]`, -1 for none."""
        position = self.next_position(register)
        if self.merges:
            index = ops.expand_dims(ops.maximum(position, 0), -1)
            action = take_along(extended_ids, index)[:, 0]
        else:
            action = self.vocabulary_size + position
        return ops.where(position >= 0, action, -1)

    def make_possible(self, log_probs, action):
        """Gives what must be next a probability, so that other rules can tell that they ban it.

        Args:
            log_probs: float32 `[rows, actions]`.
            action: int32 `[rows]`, what `next_action` returned.
        """
        return ops.where(
            self._is_action(log_probs, action), ops.maximum(log_probs, LEAST_LOG_PROB), log_probs
        )

    def force(self, log_probs, allowed, action):
        """Leaves only what must be next, where the rules that go first allow it.

        Args:
            log_probs: float32 `[rows, actions]`, after all rules.
            allowed: float32 `[rows, actions]`, after those rules that go first.
            action: int32 `[rows]`, what `next_action` returned.
        """
        index = ops.expand_dims(ops.maximum(action, 0), -1)
        value = take_along(allowed, index)
        forces = ops.logical_and(ops.expand_dims(action >= 0, -1), value > LOG_ZERO / 2)
        forced = ops.where(self._is_action(log_probs, action), value, LOG_ZERO)
        return ops.where(forces, forced, log_probs)

    def additions(self, output, register, extended_ids, places=None):
        """Tells which actions would copy a further piece onto a complete copied word.

        Args:
            output: the step's `StepOutput`.
            register: int32 `[rows]`.
            extended_ids: int32 `[rows, source_length]`.
            places: what `first_places(extended_ids)` gives, if it is known already.

        Returns:
            bool `[rows, V + L * source_length]`.
        """
        complete = ops.logical_and(register >= 0, self.next_position(register) < 0)
        pieces = ops.logical_and(self.continues, ops.expand_dims(complete, -1))
        if not self.merges:
            words = ops.zeros((ops.shape(pieces)[0], self.vocabulary_size), dtype="bool")
            return ops.concatenate([words] + [pieces] * self.max_span, axis=1)
        source_length = ops.shape(extended_ids)[1]
        places = first_places(extended_ids) if places is None else places
        mass = add_along(ops.exp(output.copy_log_probs), places, source_length)
        mass = take_along(mass, places)
        whole = ops.exp(take_along(output.log_probs, extended_ids))
        copied = ops.logical_and(pieces, mass > 0.5 * whole)
        return action_space.flagged_ids(copied, extended_ids, self.vocabulary_size + source_length)

    def settle(self, register, copied_from):
        """Returns the register after a token.

        Args:
            register: int32 `[rows]`, before it.
            copied_from: int32 `[rows]`, the source position that it was copied from, -1 if it was
                generated.
        """
        index = ops.expand_dims(ops.maximum(copied_from, 0), -1)
        continues = take_along(self.continues, index)[:, 0]
        goes_on = ops.logical_and(register >= 0, ops.equal(copied_from, register + 1))
        belongs = ops.where(continues, goes_on, copied_from >= 0)
        return ops.where(belongs, copied_from, -1)

    @staticmethod
    def _is_action(log_probs, action):
        actions = ops.arange(ops.shape(log_probs)[1], dtype="int32")
        return ops.equal(ops.expand_dims(actions, 0), ops.expand_dims(action, -1))
