"""Finds copied spans that keep the order of protected tokens."""

from keras import ops

from keras_models.decoding.actions import shifted
from keras_models.decoding.order import (
    CHAINED_BEHIND_TEXT,
    CLOSING,
    EMPTY_CLOSING,
    KEPT,
    TEXT,
    VOID,
)
from keras_models.layers.gathering import take_along


class SpanOrder:
    """Reads spans of the source token by token, from all positions at once.

    It is slightly stricter than the order: no token of a span takes the place of an equal one
    elsewhere. So a span that may begin may also end.

    Args:
        order: the `Order`.
        ledger: of the hypotheses, `[rows, ...]`.
    """

    def __init__(self, order, ledger):
        owed, depth = ledger["owed"], ledger["depth"]
        roles, links = order.roles, order.links
        linked = ops.maximum(links - 1, 0)
        self.owed, self.roles, self.links = owed, roles, links
        is_owed, self.level = take_along((owed, depth), linked)
        self.waits = ops.logical_and(links > 0, is_owed)
        self.open_tags = ops.max(depth, axis=-1, keepdims=True)
        self.filled = ops.expand_dims(ledger["filled"], -1)
        self.starts = ops.expand_dims(ops.arange(ops.shape(owed)[1], dtype="int32"), 0)
        self.closed = ops.zeros(ops.shape(owed), dtype="int32")
        self.has_text = ops.zeros(ops.shape(owed), dtype="bool")

    def read(self, offset):
        """Reads the token at `offset` of each span; offsets are asked for in turn, from 0.

        Returns whether it breaks the order, and whether it may be anywhere: bool `[rows,
        source_length]` both.
        """
        roles, links = shifted(self.roles, offset, 0), shifted(self.links, offset, 0)
        owed, waits = shifted(self.owed, offset, False), shifted(self.waits, offset, False)
        inside = links - 1 >= self.starts
        level = shifted(self.level, offset, 0)
        has_text = ops.logical_or(self.has_text, ops.zeros_like(owed))
        closes = ops.logical_or(ops.equal(roles, EMPTY_CLOSING), ops.equal(roles, CLOSING))
        outside = ops.logical_and(closes, ops.logical_not(inside))
        is_last = ops.logical_and(level > 0, ops.equal(self.open_tags - level, self.closed))
        content = ops.logical_or(
            ops.equal(roles, EMPTY_CLOSING), ops.logical_or(self.filled >= level, has_text)
        )
        may_close = ops.logical_or(inside, ops.logical_and(is_last, content))
        behind_text = ops.logical_or(
            ops.not_equal(roles, CHAINED_BEHIND_TEXT),
            ops.logical_or(inside, ops.logical_or(self.filled > 0, has_text)),
        )
        in_line = ops.logical_and(ops.logical_or(inside, ops.logical_not(waits)), behind_text)
        may = ops.logical_and(owed, ops.where(closes, may_close, in_line))
        free = ops.logical_or(
            roles <= TEXT,
            ops.logical_and(
                ops.equal(links, 0), ops.logical_or(ops.equal(roles, KEPT), ops.equal(roles, VOID))
            ),
        )
        self.closed = self.closed + ops.cast(outside, "int32")
        self.has_text = ops.logical_or(
            self.has_text, ops.logical_or(ops.equal(roles, TEXT), ops.equal(roles, KEPT))
        )
        return ops.logical_not(ops.logical_or(free, may)), free
