"""The order of an output's protected tokens: tags well nested, directives in line."""

import typing

from keras import ops

from keras_models.decoding.actions import flagged_ids, surfaces
from keras_models.layers.gathering import take_along

#: The role of each source token. `KEPT` and all that follow are protected. A text with tags that
#: are not well nested, or with other structure, has no tags but `CHAINED` ones.
BLANK = 0  # padding, or a token that writes nothing: no content
TEXT = 1  # a word that anything may become
KEPT = 2  # a placeholder or the like: content
VOID = 3  # a tag without a partner, such as `<br>`
EMPTY_OPENING = 4  # opens a pair with nothing in it
OPENING = 5  # opens a pair that must not be empty
EMPTY_CLOSING = 6
CLOSING = 7
CHAINED = 8  # comes after the token that it is linked to
CHAINED_BEHIND_TEXT = 9  # and there is text between the two

# More than any answer has room for.
_TOO_MUCH = 2**20


class Standing(typing.NamedTuple):
    """The actions of a step that the guarantee allows.

    Attributes:
        payable: bool `[rows, source_length]`, owed tokens that may be output now.
        unfinished: bool `[rows, 1]`, whether the output must go on.
        slack: int32 `[rows, 1]`, tokens that may be output besides those that must.
        text_fits, blank_fits: bool `[rows, 1]`, whether a word, or a token that writes nothing, may
            be output where the output is unfinished.
    """

    payable: typing.Any
    unfinished: typing.Any
    slack: typing.Any
    text_fits: typing.Any
    blank_fits: typing.Any


