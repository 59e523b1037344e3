"""The roles of a source's protected tokens, by which decoding keeps their order, in the graph."""

import tensorflow as tf

from keras_models.decoding import order
from pipeline.text import terms, token_roles


def is_blank(tokens: tf.Tensor) -> tf.Tensor:
    """Returns which unprotected tokens are not content of a pair of tags; bool like `tokens`."""
    return tf.strings.regex_full_match(tokens, token_roles.BLANK)


def roles_and_links(
    tokens: tf.RaggedTensor, protected: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the roles and links of sources for `keras_models.decoding.order.Order`.

    Args:
        tokens: ragged string `[batch, (length)]`, what a copy of each source token writes.
        protected: ragged bool like `tokens`.

    Returns:
        Two ragged int32 tensors like `tokens`, roles and links.
    """
    flat, kept = tokens.flat_values, protected.flat_values
    rows = tf.cast(tokens.value_rowids(), tf.int32)
    number = tf.size(flat)
    positions = tf.range(number)
    starts = tf.gather(tf.cast(tokens.row_starts(), tf.int32), rows)

    role = _token_roles(flat, kept)
    opens, closes = role == token_roles.OPENING, role == token_roles.CLOSING
    is_tag = opens | closes | (role == token_roles.VOID)
    blank = is_blank(flat) & ~kept
    content = ~blank & ~is_tag
    before = tf.cumsum(tf.cast(content, tf.int32), exclusive=True)

    partner, unmatched = _pairs(flat, rows, opens, closes)
    holds_text = tf.gather(before, positions) > tf.gather(before, tf.maximum(partner, 0))
    holds_nothing = _next_but_blank(blank, partner, positions)
    # Tags that are not well nested, and pairs that hold nothing but tags, stay in their order.
    irregular = unmatched | (closes & (partner >= 0) & ~holds_text & ~holds_nothing)
    statement = role == token_roles.STRUCTURE
    keeps_tags = _any_in_row(irregular, rows, tokens) & is_tag
    keeps_all = _any_in_row(statement, rows, tokens) & kept
    chained = keeps_tags | keeps_all | (statement & kept)

    # The token before it in its chain, and whether there is text between.
    previous = _previous_of(chained, rows)
    inside = tf.cumsum(tf.cast(~blank & ~chained, tf.int32), exclusive=True)
    gap = chained & (previous >= 0) & (inside > tf.gather(inside, tf.maximum(previous, 0)))
    in_date = _any_in_row(role == token_roles.DATE, rows, tokens)
    directive = _previous_of((role == token_roles.DIRECTIVE) & ~chained & ~in_date, rows)
    link = tf.where(chained, previous, tf.where(closes, partner, directive))
    link = tf.where(opens & ~chained, _previous_equal(flat, rows, opens & ~chained), link)

    closed = tf.where(closes & (partner >= 0), partner, number)
    text_inside = tf.scatter_nd(closed[:, tf.newaxis], tf.cast(holds_text, tf.int32), [number + 1])[
        :number
    ]
    roles = tf.where(blank, order.BLANK, order.TEXT)
    roles = tf.where(kept, order.KEPT, roles)
    roles = tf.where(role == token_roles.VOID, order.VOID, roles)
    roles = tf.where(opens, tf.where(text_inside > 0, order.OPENING, order.EMPTY_OPENING), roles)
    roles = tf.where(closes, tf.where(holds_text, order.CLOSING, order.EMPTY_CLOSING), roles)
    roles = tf.where(chained, tf.where(gap, order.CHAINED_BEHIND_TEXT, order.CHAINED), roles)
    links = tf.where(link >= 0, link - starts + 1, 0)
    return tokens.with_flat_values(roles), tokens.with_flat_values(links)


def _token_roles(flat: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Returns the role of each protected token, int32; of others `OTHER`."""
    role = tf.fill(tf.shape(flat), token_roles.OTHER)
    for value, pattern in reversed(token_roles.ROLE_PATTERNS):
        role = tf.where(tf.strings.regex_full_match(flat, pattern), value, role)
    return tf.where(kept & ~terms.is_term(flat), role, token_roles.OTHER)


def _names(flat: tf.Tensor) -> tf.Tensor:
    """The graph's `token_roles.tag_name`."""
    first = tf.strings.substr(flat, 0, 1)
    family = tf.where((first == "{") | (first == "["), first, "")
    bare = tf.strings.regex_replace(flat, token_roles.NAME_PREFIX, "")
    bare = tf.strings.regex_replace(bare, token_roles.NAME_SUFFIX, "")
    return tf.strings.lower(family + bare, encoding="utf-8")


def _pairs(
    flat: tf.Tensor, rows: tf.Tensor, opens: tf.Tensor, closes: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the opening tag of each closing tag, and which tags are in no pair.

    Of tags sorted by their depth those of a pair are neighbours, if all are well nested.

    Returns:
        int32, a flat position, -1 at other tokens; and bool.
    """
    number = tf.size(flat)
    step = tf.cast(opens, tf.int32) - tf.cast(closes, tf.int32)
    after = tf.cumsum(step)
    # The depth inside of the pair: after the opening tag, before the closing tag.
    depth = tf.where(opens, after, after - step)
    is_tag = opens | closes
    tags = tf.cast(tf.where(is_tag)[:, 0], tf.int32)
    # Within a row depths differ from the row's own by what the rows before left open; the order of
    # (row, depth, position) does not.
    width = 2 * tf.cast(number, tf.int64) + 1
    key = tf.gather(tf.cast(rows, tf.int64) * width + tf.cast(depth + number, tf.int64), tags)
    sorted_tags = tf.gather(tags, tf.argsort(key, stable=True))
    names, key = _names(tf.gather(flat, sorted_tags)), tf.sort(key)
    is_opening = tf.gather(opens, sorted_tags)
    same = (key[1:] == key[:-1]) & (names[1:] == names[:-1]) & is_opening[:-1] & ~is_opening[1:]
    places = tf.boolean_mask(sorted_tags[1:], same)[:, tf.newaxis]
    partner = tf.tensor_scatter_nd_update(
        tf.fill([number], -1), places, tf.boolean_mask(sorted_tags[:-1], same)
    )
    paired = tf.tensor_scatter_nd_update(
        partner >= 0,
        tf.boolean_mask(sorted_tags[:-1], same)[:, tf.newaxis],
        tf.fill([tf.shape(places)[0]], True),
    )
    return partner, is_tag & ~paired


def _next_but_blank(blank: tf.Tensor, partner: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns whether there are only blank tokens between each token and its partner."""
    before = tf.cumsum(tf.cast(~blank, tf.int32), exclusive=True)
    return tf.gather(before, positions) == tf.gather(before, tf.maximum(partner, 0)) + 1


def _any_in_row(flags: tf.Tensor, rows: tf.Tensor, tokens: tf.RaggedTensor) -> tf.Tensor:
    """Returns, for each token, whether any token of its row has the flag."""
    counts = tf.math.unsorted_segment_sum(
        tf.cast(flags, tf.int32), rows, tf.cast(tokens.nrows(), tf.int32)
    )
    return tf.gather(counts, rows) > 0


def _previous_of(members: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns, for each member, the flat position of the member before it in its row, or -1."""
    places = tf.cast(tf.where(members)[:, 0], tf.int32)
    return _linked(places, tf.gather(rows, places), tf.size(members))


def _previous_equal(flat: tf.Tensor, rows: tf.Tensor, members: tf.Tensor) -> tf.Tensor:
    """Returns, for each member, the last equal member before it in its row, or -1."""
    places = tf.cast(tf.where(members)[:, 0], tf.int32)
    form = tf.strings.join(
        [tf.strings.as_string(tf.gather(rows, places)), tf.gather(flat, places)], separator=" "
    )
    _, group = tf.unique(form)
    by_group = tf.argsort(group, stable=True)
    return _linked(tf.gather(places, by_group), tf.gather(group, by_group), tf.size(members))


def _linked(places: tf.Tensor, groups: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    """Returns, at each of `places`, the place before it if that is of the same group; else -1."""
    before = tf.where(groups[1:] == groups[:-1], places[:-1], -1)
    return tf.tensor_scatter_nd_update(tf.fill([number], -1), places[1:, tf.newaxis], before)