class Order(typing.NamedTuple):
    """The order of protected tokens, in addition to their number in the output.

    A closing tag closes the tag opened last, and only if the pair holds text or held none in the
    source. A token with a link comes after the source token that it is linked to: unnumbered
    directives, openings that read the same, and the tags of a text that is not well nested.

    No search reaches a dead end: a step is impossible if it leaves too few places for all owed
    tokens and a word in each pair that needs one, or if it uses up the only content of a source
    without words.

    A hypothesis' ledger has, beside `owed`, `depth` int32 `[rows, source_length]`, how deep each
    tag is that is open, 0 for others; and `filled` int32 `[rows]`: open tags down to this depth
    hold text. Where tags are chained it is 1 if text follows the last of them.

    Attributes:
        roles: int32 `[batch, source_length]`, see this module's constants.
        links: int32 `[batch, source_length]`, 1 + the position of the tag that a closing one
            closes, or of the token that it stands behind; 0 for none.
        blank: bool `[vocabulary_size]` or `[batch, vocabulary_size]`, words that are not content.
    """

    roles: typing.Any
    links: typing.Any
    blank: typing.Any

    def map_rows(self, function):
        """The same for other rows, which `function` makes of each tensor."""
        blank = self.blank if len(self.blank.shape) == 1 else function(self.blank)
        return Order(function(self.roles), function(self.links), blank)

    def whole_pairs(self, source):
        """Returns `source [batch, source_length]` without tags whose partner it lacks."""
        closing = self._is_closing(self.roles)
        partners = ops.maximum(self.links - 1, 0)
        alone = ops.logical_and(closing, ops.logical_not(take_along(source, partners)))
        missing = ops.logical_and(closing, ops.logical_not(source))
        left = flagged_ids(missing, partners, ops.shape(source)[1])
        return ops.logical_and(source, ops.logical_not(ops.logical_or(alone, left)))

    def first_ledger(self):
        """The parts of a ledger besides `owed` at the start."""
        shape = ops.shape(self.roles)
        return {
            "depth": ops.zeros(shape, dtype="int32"),
            "filled": ops.zeros(shape[:1], dtype="int32"),
        }

    def blank_words(self):
        """The words that are not content, bool `[batch or 1, vocabulary_size]`."""
        return ops.expand_dims(self.blank, 0) if len(self.blank.shape) == 1 else self.blank

    def standing(self, ledger, index, max_length):
        """Returns the `Standing` of hypotheses, one for each row of the order.

        Args:
            ledger: dict of `owed`, `depth` and `filled`.
            index: tokens output so far, a scalar.
            max_length: the longest output, a scalar.
        """
        owed, depth = ledger["owed"], ledger["depth"]
        filled = ops.expand_dims(ledger["filled"], -1)
        roles, links = self.roles, self.links
        open_tags = ops.max(depth, axis=-1, keepdims=True)
        linked = ops.maximum(links - 1, 0)
        is_owed, level = take_along((owed, depth), linked)
        waits = ops.logical_and(links > 0, is_owed)
        closes = self._is_closing(roles)
        level = ops.where(closes, level, 0)
        may_close = ops.logical_and(
            ops.logical_and(level > 0, ops.equal(level, open_tags)),
            ops.logical_or(ops.equal(roles, EMPTY_CLOSING), filled >= level),
        )
        in_line = ops.logical_not(waits)
        behind_text = ops.equal(roles, CHAINED_BEHIND_TEXT)
        may = ops.where(
            closes,
            may_close,
            ops.logical_and(in_line, ops.logical_or(ops.logical_not(behind_text), filled > 0)),
        )

        def number(flags):
            return ops.sum(ops.cast(ops.logical_and(owed, flags), "int32"), axis=-1, keepdims=True)

        def some(flags):
            return ops.cast(ops.any(flags, axis=-1, keepdims=True), "int32")

        # Places that need text, now and after text: one for all pairs, which may be nested, and one
        # for each gap between chained tags. Kept tokens fill some; each of the others needs a word.
        kept = number(ops.equal(roles, KEPT))
        opening = ops.equal(roles, OPENING)
        wanting = some(ops.logical_and(opening, depth > filled))
        to_open = some(ops.logical_and(owed, opening))
        gaps = number(behind_text)
        next_gap = some(ops.logical_and(ops.logical_and(owed, behind_text), in_line))
        places = ops.maximum(to_open, wanting) + gaps - next_gap * ops.cast(filled > 0, "int32")
        after_text = to_open + gaps - next_gap
        words = ops.maximum(places - kept, 0)
        words_after_text = ops.maximum(after_text - kept, 0)
        words_after_kept = ops.maximum(after_text - kept + 1, 0)

        room = max_length - index
        total = number(True)
        spare = room - total - words
        slack = ops.maximum(spare, 0)
        # The closing tags of open ones must fit, even if not all owed tokens do.
        left = room - 1 - open_tags
        needs = ops.where(
            ops.equal(roles, OPENING),
            2,
            ops.where(
                ops.equal(roles, EMPTY_OPENING),
                1 + wanting,
                ops.where(ops.equal(roles, VOID), wanting, 0),
            ),
        )
        fits = ops.logical_or(closes, left >= needs)
        more = words_after_kept - words
        wordless = ops.logical_not(ops.any(ops.equal(roles, TEXT), axis=-1, keepdims=True))
        more = ops.where(ops.logical_and(wordless, more > 0), _TOO_MUCH, more)
        fits = ops.logical_and(fits, ops.logical_or(ops.not_equal(roles, KEPT), more <= slack))
        payable = ops.logical_and(ops.logical_and(owed, may), fits)
        must = ops.logical_or(
            ops.logical_or(spare >= 0, open_tags > 0), ops.any(payable, axis=-1, keepdims=True)
        )
        return Standing(
            payable=payable,
            unfinished=ops.logical_and(ops.logical_and(total > 0, room > 0), must),
            slack=slack,
            text_fits=ops.logical_and(1 + words_after_text - words <= slack, left >= 0),
            blank_fits=ops.logical_and(slack >= 1, left >= wanting),
        )

    def settle(self, ledger, payable, tokens, extended_ids, vocabulary_size):
        """Returns the ledger once `tokens [rows]` are output.

        One occurrence is paid: the first of those that are payable.
        """
        owed, depth, filled = ledger["owed"], ledger["depth"], ledger["filled"]
        rows, source_length = ops.shape(owed)
        roles, links, blank = self.roles, self.links, self.blank_words()
        ids = ops.cast(extended_ids, "int32")
        said = surfaces(ops.expand_dims(tokens, -1), ids, vocabulary_size)
        matches = ops.logical_and(payable, ops.equal(ids, said))
        pays = ops.any(matches, axis=-1)
        place = ops.expand_dims(ops.cast(ops.argmax(matches, axis=-1), "int32"), -1)
        positions = ops.expand_dims(ops.arange(source_length, dtype="int32"), 0)
        here = ops.logical_and(matches, ops.equal(positions, place))

        role, link = take_along((roles, links), place)
        role, partner = role[:, 0], link - 1
        closes = ops.logical_and(pays, self._is_closing(role))
        open_tags = ops.max(depth, axis=-1)
        depth = ops.where(
            ops.logical_and(
                here, ops.logical_or(ops.equal(roles, OPENING), ops.equal(roles, EMPTY_OPENING))
            ),
            ops.expand_dims(open_tags + 1, -1),
            depth,
        )
        closed = ops.logical_and(ops.expand_dims(closes, -1), ops.equal(positions, partner))
        depth = ops.where(closed, 0, depth)

        # A word of the vocabulary, or a copy of one that it lacks.
        is_blank = take_along(
            ops.broadcast_to(blank, (rows, ops.shape(blank)[1])),
            ops.minimum(said, vocabulary_size - 1),
        )
        copied = take_along(roles, ops.maximum(said - vocabulary_size, 0))
        is_blank = ops.where(said < vocabulary_size, is_blank, ops.equal(copied, BLANK))[:, 0]
        is_text = ops.where(pays, ops.equal(role, KEPT), ops.logical_not(is_blank))
        chained = ops.any(roles >= CHAINED, axis=-1)
        filled = ops.where(is_text, ops.where(chained, 1, open_tags), filled)
        filled = ops.where(closes, ops.minimum(filled, open_tags - 1), filled)
        filled = ops.where(ops.logical_and(pays, role >= CHAINED), 0, filled)
        owed = ops.logical_and(owed, ops.logical_not(here))
        return {"owed": owed, "depth": depth, "filled": filled}

    @staticmethod
    def _is_closing(roles):
        return ops.logical_or(ops.equal(roles, EMPTY_CLOSING), ops.equal(roles, CLOSING))
